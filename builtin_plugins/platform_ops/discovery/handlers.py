"""Routes of service discovery (spec 4.8, wire-facts 9.1), on the service's own port."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from builtin_plugins.platform_ops.discovery import records
from builtin_plugins.platform_ops.discovery.records import ServiceNotFound, ServiceOut, ServiceRegistration
from builtin_plugins.platform_ops.discovery.service_calls import (
    CALLING,
    ServiceRefused,
    ServiceSilent,
    ServiceUnreachable,
    as_platform_error,
)
from kernel.sdk import (
    ADMIN_OR_SERVICE,
    PUBLIC,
    Context,
    Message,
    OutgoingError,
    PageQuery,
    Platform,
    RouteTable,
    Unavailable,
    utc_now,
)

routes = RouteTable("Services")


class Registered(Message):
    """What was registered."""

    service: ServiceOut


class ServiceList(BaseModel):
    """A page of the registered services, by name."""

    services: list[ServiceOut]
    count: int = Field(description="Services on this page.")
    total: int
    limit: int
    offset: int


class ServiceHealth(BaseModel):
    """A service that is healthy."""

    service: str
    status: Literal["healthy"] = "healthy"
    health_data: Any = Field(description="What it reported: JSON, or its first 1,000 characters.")
    checked_at: datetime


class ServiceUnhealthy(Unavailable):
    code = "service_unhealthy"
    default_detail = "The service reports that it is unhealthy"


@routes.post("/v1/services/register", access=ADMIN_OR_SERVICE, body=ServiceRegistration, returns=Registered)
async def register(ctx: Context, body: ServiceRegistration) -> Registered:
    """Register a service, or move one that is registered.

    Its address must be on the operator's list, `PLATFORM_SERVICES_ALLOWED`.
    """
    ctx.resource(CALLING).check(body.address)
    service = await ctx.write(records.register, ctx.caller, body)
    return Registered(message=f"Service '{service.service_name}' is registered", service=service)


@routes.get("/v1/services", access=PUBLIC, query=PageQuery, returns=ServiceList)
async def index(ctx: Context, query: PageQuery) -> ServiceList:
    """List the registered services."""
    services, total = await ctx.read(records.listed, query)
    return ServiceList(
        services=services, count=len(services), total=total, limit=query.limit, offset=query.offset
    )


@routes.get("/v1/services/{service_name}", access=PUBLIC, returns=ServiceOut, errors=(ServiceNotFound,))
async def show(ctx: Context, service_name: str) -> ServiceOut:
    """Show a registered service."""
    return await ctx.read(records.find, service_name)


@routes.get(
    "/v1/services/{service_name}/health",
    access=ADMIN_OR_SERVICE,
    returns=ServiceHealth,
    errors=(ServiceNotFound, ServiceUnhealthy, ServiceRefused, ServiceUnreachable, ServiceSilent),
)
async def health(ctx: Context, service_name: str) -> ServiceHealth:
    """Check the health of a service."""
    service = await ctx.read(records.find, service_name)
    try:
        status, health_data = await _status_and_body(ctx, service)
    except OutgoingError as error:
        await ctx.write(records.note_health, service, "unhealthy")
        raise as_platform_error(error, service_name) from None
    is_healthy = 200 <= status < 300
    await ctx.write(records.note_health, service, "healthy" if is_healthy else "unhealthy")
    if not is_healthy:
        raise ServiceUnhealthy(f"'{service_name}' answered {status}")
    return ServiceHealth(service=service_name, health_data=health_data, checked_at=utc_now())


@routes.delete(
    "/v1/services/{service_name}", access=ADMIN_OR_SERVICE, returns=Message, errors=(ServiceNotFound,)
)
async def remove(ctx: Context, service_name: str) -> Message:
    """Remove a service from the list."""
    await ctx.write(records.remove, ctx.caller, service_name)
    return Message(message=f"Service '{service_name}' is no longer registered")


async def health_fields(platform: Platform) -> dict[str, Any]:
    """The fields of the service's `/health` besides its checks (spec 4.8)."""
    return {"services_registered": await platform.database.read(records.count)}


async def _status_and_body(ctx: Context, service: ServiceOut) -> tuple[int, Any]:
    client = ctx.resource(CALLING).client
    async with await client.call("GET", service.address.url(service.health_check_url)) as reply:
        body = await reply.read()
    try:
        return reply.status, json.loads(body)
    except ValueError:
        return reply.status, body.decode(errors="replace")[:1000]
