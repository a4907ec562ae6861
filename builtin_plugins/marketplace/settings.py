"""Settings of the marketplace."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings, env


class MarketplaceSettings(Settings):
    """Limits of the catalog."""

    env_prefix: ClassVar[str] = "PLATFORM_MARKETPLACE_"
    administered: ClassVar[frozenset[str]] = frozenset({"max_plugins_per_user", "max_listings_per_user"})

    max_plugins_per_user: int = Field(
        100,
        ge=1,
        validation_alias=env("MAX_PLUGINS_PER_USER"),
        description="Plugins that one account may have installed at the same time.",
    )
    max_listings_per_user: int = Field(
        100, ge=1, description="Listings that one account may have that are not archived."
    )
