"""Settings of tenancy."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings


class TenancySettings(Settings):
    """The tree of organizations, and invites."""

    env_prefix: ClassVar[str] = "PLATFORM_TENANCY_"
    administered: ClassVar[frozenset[str]] = frozenset(
        {
            "max_tree_depth",
            "invite_days",
            "invite_mail_seconds",
        }
    )

    max_tree_depth: int = Field(
        10, ge=1, le=100, description="How many levels deep organizations may be nested."
    )
    invite_days: int = Field(7, ge=1, le=365, description="Days until an invite expires.")
    invite_lookups_per_minute: int = Field(
        60, ge=1, description="Times one client address may look up invites by token in 60 seconds."
    )
    bulk_invites_per_minute: int = Field(
        10, ge=1, description="Times one account may send bulk invites in 60 seconds, up to 100 invites each."
    )
    invite_mail_seconds: float = Field(
        20,
        gt=0,
        le=60,
        description="Longest time in seconds that a request waits for the mail server, for all "
        "its invites together.",
    )
