"""The route of container logs (spec 4.8, wire-facts 9.3)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Literal

from aiohttp import web
from pydantic import BaseModel, Field

from builtin_plugins.platform_ops.containers.engine import ENGINE_ERRORS, Container, engine_of
from builtin_plugins.platform_ops.containers.frames import ContainerLine
from builtin_plugins.platform_ops.logs.ring import CORE_SERVICES, GATEWAY, RING, Ring
from builtin_plugins.tools.api import Directory
from kernel.sdk import PLATFORM_ADMIN, Context, NotFound, RouteTable, send_events

routes = RouteTable("Logs")


class LogQuery(BaseModel):
    """How many lines, and whether to wait for more."""

    tail: int = Field(200, ge=1, le=2000, description="Number of last lines.")
    follow: bool = Field(False, description="Stream further lines, as server-sent events named `line`.")


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
    errors=(ContainerNotFound, *ENGINE_ERRORS),
    also_media_types=("text/event-stream",),
    long=True,
)
async def logs(ctx: Context, name: str, query: LogQuery) -> Logs | web.StreamResponse:
    """Show the last log lines of a core service: of its container, or of this process.

    With several processes, those of the process that answers.
    """
    if name not in CORE_SERVICES:
        raise ContainerNotFound()
    engine = engine_of(ctx.platform)
    if engine is not None and (container := _best(await engine.containers(), name)) is not None:
        if query.follow:
            return await send_events(
                ctx.request, _rendered(engine.follow(container, query.tail)), endless=True
            )
        return Logs(name=name, lines=[_out(line) for line in await engine.last_lines(container, query.tail)])
    if name != GATEWAY and name not in Directory(ctx.platform).services():
        raise ContainerNotFound()
    ring = ctx.resource(RING)
    if query.follow:
        return await send_events(ctx.request, _events(ring, name, query.tail), endless=True)
    return Logs(name=name, lines=[_line(text) for text in ring.last(name, query.tail)])


def _best(containers: Sequence[Container], service: str) -> Container | None:
    """A running container of the service, else one that has stopped."""
    own = [container for container in containers if container.service == service]
    return max(own, key=lambda container: container.running, default=None)


async def _rendered(lines: AsyncGenerator[ContainerLine, None]) -> AsyncGenerator[tuple[str, Any], None]:
    async with aclosing(lines):
        async for line in lines:
            yield "line", _out(line)


async def _events(ring: Ring, name: str, tail: int) -> AsyncGenerator[tuple[str, Any], None]:
    async with aclosing(ring.follow(name, tail)) as lines:
        async for text in lines:
            yield "line", _line(text)


def _out(line: ContainerLine) -> LogLine:
    return LogLine(stream=line.stream, text=line.text)


def _line(text: str) -> LogLine:
    return LogLine(stream="stderr", text=text)
