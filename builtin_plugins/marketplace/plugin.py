"""The service `marketplace`: the catalog of plugins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from builtin_plugins.accounts.api import SharedThing
from builtin_plugins.marketplace.mounts import SERVICE
from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import (
    Account,
    HealthCheck,
    Platform,
    Plugin,
    Resource,
    Scope,
    Service,
    Tables,
    Unit,
    hookimpl,
)
from kernel.sdk.operations import PluginPackage

from .handlers import installs, listings, submissions, tools
from .models import DERIVED, Base
from .package_lookup import own_package, package_elsewhere
from .services import account_removal
from .services.refs import find_refs, find_together
from .services.search import derive
from .services.self_listing import SELF_LISTING, open_self_listing
from .services.wheels import WHEELS, open_wheels
from .settings import MarketplaceSettings


class MarketplacePlugin(Plugin):
    """A catalog of plugins with submissions, ratings and installs."""

    name = "marketplace"
    version = "0.1.0"
    description = "A catalog of plugins: submissions, review, ratings, installs, search"
    author = "Platform"
    requires = ("accounts", "plugin_registry", "tools")

    @hookimpl
    def register_settings(self) -> type[MarketplaceSettings]:
        return MarketplaceSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations", DERIVED, derive)

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables = (listings.routes, submissions.routes, installs.routes, tools.routes)
        return [replace(SERVICE, tables=tables, version=self.version)]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [Resource(SELF_LISTING, open_self_listing), Resource(WHEELS, open_wheels)]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("catalog", _check, critical=True, service="marketplace")]

    @hookimpl
    def find_listings(self, session: Session, plugins: Sequence[str]) -> Sequence[plugin_registry.ListingRef]:
        return find_refs(session, plugins)

    @hookimpl
    async def find_plugin_package(
        self, platform: Platform, name: str, address: str | None
    ) -> PluginPackage | None:
        if address is not None:
            return await package_elsewhere(name, address)
        return await platform.database.read(own_package, platform, name)

    @hookimpl
    def find_installed_together(
        self, session: Session, plugins: Sequence[str], limit: int
    ) -> Sequence[plugin_registry.InstalledTogether]:
        return find_together(session, plugins, limit)

    @hookimpl(optionalhook=True)
    def hand_over_shared(self, unit: Unit, account: Account, heir: Scope | None) -> Sequence[SharedThing]:
        return account_removal.hand_over(unit, account, heir)

    @hookimpl(optionalhook=True)
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        await account_removal.remove_of_account(platform, account_id)


async def _check(platform: Platform) -> None:
    await platform.database.ping()
