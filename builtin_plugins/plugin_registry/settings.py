"""Settings of the registry."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings, env


class RegistrySettings(Settings):
    """How tools are run, plugins collect, and their health is watched."""

    env_prefix: ClassVar[str] = "PLATFORM_REGISTRY_"
    administered: ClassVar[frozenset[str]] = frozenset(
        {
            "tool_execution_timeout",
            "collect_timeout",
            "analysis_timeout",
        }
    )

    tool_execution_timeout: float = Field(
        60,
        gt=0,
        le=300,
        validation_alias=env("TOOL_EXECUTION_TIMEOUT"),
        description="Longest time in seconds that the execution of a tool may take.",
    )
    collect_timeout: float = Field(
        900,
        gt=0,
        le=86_400,
        description="Longest time in seconds that a plugin may take to collect its data.",
    )
    analysis_timeout: float = Field(
        30, gt=0, le=300, description="Longest time in seconds that the analysis of a plugin may take."
    )
    health_interval: float = Field(
        60, ge=1, le=3600, description="Seconds between two health checks of all plugins."
    )
