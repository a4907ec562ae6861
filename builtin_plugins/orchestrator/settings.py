"""Settings of the orchestrator."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from kernel.sdk import Settings


class OrchestratorSettings(Settings):
    """What models may do in chats."""

    env_prefix: ClassVar[str] = "PLATFORM_ORCHESTRATOR_"
    configurable: ClassVar[frozenset[str]] = frozenset({"tools", "confirm"})
    administered: ClassVar[frozenset[str]] = frozenset({"confirm_minutes", "tool_seconds"})

    tools: Literal["all", "read_only", "none"] = Field(
        "all", description="The tools that a chat may use through `platform_tools`; a chat can ask for fewer."
    )
    confirm: Literal["never", "destructive", "writes"] = Field(
        "never",
        description="Which calls of a model wait for the user's confirmation: none, destructive ones, or "
        "everything that is not read-only.",
    )
    confirm_minutes: float = Field(
        10, gt=0, le=1440, description="Minutes that a call waits for confirmation."
    )
    tool_seconds: float = Field(60, gt=0, le=300, description="Time limit in seconds for one call of a tool.")
