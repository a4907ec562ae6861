"""The route of container logs (spec 4.8, wire-facts 9.3)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal

from aiohttp import web
from pydantic import BaseModel, Field

from builtin_plugins.platform_ops.logs.ring import CORE_SERVICES, GATEWAY, RING, Ring
from kernel.sdk import DIRECTORY, PLATFORM_ADMIN, Context, NotFound, RouteTable, send_events

routes = RouteTable("Logs")


class LogQuery(BaseModel):
    """How many lines, and whether to wait for more."""

    tail: int = Field(200, ge=1, le=2000, description="Number of last lines.")
    follow: bool = Field(False, description="Stream what follows, as server-sent events called `line`.")


class LogLine(BaseModel):
    """A line of a service's log."""

    stream: Literal["stdout", "stderr"]
    text: str


class Logs(BaseModel):
    """The last lines of a service's log, oldest first."""

    name: str
    lines: list[LogLine]


class ContainerNotFound(NotFound):
    code = "container_not_found"
    default_detail = "No core service of this name runs here"


@routes.get(
    "/v1/containers/{name}/logs",
    access=PLATFORM_ADMIN,
    query=LogQuery,
    returns=Logs,
    errors=(ContainerNotFound,),
    also_media_types=("text/event-stream",),
    long=True,
)
async def logs(ctx: Context, name: str, query: LogQuery) -> Logs | web.StreamResponse:
    """Show the last log lines of a core service.

    With several processes, those of the process that answers.
    """
    runs_here = name == GATEWAY or name in ctx.resource(DIRECTORY).services()
    if name not in CORE_SERVICES or not runs_here:
        raise ContainerNotFound()
    ring = ctx.resource(RING)
    if query.follow:
        return await send_events(ctx.request, _events(ring, name, query.tail))
    return Logs(name=name, lines=[_line(text) for text in ring.last(name, query.tail)])


async def _events(ring: Ring, name: str, tail: int) -> AsyncGenerator[tuple[str, Any], None]:
    async with aclosing(ring.follow(name, tail)) as lines:
        async for text in lines:
            yield "line", _line(text)


def _line(text: str) -> LogLine:
    return LogLine(stream="stderr", text=text)
