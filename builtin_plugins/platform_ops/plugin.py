"""Operations: the service `platform-ops`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builtin_plugins.platform_ops import api
from builtin_plugins.platform_ops.backup import handlers as backups
from builtin_plugins.platform_ops.backup.diagnostics import DIAGNOSTICS
from builtin_plugins.platform_ops.backup.drilling import DRILL
from builtin_plugins.platform_ops.backup.guards import GUARD
from builtin_plugins.platform_ops.backup.jobs import BACK_UP, RESTORE
from builtin_plugins.platform_ops.backup.leftovers import RELEASE, find_leftovers
from builtin_plugins.platform_ops.backup.listing import LISTING, open_listing
from builtin_plugins.platform_ops.backup.service import warn_of_storage
from builtin_plugins.platform_ops.bundles import handlers as bundles
from builtin_plugins.platform_ops.configuration import handlers as configuration
from builtin_plugins.platform_ops.containers.engine import ENGINE, open_engine
from builtin_plugins.platform_ops.damage import CHECK_DATABASE, hear_of_damage
from builtin_plugins.platform_ops.discovery import handlers as services
from builtin_plugins.platform_ops.discovery.service_calls import CALLING, open_calling
from builtin_plugins.platform_ops.logs import handlers as logs
from builtin_plugins.platform_ops.logs.ring import RING, open_ring
from builtin_plugins.platform_ops.models import Base
from builtin_plugins.platform_ops.mounts import SERVICE, VERSION
from builtin_plugins.platform_ops.proxy import handlers as proxy
from builtin_plugins.platform_ops.settings import OpsSettings
from builtin_plugins.platform_ops.shared_metrics import SHARED_METRICS, open_shared_metrics
from kernel.sdk import (
    Diagnostic,
    HealthCheck,
    JobRef,
    Platform,
    Plugin,
    Resource,
    Service,
    Tables,
    Unhealthy,
    hookimpl,
)
from kernel.sdk.operations import StartGuard
from kernel.sdk.storage import CacheUnavailable

if TYPE_CHECKING:
    from typer import Typer


class PlatformOpsPlugin(Plugin):
    """Backup and restore, services that register, bundles, logs, the settings in effect."""

    name = "platform_ops"
    version = VERSION
    description = "Operations: backups, discovery of services and a proxy to them, bundles, logs"
    author = "Platform"
    requires = ("tools",)

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        """What backups and bundles ask of other plugins."""
        return [api]

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.platform_ops.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return DIAGNOSTICS

    @hookimpl
    def register_settings(self) -> type[OpsSettings]:
        return OpsSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_start_guards(self) -> Sequence[StartGuard]:
        return [GUARD]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [
            Resource(LISTING, open_listing),
            Resource(CALLING, open_calling),
            Resource(RING, open_ring),
            Resource(ENGINE, open_engine),
            Resource(SHARED_METRICS, open_shared_metrics, frozenset({"api"})),
        ]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [BACK_UP, RESTORE, DRILL, RELEASE, CHECK_DATABASE]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("cache_store", _check_cache, critical=True, service="platform-ops")]

    @hookimpl
    async def on_start(self, platform: Platform) -> None:
        hear_of_damage(platform)
        await find_leftovers(platform)
        await warn_of_storage(platform)

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables = (
            services.routes,
            proxy.routes,
            bundles.routes,
            logs.routes,
            backups.routes,
            configuration.routes,
        )
        return [replace(SERVICE, tables=tables, version=self.version, health_extra=services.health_fields)]


async def _check_cache(platform: Platform) -> None:
    try:
        await platform.cache.ping()
    except CacheUnavailable:
        raise Unhealthy("the cache store does not answer") from None
