"""The web client: pages for everything that people do here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from kernel.sdk import Context, Platform, Plugin, Resource, RouteTable, Service, hookimpl

from . import handlers
from .files import FILES, Files
from .settings import WebClientSettings

VERSION = "0.1.0"


class WebClientPlugin(Plugin):
    """Static pages on their own port, and at the gateway. They use the API as any program does."""

    name = "web_client"
    version = VERSION
    description = "The web client: ask, manage documents, people and plugins in a browser"
    author = "Platform"
    requires = ("api_docs",)

    @hookimpl
    def register_settings(self) -> type[WebClientSettings]:
        return WebClientSettings

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [handlers.files, handlers.at_gateway]

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables = [handlers.files, handlers.at_root]
        return [Service(handlers.SERVICE, tables, VERSION, title="Web client", published=_port, port=8009)]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Files]]:
        return [Resource(FILES, _open_files)]

    @hookimpl
    async def find_start_page(self, ctx: Context) -> web.StreamResponse | None:
        return handlers.start_page(ctx)

    @hookimpl
    async def find_client_address(self, ctx: Context) -> str | None:
        return handlers.own_address(ctx)


def _port(platform: Platform) -> int:
    return platform.settings_of(WebClientSettings).port


@asynccontextmanager
async def _open_files(_platform: Platform) -> AsyncIterator[Files]:
    yield await asyncio.to_thread(Files.read)
