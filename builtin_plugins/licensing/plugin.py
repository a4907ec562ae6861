"""Licensing: tiers, keys, seats, checkout."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from builtin_plugins.licensing import api
from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import JobRef, Platform, Plugin, Resource, RouteTable, Tables, hookimpl

from .handlers import licenses, plugin_tiers
from .models import Base
from .services import seats
from .services.expiry import EXPIRE_ORDERS
from .services.plugin_tiers import check
from .services.usage import USAGE, LicenseUsage
from .settings import LicensingSettings


class LicensingPlugin(Plugin):
    """Who may use which tier of which plugin."""

    name = "licensing"
    version = "0.1.0"
    description = "Licenses of plugins: tiers, keys, seats of organizations, checkout"
    author = "Platform"
    requires = ("accounts", "tenancy", "tools", "plugin_registry")
    after = ("marketplace",)

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        """What licensing asks of payment providers."""
        return [api]

    @hookimpl
    def register_settings(self) -> type[LicensingSettings]:
        return LicensingSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [licenses.routes, plugin_tiers.routes]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [EXPIRE_ORDERS]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[LicenseUsage]]:
        return [Resource(USAGE, _open_usage)]

    @hookimpl
    async def check_license(
        self, platform: Platform, subject: str, plugin: str, required: str, used: bool
    ) -> plugin_registry.LicenseVerdict:
        return await check(platform, subject, plugin, required, used=used)

    @hookimpl
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        """Free the account's seats; its orders and licenses are purchase records, and stay."""
        await platform.database.write(seats.free_all, account_id)


@asynccontextmanager
async def _open_usage(platform: Platform) -> AsyncIterator[LicenseUsage]:
    async with LicenseUsage(platform).running() as usage:
        yield usage
