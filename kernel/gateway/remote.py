"""Services on other machines: what the gateway asks of the plugin that reaches them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from aiohttp import web

from kernel.gateway.services import Mount, Service
from kernel.http.context import Context
from kernel.plugins.resource_keys import ResourceKey


class RemoteServices(Protocol):
    """The services that live on other machines; a plugin opens them as the resource `REMOTE_SERVICES`."""

    @property
    def names(self) -> Collection[str]:
        """The services that are elsewhere."""
        ...

    async def forward(self, ctx: Context, service: Service, mount: Mount) -> web.StreamResponse:
        """Pass the request on and answer with the service's response."""
        ...

    async def fetch_health(self, name: str, seconds: float) -> dict[str, Any]:
        """The body of a service's own `/health`. Raises Unhealthy when it can't be read."""
        ...


REMOTE_SERVICES: ResourceKey[RemoteServices] = ResourceKey("services_on_other_machines")
