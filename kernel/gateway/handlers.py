"""The gateway's own routes: health, status, metrics, permissions (spec 4.6)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import aiohttp
from aiohttp import web
from pydantic import BaseModel, ConfigDict

from kernel.auth.permissions import Permission
from kernel.gateway.health import gateway_health, service_health
from kernel.gateway.proxy import PROXY
from kernel.gateway.services import GATEWAY, SLOTS, Service, Slot
from kernel.health import Health
from kernel.http.context import Context
from kernel.http.responses import Answer
from kernel.http.routes import AUTHENTICATED, PUBLIC, RouteTable
from kernel.metrics import CONTENT_TYPE
from kernel.offers import OFFERS

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
    """The state of all nine services."""

    services: list[ServiceStatus]


class Alive(BaseModel):
    """The process responds."""

    status: str = "alive"


class PermissionOut(BaseModel):
    """A permission key and what it allows."""

    key: str
    description: str
    scope: Literal["instance", "organization", "team"]


class PermissionList(BaseModel):
    """Every declared permission."""

    permissions: list[PermissionOut]


@routes.get("/health", access=PUBLIC, returns=Health, also_statuses=(503,))
async def health(ctx: Context) -> Answer:
    """Health of the gateway and of everything in its process; 503 when a critical check fails."""
    body = await gateway_health(ctx.platform)
    return Answer(body, status=body.http_status)


@routes.get("/livez", access=PUBLIC, returns=Alive, fixed=True)
async def livez(_ctx: Context) -> Alive:
    """Check that the process responds."""
    return Alive()


@routes.get("/readyz", access=PUBLIC, returns=Health, also_statuses=(503,))
async def readyz(ctx: Context) -> Answer:
    """Check that requests can be served; the same as /health."""
    body = await gateway_health(ctx.platform)
    return Answer(body, status=body.http_status)


@routes.get("/v1/status", access=PUBLIC, returns=StatusList)
async def status(ctx: Context) -> StatusList:
    """Show the state of the nine services. Never fails: a service that does not respond is shown as
    `reachable: false`.
    """
    return StatusList(services=list(await asyncio.gather(*(_probe(ctx.platform, slot) for slot in SLOTS))))


@routes.get("/metrics", access=PUBLIC, media_type="text/plain", returns=str)
async def metrics(ctx: Context) -> web.Response:
    """Get metrics in the Prometheus text format."""
    return web.Response(body=await ctx.platform.metrics.scrape(), headers={"Content-Type": CONTENT_TYPE})


@routes.get("/v1/permissions", access=AUTHENTICATED, returns=PermissionList, fixed=True)
async def permissions(ctx: Context) -> PermissionList:
    """List all permission keys with their meaning."""
    known: list[Permission] = sorted(ctx.platform.permissions.values(), key=lambda p: p.key)
    shown = [PermissionOut(key=p.key, description=p.description, scope=p.scope) for p in known]
    return PermissionList(permissions=shown)


def service_routes(service: Service) -> RouteTable:
    """Routes that every service has at its root."""
    table = RouteTable("Operations")

    @table.get("/health", access=PUBLIC, returns=Health, also_statuses=(503,))
    async def health(ctx: Context) -> Answer:
        """Health of the service."""
        body = await service_health(ctx.platform, service)
        return Answer(body, status=body.http_status)

    table.get("/metrics", access=PUBLIC, media_type="text/plain", returns=str)(metrics)
    return table


async def _probe(platform: Platform, slot: Slot) -> ServiceStatus:
    if slot.name == GATEWAY:
        return _reached(slot, (await gateway_health(platform)).model_dump(include=_SHOWN))
    base = platform.settings.remote_services.get(slot.name)
    if base is not None:
        return await _probe_remote(platform, slot, base)
    offered = platform.resource(OFFERS).services.get(slot.name)
    if offered is not None:
        plugin, service = offered
        if not platform.is_on(plugin):
            return _unreachable(slot, f"the plugin '{plugin}' is disabled")
        body = await service_health(platform, service)
        return _reached(slot, body.model_dump(include=_SHOWN))
    return _unreachable(slot, "no plugin offers this service here")


_SHOWN = {"status", "version", "environment", "checks"}


async def _probe_remote(platform: Platform, slot: Slot, base: str) -> ServiceStatus:
    try:
        body = await platform.resource(PROXY).fetch_json(f"{base}/health", _PROBE_TIMEOUT)
    except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
        return _unreachable(slot, f"{type(error).__name__}")
    return _reached(slot, {key: body[key] for key in _SHOWN if key in body})


def _reached(slot: Slot, body: dict[str, Any]) -> ServiceStatus:
    return ServiceStatus(name=slot.name, reachable=True, **{"status": "unknown", **body})


def _unreachable(slot: Slot, why: str) -> ServiceStatus:
    return ServiceStatus(name=slot.name, reachable=False, status="unreachable", error=why[:_TEXT_LIMIT])
