"""Services that run on other machines, behind this gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from kernel.sdk import PLATFORM_VERSION, Platform, Plugin, Resource, hookimpl
from kernel.sdk.http import REMOTE_SERVICES, RemoteServices

from .proxy import Proxy
from .settings import RemoteServicesSettings


class RemoteServicesPlugin(Plugin):
    """Passes the requests of a service's prefixes on to the machine where it runs."""

    name = "remote_services"
    version = PLATFORM_VERSION
    description = "Services on other machines, behind this gateway"
    author = "Platform"
    essential = True

    @hookimpl
    def register_settings(self) -> type[RemoteServicesSettings]:
        return RemoteServicesSettings

    @hookimpl
    def register_resources(self) -> Sequence[Resource[RemoteServices]]:
        return [Resource(REMOTE_SERVICES, _open, essential_in=frozenset({"api"}))]


@asynccontextmanager
async def _open(platform: Platform) -> AsyncIterator[RemoteServices]:
    proxy = Proxy(platform)
    try:
        yield proxy
    finally:
        await proxy.close()
