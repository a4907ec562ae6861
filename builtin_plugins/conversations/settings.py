"""Settings of the conversations plugin."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings


class ConversationsSettings(Settings):
    """How long conversations are kept."""

    env_prefix: ClassVar[str] = "PLATFORM_CONVERSATIONS_"
    administered: ClassVar[frozenset[str]] = frozenset({"retention_days", "history_turns"})

    retention_days: int = Field(
        0,
        ge=0,
        le=36_500,
        description="Conversations without a new question for this many days are deleted; 0 keeps them.",
    )
    history_turns: int = Field(
        3, ge=0, le=20, description="How many of the last turns a follow-up question can refer to."
    )
