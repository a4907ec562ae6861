"""The service `marketplace`: the catalog of plugins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy.orm import Session

from kernel.sdk import HealthCheck, Platform, Plugin, Service, Tables, contracts, hookimpl

from .handlers import installs, listings, submissions
from .models import DERIVED, Base
from .services.refs import find_refs
from .settings import MarketplaceSettings


class MarketplacePlugin(Plugin):
    """A catalog of plugins with submissions, ratings and installs."""

    name = "marketplace"
    version = "0.1.0"
    description = "A catalog of plugins: submissions, review, ratings, installs, search"
    author = "Platform"

    @hookimpl
    def register_settings(self) -> type[MarketplaceSettings]:
        return MarketplaceSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations", DERIVED)

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables = (listings.routes, submissions.routes, installs.routes)
        return [Service("marketplace", tables, self.version, title="Marketplace")]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("catalog", _check, critical=True, service="marketplace")]

    @hookimpl
    def find_listings(self, session: Session, plugins: Sequence[str]) -> Sequence[contracts.ListingRef]:
        return find_refs(session, plugins)


async def _check(platform: Platform) -> None:
    await platform.database.ping()
