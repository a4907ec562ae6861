"""The gateway's own routes: health, status, metrics (spec 4.6)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from kernel.errors import Unhealthy
from kernel.gateway.health import HEALTH_REPORTS, gateway_health, service_health
from kernel.gateway.services import GATEWAY, REMOTE_SERVICES, RemoteServices, Service, in_order
from kernel.http.context import Context
from kernel.http.responses import Answer
from kernel.http.routes import PUBLIC, RouteTable
from kernel.observe.health import Health
from kernel.observe.metrics import CONTENT_TYPE
from kernel.plugins.offers import OFFERS

if TYPE_CHECKING:
    from kernel.platform import Platform

routes = RouteTable("Operations")

_PROBE_TIMEOUT = 5.0
_TEXT_LIMIT = 200


class ServiceStatus(BaseModel):
    """The state of one service."""

    model_config = ConfigDict(extra="allow")

    name: str
    reachable: bool
    status: str
    version: str | None = None
    environment: str | None = None
    checks: dict[str, str] | None = None
    error: str | None = None


class StatusList(BaseModel):
    """The state of all services."""

    services: list[ServiceStatus]


class Alive(BaseModel):
    """The process responds."""

    status: str = "alive"


@routes.get("/health", access=PUBLIC, returns=Health, also_statuses=(503,))
async def health(ctx: Context) -> Answer:
    """Health of the gateway and of everything in its process; 503 when a critical check fails."""
    body = await ctx.resource(HEALTH_REPORTS).get(gateway_health)
    return Answer(body, status=body.http_status)


@routes.get("/livez", access=PUBLIC, returns=Alive, fixed=True)
async def livez(_ctx: Context) -> Alive:
    """Check that the process responds."""
    return Alive()


@routes.get("/readyz", access=PUBLIC, returns=Health, also_statuses=(503,))
async def readyz(ctx: Context) -> Answer:
    """Check that requests can be served; the same as /health."""
    body = await ctx.resource(HEALTH_REPORTS).get(gateway_health)
    return Answer(body, status=body.http_status)


@routes.get("/v1/status", access=PUBLIC, returns=StatusList)
async def status(ctx: Context) -> StatusList:
    """Show the state of the gateway and of each service. Never fails: a service that does not respond is
    shown as `reachable: false`.
    """
    return await ctx.resource(HEALTH_REPORTS).get(_status)


async def _status(platform: Platform) -> StatusList:
    gateway = _reached(GATEWAY, (await gateway_health(platform)).model_dump(include=_SHOWN))
    services = in_order(platform.resource(OFFERS).all_services.values())
    return StatusList(services=[gateway, *await asyncio.gather(*(_probe(platform, one) for one in services))])


@routes.get("/metrics", access=PUBLIC, media_type="text/plain", returns=str)
async def metrics(ctx: Context) -> web.Response:
    """Get metrics in the Prometheus text format."""
    return web.Response(body=await ctx.platform.metrics.scrape(), headers={"Content-Type": CONTENT_TYPE})


def service_routes(service: Service) -> RouteTable:
    """Routes that every service has at its root."""
    table = RouteTable("Operations")
    report = partial(service_health, service=service)

    @table.get("/health", access=PUBLIC, returns=Health, also_statuses=(503,))
    async def health(ctx: Context) -> Answer:
        """Health of the service."""
        body = await ctx.resource(HEALTH_REPORTS).get(report)
        return Answer(body, status=body.http_status)

    table.get("/metrics", access=PUBLIC, media_type="text/plain", returns=str)(metrics)
    return table


async def _probe(platform: Platform, service: Service) -> ServiceStatus:
    name = service.name
    remote = platform.resources.find(REMOTE_SERVICES)
    if remote is not None and name in remote.names:
        return await _probe_remote(remote, name)
    offered = platform.resource(OFFERS).services.get(name)
    if offered is None:
        return _unreachable(name, "no plugin offers this service here")
    plugin, implementation = offered
    if not platform.is_on(plugin):
        return _unreachable(name, f"the plugin '{plugin}' is disabled")
    return _reached(name, (await service_health(platform, implementation)).model_dump(include=_SHOWN))


_SHOWN = {"status", "version", "environment", "checks"}


async def _probe_remote(remote: RemoteServices, name: str) -> ServiceStatus:
    try:
        body = await remote.fetch_health(name, _PROBE_TIMEOUT)
    except Unhealthy as error:
        return _unreachable(name, str(error))
    return _reached(name, {key: body[key] for key in _SHOWN if key in body})


def _reached(name: str, body: dict[str, Any]) -> ServiceStatus:
    return ServiceStatus(name=name, reachable=True, **{"status": "unknown", **body})


def _unreachable(name: str, why: str) -> ServiceStatus:
    return ServiceStatus(name=name, reachable=False, status="unreachable", error=why[:_TEXT_LIMIT])
