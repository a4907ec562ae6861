"""Routes of the dynamic proxy (spec 4.8, wire-facts 9.1), on the service's own port."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from builtin_plugins.platform_ops.discovery import records
from builtin_plugins.platform_ops.discovery.records import ServiceNotFound, ServiceOut
from builtin_plugins.platform_ops.discovery.service_calls import (
    ServiceRefused,
    ServiceSilent,
    ServiceUnreachable,
)
from builtin_plugins.platform_ops.proxy.forwarding import pass_on
from kernel.sdk import (
    ADMIN_OR_SERVICE,
    PUBLIC,
    BadGateway,
    Context,
    PayloadTooLarge,
    RawBody,
    RouteTable,
    utc_now,
)

routes = RouteTable("Proxy")
_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
_BODY = RawBody(
    ("application/octet-stream", "application/json"),
    {"description": "Any body that the service accepts."},
    example="Any body that the service accepts, passed on unchanged.",
    more_examples={"application/json": {"text": "Good morning.", "language": "en"}},
)


class ProxyTarget(BaseModel):
    """A service that can be called through the platform."""

    service_name: str
    service_type: str
    health_status: str
    endpoint: str
    proxy_url: str
    metadata: dict[str, Any]


class ProxyTargets(BaseModel):
    """The targets, by name."""

    services: list[ProxyTarget]
    count: int
    timestamp: datetime


@routes.get("/v1/proxy", access=PUBLIC, returns=ProxyTargets)
async def index(ctx: Context) -> ProxyTargets:
    """List what can be called through the platform."""
    targets = [_rendered(service) for service in await ctx.read(records.everything)]
    return ProxyTargets(services=targets, count=len(targets), timestamp=utc_now())


def _declare(method: str) -> None:
    async def forward(ctx: Context, service_name: str, path: str) -> web.StreamResponse:
        """Call a registered service.

        Both bodies are passed on as they come. The caller's token goes only to services that the operator
        trusts (`PLATFORM_SERVICES_TRUSTED`).
        """
        del path  # passed on unchanged
        return await pass_on(ctx, await ctx.read(records.find, service_name))

    forward.__name__ = f"proxy_{method.lower()}"
    routes.route(
        method,
        "/v1/proxy/{service_name}/{path:path}",
        access=ADMIN_OR_SERVICE,
        body=None if method == "GET" else _BODY,
        returns=Any,
        media_type="application/octet-stream",
        errors=(
            ServiceNotFound,
            ServiceRefused,
            ServiceUnreachable,
            ServiceSilent,
            BadGateway,
            PayloadTooLarge,
        ),
        long=True,
    )(forward)


for _method in _METHODS:
    _declare(_method)


def _rendered(service: ServiceOut) -> ProxyTarget:
    return ProxyTarget(
        service_name=service.service_name,
        service_type=service.service_type,
        health_status=service.health_status,
        endpoint=service.address.url(""),
        proxy_url=f"/v1/proxy/{service.service_name}",
        metadata=service.metadata,
    )
