"""Responses: JSON from models, the shared page envelope, server-sent events."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from aiohttp import ClientConnectionResetError, web
from pydantic import BaseModel, Field

from kernel.errors import ANY_ERROR, PlatformError, Unauthorized, Unavailable
from kernel.http.wire import JSON, BodyResponse, Request

T = TypeVar("T")

log = logging.getLogger("platform.http")

ALIVE_EVERY = 15.0
"""Seconds of silence after which a stream sends a comment. By default, proxies cut it after 60."""

_ALIVE = b": still at work\n\n"


class Message(BaseModel):
    """A response that only says what was done."""

    message: str


class PageQuery(BaseModel):
    """Which part of a list to return."""

    limit: int = Field(50, ge=1, le=500, description="Largest number of items to return.")
    offset: int = Field(0, ge=0, le=2**53, description="Number of items to skip.")


class Page(BaseModel, Generic[T]):
    """One page of a list; `total` counts all items."""

    items: list[T]
    total: int
    limit: int
    offset: int


@dataclass
class Answer:
    """A response whose status or headers differ from the declared ones."""

    value: Any
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)


def json_response(
    body: bytes, status: int = 200, headers: dict[str, str] | None = None, content_type: str = JSON
) -> web.Response:
    """A response with a body that is already JSON."""
    if not headers:
        return BodyResponse(body, status, content_type)
    return web.Response(body=body, status=status, headers=headers, content_type=content_type)


async def send_events(
    request: web.Request, events: AsyncGenerator[tuple[str, Any], None], *, endless: bool = False
) -> web.StreamResponse:
    """Stream (name, JSON value) pairs as server-sent events, and an error as `error`; see `send_stream`."""
    return await send_stream(request, _framed(events), _failed_event, endless=endless)


async def send_stream(
    request: web.Request,
    frames: AsyncGenerator[bytes, None],
    failed: Callable[[PlatformError], bytes],
    *,
    endless: bool = False,
) -> web.StreamResponse:
    """Stream server-sent events that are already encoded. Raises TooManyStreams before the first.

    An error before the stream has begun is an ordinary error response. A later one, or the end of the
    caller's session, is sent as `failed` encodes it, as the status has already been sent. The stream begins
    with its first event, or with the first comment: one is sent after each silence of `ALIVE_EVERY` seconds,
    because proxies cut what is silent; headers keep them from buffering. When the server stops, an `endless`
    stream (one that follows something) ends at once, any other at the end of the grace period. When the
    client leaves, the generator is closed.
    """
    async with _one_by_one(frames) as take:
        if isinstance(request, Request):
            request.admit_stream()
        first = await take()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Accel-Buffering"] = "no"
        await response.prepare(request)
        try:
            async with _while_session_lasts(request, endless):
                frame = first
                while frame is not None:
                    await response.write(frame)
                    frame = await take()
        except (ConnectionError, ClientConnectionResetError):
            raise
        except PlatformError as error:
            await response.write(failed(error))
        except ANY_ERROR:  # boundary: the status has been sent, so the stream must report the error
            log.exception("a stream broke")
            await response.write(failed(PlatformError()))
    await response.write_eof()
    return response


@asynccontextmanager
async def _one_by_one(
    frames: AsyncGenerator[bytes, None],
) -> AsyncIterator[Callable[[], Awaitable[bytes | None]]]:
    """A function that gives the next frame, a comment after a silence, or None at the end.

    The generator runs in a task of its own, so that waiting for it can be interrupted; it goes on when its
    frame was used.
    """
    ready: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()

    async def make() -> None:
        try:
            async with aclosing(frames):
                async for frame in frames:
                    await ready.put(frame)
                    await ready.join()
            await ready.put(None)
        except ANY_ERROR as error:  # boundary: raised to the one that takes
            await ready.put(error)

    in_use = False

    async def take() -> bytes | None:
        nonlocal in_use
        if in_use:
            ready.task_done()
            in_use = False
        try:
            async with asyncio.timeout(ALIVE_EVERY):
                frame = await ready.get()
        except TimeoutError:
            return _ALIVE
        if isinstance(frame, BaseException):
            raise frame
        in_use = True
        return frame

    task = asyncio.create_task(make(), name="stream")
    try:
        yield take
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _framed(events: AsyncGenerator[tuple[str, Any], None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        async for name, value in events:
            yield _event(name, value)


class SessionEnded(Unauthorized):
    code = "session_revoked"
    default_detail = "The session was revoked; sign in again"


class ServerStopping(Unavailable):
    code = "server_stopping"
    default_detail = "The server is stopping; connect again"


@asynccontextmanager
async def _while_session_lasts(request: web.Request, endless: bool) -> AsyncIterator[None]:
    """Stop the block with SessionEnded when the caller's session is over, or with ServerStopping before the
    server stops.
    """
    stream = request.stream if isinstance(request, Request) else None
    if stream is None:
        yield
        return
    stream.endless = endless
    try:
        async with stream.ending_softly() as limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise (ServerStopping() if stream.stops else SessionEnded()) from None
        raise


def _failed_event(error: PlatformError) -> bytes:
    return _event("error", {"detail": error.detail, "code": error.code})


def _event(name: str, value: Any) -> bytes:
    return f"event: {name}\ndata: {_dump(value)}\n\n".encode()


def _dump(value: Any) -> str:
    return value.model_dump_json() if isinstance(value, BaseModel) else json.dumps(value, ensure_ascii=False)
