"""Settings of the published chat."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings


class PublishedChatSettings(Settings):
    """Limits of visitors, and how long their sessions are kept."""

    env_prefix: ClassVar[str] = "PLATFORM_PUBLISHED_CHAT_"
    administered: ClassVar[frozenset[str]] = frozenset(
        {
            "session_rate",
            "address_rate",
            "daily_questions",
            "daily_tokens",
            "retention_days",
        }
    )

    token_minutes: int = Field(15, ge=1, le=1440, description="Lifetime of a visitor's token in minutes.")
    session_hours: int = Field(
        24, ge=1, le=720, description="How many hours after its start a visitor's session can be continued."
    )
    session_rate: int = Field(10, ge=1, description="Most questions per minute in one visitor's session.")
    address_rate: int = Field(
        20, ge=1, description="Most questions, and most new sessions, per minute from one network address."
    )
    daily_questions: int = Field(
        1000,
        ge=1,
        le=2**31 - 1,
        description="Most questions per day for an endpoint that has no limit of its own.",
    )
    daily_tokens: int = Field(
        1_000_000,
        ge=1,
        le=2**31 - 1,
        description="Most tokens that models use per day for an endpoint that has no limit of its own.",
    )
    retention_days: int = Field(
        90,
        ge=0,
        le=36_500,
        description="Visitors' sessions without a new question for this many days are deleted; 0 keeps them.",
    )
