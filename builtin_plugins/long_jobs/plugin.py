"""The plugin through which people follow long jobs."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.long_jobs.handlers import routes
from builtin_plugins.long_jobs.metrics import offer_figures
from kernel.sdk import PLATFORM_VERSION, Platform, Plugin, RouteTable, hookimpl


class LongJobsPlugin(Plugin):
    """Routes that show and cancel the long jobs of all plugins, and figures of the queue."""

    name = "long_jobs"
    version = PLATFORM_VERSION
    description = "Shows long jobs to those who may see them"
    author = "Platform"
    essential = True

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]

    @hookimpl
    async def on_start(self, platform: Platform) -> None:
        offer_figures(platform)
