"""The path of a request: id and clock, error boundary, identity, rate limit, then its endpoint.

Read it from top to bottom. The headers of every response are added where it is written (`wire`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from kernel.db.outages import is_outage
from kernel.errors import (
    ANY_ERROR,
    BadRequest,
    NotFound,
    PayloadTooLarge,
    PlatformError,
    PluginFailed,
    PluginTooSlow,
    Unauthorized,
)
from kernel.gateway.services import mount_of
from kernel.hooks import failure_behind
from kernel.http.access_log import ACCESS_LOG
from kernel.http.addresses import ClientAddresses
from kernel.http.context import Context
from kernel.http.cors import Cors
from kernel.http.endpoint import WRITES
from kernel.http.error_formats import PLAIN_ERRORS
from kernel.http.identification import IDENTIFICATION
from kernel.http.request_limits import REQUEST_LIMITS
from kernel.http.router import Router, not_allowed
from kernel.http.spans import is_traced, traced
from kernel.http.streams import OPEN_STREAMS
from kernel.http.wire import HeadSent, Request
from kernel.logs import AccessEntry, request_id_var
from kernel.store_errors import store_error
from kernel.tracing import TRACING

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.http")


class Pipeline:
    """Serves the requests of one application (the gateway's or a service's)."""

    def __init__(self, platform: Platform, router: Router, cors: Cors, *, is_gateway: bool) -> None:
        self._platform = platform
        self._router = router
        self._cors = cors
        self._identification = platform.resource(IDENTIFICATION)
        self._limits = platform.resource(REQUEST_LIMITS)
        self._streams = platform.resource(OPEN_STREAMS)
        self._metrics = platform.metrics.requests
        self._access_log = platform.resource(ACCESS_LOG)
        self._tracing = platform.resource(TRACING)
        self._addresses = ClientAddresses(platform.settings.trusted_proxy_cidrs)
        self._is_gateway = is_gateway

    async def serve(self, request: Request) -> web.StreamResponse:
        """Serve any request, including unknown paths. aiohttp gives each its own task."""
        ctx = Context(self._platform, request, request.request_id, self._addresses.of(request))
        request_id_var.set(ctx.request_id)
        if self._tracing.tracer is not None and is_traced(ctx):
            return await traced(self._tracing, ctx, self._served)
        return await self._served(ctx)

    async def _served(self, ctx: Context) -> web.StreamResponse:
        """Serve the request; count and log it."""
        self._metrics.started(ctx.request.method)
        status = 500
        try:
            response = await self._guarded(ctx)
            status = response.status
            if ctx.request.awaits_go_ahead:  # the next bytes may be the unread body or another request
                response.force_close()
            ctx.request.forgo_body(response)
            return response
        except (asyncio.CancelledError, ConnectionResetError):
            status = 499
            raise
        finally:
            self._close(ctx, status)

    async def _guarded(self, ctx: Context) -> web.StreamResponse:
        """The error boundary: turns any error into what a client may see of it."""
        try:
            return await self._serve(ctx)
        except HeadSent:
            assert ctx.request.head_only is not None
            return ctx.request.head_only
        except ANY_ERROR as error:  # boundary: unknown errors become a plain 500
            if _client_left(ctx.request, error):
                raise
            return self._refuse(ctx, error)

    def _refuse(self, ctx: Context, error: BaseException) -> web.StreamResponse:
        """The response to an error. Only this function names the error: a frame that it passed through would
        hold it in a cycle, and collecting that costs as much as serving a request.
        """
        if isinstance(error, web.HTTPException) and error.status < 400:
            return error
        known = self._known(ctx, error)
        if not ctx.request.answering:
            return (ctx.error_format or PLAIN_ERRORS).respond(ctx, known)
        log.error("%s %s ended its response early: %s", ctx.request.method, ctx.endpoint, known.detail)
        raise _cut(ctx.request) from None

    def _known(self, ctx: Context, error: BaseException) -> PlatformError:
        """The error as a PlatformError; an unexpected one is logged."""
        if isinstance(error, PlatformError):
            return error
        if isinstance(error, web.HTTPException):
            return _from_aiohttp(error)
        if isinstance(error, web.RequestPayloadError | HttpProcessingError):
            return BadRequest("The body is damaged: it could not be decompressed")
        known = store_error(error, self._platform.disk)
        blamed = failure_behind(error)
        if known is None and blamed is not None:  # already logged
            kind = PluginTooSlow if isinstance(error, TimeoutError) else PluginFailed
            return kind(blamed.plugin, blamed.hook)
        if known is None:
            log.error("unexpected error in %s %s", ctx.request.method, ctx.endpoint, exc_info=error)
        return known or PlatformError()

    async def _serve(self, ctx: Context) -> web.StreamResponse:
        request = ctx.request
        target, ctx.match = await self._router.find(request)
        ctx.endpoint, ctx.error_format = target.label, target.error_format
        request.any_origin = target.any_origin
        request.heed_expectation()
        request.heed_coding()
        if self._cors.is_preflight(request):
            request.any_origin = await self._router.takes_any_origin(request)
            return self._cors.preflight(request)
        away = False
        try:
            ctx.principal = await self._identification.identify(
                ctx.platform, request, judge=not target.judges_credential
            )
        except ANY_ERROR as error:
            away = is_outage(error)
            raise
        finally:
            if self._is_gateway and not away:  # an outage: signed-in callers look anonymous
                await self._limits.check_general(ctx)
        if target.is_miss:
            self._gate(ctx)
        if ctx.principal.id is not None:
            request.principal, request.streams = ctx.principal, self._streams
        return await target.serve(ctx)

    def _gate(self, ctx: Context) -> None:
        """Require a token to write under a service's prefix, existing path or not (spec 5.1 rule 6)."""
        if ctx.request.method not in WRITES or ctx.principal.kind != "anonymous":
            return
        mount = mount_of(ctx.request.path) if self._is_gateway else None
        if mount is not None and mount.gated:
            raise Unauthorized()

    def _close(self, ctx: Context, status: int) -> None:
        elapsed = time.perf_counter() - ctx.request.started
        self._metrics.finished(ctx.request.method, ctx.endpoint, status, elapsed)
        if self._access_log.enabled:
            self._access_log.add(_entry(ctx, status, elapsed))


def _entry(ctx: Context, status: int, elapsed: float) -> AccessEntry:
    method = ctx.request.method if ctx.request.method.isalpha() else "?"
    subject = ctx.principal.subject or None
    return AccessEntry(
        time.time(), method, ctx.endpoint, status, round(elapsed * 1000, 2), ctx.request_id, subject
    )


def _client_left(request: web.Request, error: BaseException) -> bool:
    """Whether the lost connection was the client's, not one to a store behind the handler."""
    gone = request.transport is None or request.transport.is_closing()
    return gone and isinstance(error, ConnectionResetError)


def _cut(request: web.Request) -> ConnectionResetError:
    """Cut off a half-sent response: a clean end would make it look complete."""
    if request.transport is not None:
        request.transport.abort()
    return ConnectionResetError("the response was cut off")


def _from_aiohttp(error: web.HTTPException) -> PlatformError:
    """aiohttp's own errors as ours."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        return not_allowed(error.allowed_methods)
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
