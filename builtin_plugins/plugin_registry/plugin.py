"""The service `plugin-registry`: plugins, their actions, configuration and administration."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api
from builtin_plugins.plugin_registry.mounts import SERVICE
from builtin_plugins.tools.api import Directory, Tool
from kernel.sdk import (
    Caller,
    Context,
    HealthCheck,
    JobRef,
    Permission,
    Platform,
    Plugin,
    Resource,
    Service,
    Tables,
    hookimpl,
)

from . import models, permissions
from .collecting.jobs import COLLECT, COLLECT_ALL
from .collecting.watching import HEALTH_WATCH, HealthWatch
from .handlers import actions, administration, collecting, config, plugins, tools
from .live import LIVE, LiveState
from .services.disabled import explain_disabled
from .services.records import get_entry
from .services.switching import switch
from .services.tool_calls import CALL_METRICS, note, open_call_metrics
from .services.tools import check_license
from .settings import RegistrySettings

if TYPE_CHECKING:
    from builtin_plugins.tenancy import api as tenancy


class PluginRegistryPlugin(Plugin):
    """Shows and administers every plugin of the platform."""

    name = administration.NAME
    version = "0.1.0"
    description = "Lists, configures, installs, enables and disables plugins, and calls their actions"
    author = "Platform"
    requires = ("owner_secrets", "tools")
    after = ("tenancy", "platform_ops")
    capabilities = ("plugin-registry",)

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        """What the plugins around the registry ask each other."""
        return [api]

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(models.Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return [permissions.CONFIG_READ, permissions.CONFIG_WRITE]

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables = [module.routes for module in (plugins, actions, tools, config, collecting, administration)]
        return [replace(SERVICE, tables=tables, version=self.version, health_extra=_counts)]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [
            Resource(LIVE, self._open),
            Resource(CALL_METRICS, open_call_metrics),
            Resource(HEALTH_WATCH, _watch, essential_in=frozenset({"api"})),
        ]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [COLLECT, COLLECT_ALL]

    @hookimpl
    def register_settings(self) -> type[RegistrySettings]:
        return RegistrySettings

    @hookimpl
    async def check_tool_call(self, ctx: Context, tool: Tool) -> None:
        await check_license(ctx, tool, used=True)

    @hookimpl
    async def on_tool_called(
        self, ctx: Context, tool: Tool, seconds: float, error: BaseException | None
    ) -> None:
        await note(ctx, tool, seconds, error)

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("plugin_settings", self._check, service="plugin-registry")]

    @hookimpl(optionalhook=True)
    def export_rows(
        self, platform: Platform, session: Session, organization_id: int | None
    ) -> Mapping[str, Any] | None:
        from .services.transfer import SECTION, export_config

        return None if organization_id is None else {SECTION: export_config(platform, session)}

    @hookimpl
    def find_disabled_plugins(self, platform: Platform, session: Session | None) -> Mapping[str, str]:
        return explain_disabled(session, platform.plugins)

    @hookimpl(optionalhook=True)
    async def switch_plugin(self, caller: Caller, plugin: str, on: bool) -> bool:
        await switch(caller, await get_entry(caller.platform, plugin), on=on, own_name=self.name)
        return True

    @hookimpl(optionalhook=True)
    async def import_rows(
        self, sections: Mapping[str, Any], organization_id: int | None
    ) -> tenancy.ImportPlan | None:
        from .services.transfer import read_config

        return None if organization_id is None else read_config(sections)

    @asynccontextmanager
    async def _open(self, platform: Platform) -> AsyncIterator[LiveState]:
        live = LiveState(platform)
        async with live.following():
            yield live

    async def _check(self, platform: Platform) -> None:
        await platform.resource(LIVE).check()


async def _counts(platform: Platform) -> dict[str, Any]:
    entries = await Directory(platform).entries()
    return {"plugins_loaded": sum(entry.status == "enabled" for entry in entries)}


@asynccontextmanager
async def _watch(platform: Platform) -> AsyncIterator[HealthWatch]:
    async with HealthWatch(platform).watching() as watch:
        yield watch
