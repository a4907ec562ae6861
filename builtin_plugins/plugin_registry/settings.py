"""Settings of the registry."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings, env


class RegistrySettings(Settings):
    """How tools are run."""

    env_prefix: ClassVar[str] = "PLATFORM_REGISTRY_"

    tool_execution_timeout: float = Field(
        60,
        gt=0,
        le=300,
        validation_alias=env("TOOL_EXECUTION_TIMEOUT"),
        description="Longest time in seconds that the execution of a tool may take.",
    )
