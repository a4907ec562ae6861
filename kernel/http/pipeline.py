"""The way of a request: id and clock, error boundary, identity, rate limit, then its endpoint.

One middleware, read from top to bottom. Headers that every answer carries are added when it is prepared,
streams included.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from kernel.errors import (
    FAULTS,
    BadRequest,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    PlatformError,
    Unauthorized,
)
from kernel.gateway.services import mount_of
from kernel.http.addresses import ClientAddresses
from kernel.http.context import Context
from kernel.http.cors import Cors
from kernel.http.endpoint import WRITES
from kernel.http.responses import error_response
from kernel.logs import AccessEntry, request_id_var

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.http")

Serve = Callable[[Context], Awaitable[web.StreamResponse]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
CONTEXT: web.RequestKey[Context] = web.RequestKey("platform_context", Context)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:+/=@-]{1,128}")
_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
# The version and variant bits of a UUID: cleared, then set.
_UUID_MASK = ~(0xF << 76 | 0x3 << 62)
_UUID_MARKS = 0x4 << 76 | 0x2 << 62


class Pipeline:
    """Serves requests of one application (the gateway's, or one service's own)."""

    def __init__(self, platform: Platform, *, is_gateway: bool) -> None:
        self._platform = platform
        self._guard = platform.guard
        self._metrics = platform.metrics.requests
        self._access_log = platform.access_log
        self._addresses = ClientAddresses(platform.settings.trusted_proxy_cidrs)
        self._cors = Cors(platform.settings.cors_allowed_origins)
        self._is_gateway = is_gateway

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Around every request, unknown paths included."""
        ctx = self._open(request)
        token = request_id_var.set(ctx.request_id)
        self._metrics.started(request.method)
        status = 500
        try:
            response = await self._guarded(ctx, handler)
            status = response.status
            return response
        except (asyncio.CancelledError, ConnectionResetError):
            status = 499
            raise
        finally:
            self._close(ctx, status)
            request_id_var.reset(token)

    async def _guarded(self, ctx: Context, handler: Handler) -> web.StreamResponse:
        """The error boundary: what a client may see of anything that goes wrong."""
        try:
            return await self._serve(ctx, handler)
        except FAULTS as error:  # boundary: unknown errors become a plain 500
            if _client_left(ctx.request, error):
                raise
            if isinstance(error, web.HTTPException) and error.status < 400:
                return error
            known = self._known(ctx, error)
            if not ctx.answering:
                return error_response(known)
            log.error("%s %s broke off its answer: %s", ctx.request.method, ctx.endpoint, known.detail)
            raise _cut(ctx.request) from None

    def _known(self, ctx: Context, error: BaseException) -> PlatformError:
        """The error in the shape that clients know; one that nobody foresaw is logged."""
        if isinstance(error, PlatformError):
            return error
        if isinstance(error, web.HTTPException):
            return _from_aiohttp(error)
        if isinstance(error, web.RequestPayloadError | HttpProcessingError):
            return BadRequest("The body is damaged: its encoding could not be undone")
        known = self._platform.translate(error)
        if known is None:
            log.error("unexpected error in %s %s", ctx.request.method, ctx.endpoint, exc_info=error)
        return known or PlatformError()

    async def _serve(self, ctx: Context, handler: Handler) -> web.StreamResponse:
        if self._cors.is_preflight(ctx.request):
            return self._cors.preflight(ctx.request)
        endpoint = getattr(ctx.request.match_info.handler, "endpoint", None)
        try:
            ctx.principal = await self._guard.identify(
                ctx, judge=not (endpoint and endpoint.judges_credential)
            )
        finally:
            if self._is_gateway:
                await self._guard.limit(ctx)
        if ctx.request.match_info.http_exception is not None:
            self._gate(ctx)
        return await handler(ctx.request)

    def _gate(self, ctx: Context) -> None:
        """A write on a service's prefix needs a token (spec 5.1 rule 6), whether or not the path exists."""
        if ctx.request.method not in WRITES or ctx.principal.kind != "anonymous":
            return
        mount = mount_of(ctx.request.path) if self._is_gateway else None
        if mount is not None and mount.gated:
            raise Unauthorized()

    def _open(self, request: web.Request) -> Context:
        sent = request.headers.get("X-Request-ID", "")
        request_id = sent if _REQUEST_ID.fullmatch(sent) else _new_id()
        ctx = Context(self._platform, request, request_id, self._addresses.of(request), time.perf_counter())
        resource = request.match_info.route.resource
        ctx.endpoint = "__unmatched__" if resource is None else resource.canonical
        request[CONTEXT] = ctx
        return ctx

    def _close(self, ctx: Context, status: int) -> None:
        elapsed = time.perf_counter() - ctx.started
        self._metrics.finished(ctx.request.method, ctx.endpoint, status, elapsed)
        if self._access_log.enabled:
            self._access_log.add(_entry(ctx, status, elapsed))

    async def on_prepare(self, request: web.Request, response: web.StreamResponse) -> None:
        """Headers of every answer (wire-facts 1.3)."""
        headers = response.headers
        ctx = request.get(CONTEXT)
        if ctx is not None:
            ctx.answering = True
            headers["X-Request-ID"] = ctx.request_id
            headers["X-Response-Time"] = f"{(time.perf_counter() - ctx.started) * 1000:.2f}ms"
        headers["Server"] = "Platform"
        for name, value in _SECURITY_HEADERS.items():
            headers.setdefault(name, value)
        self._cors.add_headers(request, headers)


def _new_id() -> str:
    """A UUID (RFC 9562 version 4) as text, without the cost of a UUID object; it guards nothing."""
    bits = random.getrandbits(128) & _UUID_MASK | _UUID_MARKS
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _entry(ctx: Context, status: int, elapsed: float) -> AccessEntry:
    method = ctx.request.method if ctx.request.method.isalpha() else "?"
    subject = ctx.principal.subject or None
    return AccessEntry(
        time.time(), method, ctx.endpoint, status, round(elapsed * 1000, 2), ctx.request_id, subject
    )


def _client_left(request: web.Request, error: BaseException) -> bool:
    """Whether a lost connection was the client's own, and not one to a store behind the handler."""
    gone = request.transport is None or request.transport.is_closing()
    return gone and isinstance(error, ConnectionResetError)


def _cut(request: web.Request) -> ConnectionResetError:
    """End an answer that is half out: a clean end would pass for a whole one."""
    if request.transport is not None:
        request.transport.abort()
    return ConnectionResetError("the answer was cut off")


def _from_aiohttp(error: web.HTTPException) -> PlatformError:
    """aiohttp's own refusals in our shape."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        return MethodNotAllowed(headers={"Allow": ", ".join(sorted(error.allowed_methods))})
    if isinstance(error, web.HTTPNotFound):
        return NotFound()
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return PayloadTooLarge()
    return _plain(error.status, error.reason)


def _plain(status: int, reason: str) -> PlatformError:
    error = PlatformError(reason)
    error.status = status  # type: ignore[misc]  # aiohttp's own status, on this instance only
    error.code = reason.lower().replace(" ", "_")  # type: ignore[misc]
    return error
