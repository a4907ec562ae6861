"""Tools: what can be called, by whom, and the one way to call it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from kernel.sdk import PLATFORM_VERSION, Platform, Plugin, Resource, hookimpl

from . import hookspecs
from .catalog import TOOLS, Tools
from .directory import Directory


class ToolsPlugin(Plugin):
    """Makes a tool of each action of a plugin, beside the tools that plugins offer."""

    name = "tools"
    version = PLATFORM_VERSION
    description = "The catalog of tools for people, programs and models"
    author = "Platform"
    essential = True

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [hookspecs]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Tools]]:
        return [Resource(TOOLS, _open)]

    @hookimpl
    async def list_other_plugins(self, platform: Platform) -> Mapping[str, tuple[str, str | None]]:
        offered = await Directory(platform).offered()
        return {entry.name: (entry.status, entry.reason or entry.problem) for entry in offered}


@asynccontextmanager
async def _open(platform: Platform) -> AsyncIterator[Tools]:
    yield Tools(platform)
