"""The gateway's own routes: health, status, metrics, permissions (spec 4.6)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Literal

import aiohttp
from aiohttp import web
from pydantic import BaseModel, ConfigDict

from kernel import __version__
from kernel.auth.permissions import Permission
from kernel.errors import Unauthorized
from kernel.gateway.services import GATEWAY, SLOTS, Mount, Service, Slot
from kernel.health import Health, HealthCheck, run_checks
from kernel.http.context import Context
from kernel.http.endpoint import WRITES
from kernel.http.responses import Answer
from kernel.http.routes import AUTHENTICATED, PUBLIC, RouteTable
from kernel.metrics import CONTENT_TYPE
from kernel.plugins import PluginRecord

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.health")

routes = RouteTable("Operations")

_PROBE_TIMEOUT = 5.0
_TEXT_LIMIT = 200


class ServiceStatus(BaseModel):
    """One service in `GET /v1/status` (wire-facts 2.2)."""

    model_config = ConfigDict(extra="allow")

    name: str
    reachable: bool
    status: str
    version: str | None = None
    environment: str | None = None
    checks: dict[str, str] | None = None
    error: str | None = None


class StatusList(BaseModel):
    """All nine services."""

    services: list[ServiceStatus]


class Alive(BaseModel):
    """The process answers."""

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
    """Whether the process answers at all."""
    return Alive()


@routes.get("/readyz", access=PUBLIC, returns=Health, also_statuses=(503,))
async def readyz(ctx: Context) -> Answer:
    """Whether requests can be served; the same as /health."""
    body = await gateway_health(ctx.platform)
    return Answer(body, status=body.http_status)


@routes.get("/v1/status", access=PUBLIC, returns=StatusList)
async def status(ctx: Context) -> StatusList:
    """State of the nine services. Never fails: one that does not answer is `reachable: false`."""
    return StatusList(services=list(await asyncio.gather(*(_probe(ctx.platform, slot) for slot in SLOTS))))


@routes.get("/metrics", access=PUBLIC, media_type="text/plain", returns=str)
async def metrics(ctx: Context) -> web.Response:
    """Metrics in Prometheus text exposition format."""
    return web.Response(body=await ctx.platform.metrics.scrape(), headers={"Content-Type": CONTENT_TYPE})


@routes.get("/v1/permissions", access=AUTHENTICATED, returns=PermissionList, fixed=True)
async def permissions(ctx: Context) -> PermissionList:
    """All permission keys with their meaning."""
    known: list[Permission] = sorted(ctx.platform.permissions.values(), key=lambda p: p.key)
    shown = [PermissionOut(key=p.key, description=p.description, scope=p.scope) for p in known]
    return PermissionList(permissions=shown)


async def gateway_health(platform: Platform) -> Health:
    """Everything that this process checks."""
    checks = [*platform.kernel_checks(), *(check for _, check in _checks(platform))]
    plugins = {r.name: {"status": _status(platform, r), "reason": r.reason} for r in platform.plugins}
    for entry in await platform.directory.offered():
        plugins[entry.name] = {"status": entry.status, "reason": entry.reason or entry.problem}
    return await run_checks(GATEWAY, __version__, platform.settings.environment, checks, {"plugins": plugins})


def _checks(platform: Platform) -> list[tuple[str, HealthCheck]]:
    return [(plugin, check) for plugin, check in platform.health_checks if platform.is_on(plugin)]


def _status(platform: Platform, record: PluginRecord) -> str:
    return record.status if platform.is_on(record.name) else "disabled"


async def service_health(platform: Platform, service: Service) -> Health:
    """What a service's own `/health` says."""
    own = [check for _, check in _checks(platform) if check.service == service.name]
    database = HealthCheck("database", platform.database.ping, critical=True)
    extra = await _figures(platform, service)
    return await run_checks(
        service.name, service.version, platform.settings.environment, [database, *own], extra
    )


async def _figures(platform: Platform, service: Service) -> dict[str, Any]:
    """The service's own fields; none when it can't tell them, for health is asked when things go wrong."""
    if service.health_extra is None:
        return {}
    try:
        return await service.health_extra(platform)
    except Exception as error:  # noqa: BLE001 - the checks say what is wrong
        log.warning("%s can't tell its figures: %s", service.name, type(error).__name__)
        return {}


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


def require_token_for_writes(ctx: Context, mount: Mount) -> None:
    """The write gate of spec 5.1 rule 6, for what is forwarded."""
    if mount.gated and ctx.request.method in WRITES and ctx.principal.kind == "anonymous":
        raise Unauthorized()


async def _probe(platform: Platform, slot: Slot) -> ServiceStatus:
    if slot.name == GATEWAY:
        return _reached(slot, (await gateway_health(platform)).model_dump(include=_SHOWN))
    base = platform.settings.remote_services.get(slot.name)
    if base is not None:
        return await _probe_remote(platform, slot, base)
    if slot.name in platform.services:
        plugin, service = platform.services[slot.name]
        if not platform.is_on(plugin):
            return _unreachable(slot, f"the plugin '{plugin}' is disabled")
        body = await service_health(platform, service)
        return _reached(slot, body.model_dump(include=_SHOWN))
    return _unreachable(slot, "no plugin offers this service here")


_SHOWN = {"status", "version", "environment", "checks"}


async def _probe_remote(platform: Platform, slot: Slot, base: str) -> ServiceStatus:
    try:
        body = await platform.proxy.fetch_json(f"{base}/health", _PROBE_TIMEOUT)
    except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
        return _unreachable(slot, f"{type(error).__name__}")
    return _reached(slot, {key: body[key] for key in _SHOWN if key in body})


def _reached(slot: Slot, body: dict[str, Any]) -> ServiceStatus:
    return ServiceStatus(name=slot.name, reachable=True, **{"status": "unknown", **body})


def _unreachable(slot: Slot, why: str) -> ServiceStatus:
    return ServiceStatus(name=slot.name, reachable=False, status="unreachable", error=why[:_TEXT_LIMIT])
