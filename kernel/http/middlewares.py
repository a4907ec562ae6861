"""The path of a request as aiohttp's middlewares: log and metrics, error boundary, identity and rate limit.

Read it from top to bottom; middlewares of plugins come next, then the endpoint, which decides on access. The
headers of every response are added where it is written (`wire`).

The access log has one line per request, written in batches: formatting and writing each line by itself would
cost as much as serving a small request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from kernel.db.outages import is_outage
from kernel.db.store_errors import store_error
from kernel.errors import (
    ANY_ERROR,
    BadRequest,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    PlatformError,
    PluginFailed,
    PluginTooSlow,
    Unauthorized,
)
from kernel.gateway.services import mount_of
from kernel.hooks.calling import failure_behind
from kernel.http.access_control import ACCESS_CONTROL
from kernel.http.connection import Connection
from kernel.http.context import CONTEXT, ClientAddresses, Context
from kernel.http.error_formats import PLAIN_ERRORS
from kernel.http.rate_limits import REQUEST_LIMITS
from kernel.http.router import Router
from kernel.http.routes import WRITES
from kernel.http.streams import OPEN_STREAMS
from kernel.http.wire import Cors, HeadSent, Request
from kernel.observe.logs import AccessEntry, JsonFormatter, LogFormatter, request_id_var
from kernel.observe.tracing import TRACING
from kernel.plugins.offers import OFFERS
from kernel.plugins.resource_keys import ResourceKey

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.http")


def middlewares(platform: Platform, router: Router, cors: Cors, *, is_gateway: bool) -> Sequence[Middleware]:
    """Those of an application, the outermost first."""
    boundary = _Boundary(platform)
    return (
        _Observed(platform).observe,
        boundary.guard,
        _Admission(platform, router, cors, is_gateway=is_gateway).admit,
    )


class _Observed:
    """Opens each request's context; counts, logs and traces it."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._metrics = platform.metrics.requests
        self._access_log = platform.resource(ACCESS_LOG)
        self._tracing = platform.resource(TRACING)
        self._addresses = ClientAddresses(platform.settings.trusted_proxy_cidrs)

    @web.middleware
    async def observe(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Serve any request, including unknown paths. aiohttp gives each its own task."""
        assert isinstance(request, Request)
        ctx = Context(self._platform, request, request.request_id, self._addresses.of(request))
        request[CONTEXT] = ctx
        connection = request.protocol
        assert isinstance(connection, Connection)
        connection.begin_request()
        request_id_var.set(ctx.request_id)
        try:
            if self._tracing.tracer is not None:
                return await self._tracing.tracer.serve(request, partial(self._served, handler))
            return await self._served(handler, request)
        finally:
            connection.end_request()
            del request[CONTEXT]  # a cycle, which only the collector would free

    async def _served(self, handler: Handler, request: web.Request) -> web.StreamResponse:
        ctx = request[CONTEXT]
        self._metrics.started(ctx.request.method)
        status = 500
        try:
            response = await handler(ctx.request)
            status = response.status
            if ctx.request.awaits_go_ahead:  # the next bytes may be the unread body or another request
                response.force_close()
            _forgo_body(ctx.request, response)
            return response
        except (asyncio.CancelledError, ConnectionResetError):
            status = 499
            raise
        finally:
            self._close(ctx, status)

    def _close(self, ctx: Context, status: int) -> None:
        elapsed = time.perf_counter() - ctx.request.started
        self._metrics.finished(ctx.request.method, ctx.endpoint, status, elapsed)
        if self._access_log.enabled:
            self._access_log.add(_entry(ctx, status, elapsed))


class _Boundary:
    """Turns any error into what a client may see of it."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The error boundary."""
        assert isinstance(request, Request)
        try:
            return await handler(request)
        except HeadSent as sent:
            return sent.response
        except ANY_ERROR as error:  # boundary: unknown errors become a plain 500
            if _client_left(request, error):
                raise
            return self._refuse(request[CONTEXT], error)
        finally:
            request.is_handled = False

    def _refuse(self, ctx: Context, error: BaseException) -> web.StreamResponse:
        """The response to an error. Only this function names the error: a frame that it passed through would
        hold it in a cycle, and collecting that costs as much as serving a request.
        """
        if isinstance(error, web.HTTPException):
            error.__traceback__ = None  # the request keeps its match's error: another cycle
            if error.status < 400:
                return error
        failure = self._as_platform_error(ctx, error)
        if not ctx.request.answering:
            return (ctx.error_format or PLAIN_ERRORS).respond(ctx, failure)
        log.error("%s %s ended its response early: %s", ctx.request.method, ctx.endpoint, failure.detail)
        raise _cut(ctx.request) from None

    def _as_platform_error(self, ctx: Context, error: BaseException) -> PlatformError:
        """The error as a PlatformError; an unexpected one is logged."""
        if isinstance(error, PlatformError):
            return error
        if isinstance(error, web.HTTPException):
            return _from_aiohttp(error)
        if isinstance(error, web.RequestPayloadError | HttpProcessingError):
            return BadRequest("The body is damaged: it could not be decompressed")
        self._platform.database.note(error)
        failure = store_error(error, self._platform.disk)
        blamed = failure_behind(error)
        if failure is None and blamed is not None:  # already logged
            kind = PluginTooSlow if isinstance(error, TimeoutError) else PluginFailed
            return kind(blamed.plugin, blamed.hook)
        if failure is None:
            log.error("unexpected error in %s %s", ctx.request.method, ctx.endpoint, exc_info=error)
        return failure or PlatformError()


class _Admission:
    """Finds what a request asks for and who asks, and whether it may go on."""

    def __init__(self, platform: Platform, router: Router, cors: Cors, *, is_gateway: bool) -> None:
        self._platform = platform
        self._router = router
        self._cors = cors
        self._access = platform.resource(ACCESS_CONTROL)
        self._limits = platform.resource(REQUEST_LIMITS)
        self._streams = platform.resource(OPEN_STREAMS)
        self._is_gateway = is_gateway

    @web.middleware
    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Identify the sender and count the request."""
        assert isinstance(request, Request)
        ctx, match = request[CONTEXT], request.match_info
        target = await self._router.target_of(match, request)
        ctx.match, ctx.endpoint, ctx.error_format = match, target.label, target.error_format
        request.any_origin = target.any_origin
        request.heed_expectation()
        request.heed_coding()
        if self._cors.is_preflight(request):
            request.any_origin = await self._router.takes_any_origin(request)
            return self._cors.preflight(request)
        away = False
        try:
            ctx.principal = await self._access.identify(
                self._platform,
                request,
                judge=not target.judges_credential,
                attempts=self._limits.attempt(ctx) if self._is_gateway else None,
            )
        except ANY_ERROR as error:
            away = is_outage(error)
            raise
        finally:
            if self._is_gateway and not away:  # an outage: signed-in callers look anonymous
                await self._limits.check_general(ctx)
        if target.serve is None:
            self._gate(ctx)
        if ctx.principal.id is not None:
            request.principal, request.streams = ctx.principal, self._streams
        request.is_handled = True
        return await handler(request)

    def _gate(self, ctx: Context) -> None:
        """Require a token to write under a service's prefix, existing path or not (spec 5.1 rule 6)."""
        if ctx.request.method not in WRITES or ctx.principal.kind != "anonymous":
            return
        services = self._platform.resource(OFFERS).all_services.values() if self._is_gateway else ()
        mount = mount_of(ctx.request.path, services)
        if mount is not None and mount.gated:
            raise Unauthorized()


def _forgo_body(request: Request, response: web.StreamResponse) -> None:
    """Drop the rest of a compressed body that nobody read, and the connection with it.

    aiohttp would read it to the end: a few megabytes that expand to gigabytes block the loop for seconds.
    """
    if request.has_unread_coding:
        response.force_close()
        if isinstance(request.protocol, Connection):
            request.protocol.ignore_input()


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


access = logging.getLogger("platform.access")

_EVERY = 0.05
_BUNDLE = 200  # requests wait while a batch is written: 2,000 lines took 7 ms


class AccessLog:
    """Collects entries and hands them to the log's handlers many times a second."""

    def __init__(self) -> None:
        self._entries: list[AccessEntry] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def enabled(self) -> bool:
        """Whether the access log is on."""
        return access.isEnabledFor(logging.INFO)

    def add(self, entry: AccessEntry) -> None:
        """Write the entry soon."""
        self._entries.append(entry)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY, self.flush)
        elif len(self._entries) >= _BUNDLE:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        entries, self._entries = self._entries, []
        if entries:
            for handler in _handlers():
                _emit(handler, entries)


ACCESS_LOG: ResourceKey[AccessLog] = ResourceKey("access_log")


def _handlers() -> list[logging.Handler]:
    """The handlers that this logger's records would reach."""
    handlers: list[logging.Handler] = []
    logger: logging.Logger | None = access
    while logger is not None:
        handlers += [handler for handler in logger.handlers if handler.level <= logging.INFO]
        logger = logger.parent if logger.propagate else None
    return handlers


def _emit(handler: logging.Handler, entries: Sequence[AccessEntry]) -> None:
    formatter = handler.formatter
    if isinstance(handler, logging.StreamHandler) and isinstance(formatter, JsonFormatter | LogFormatter):
        text = "".join(f"{formatter.access_line(entry)}\n" for entry in entries)
        with handler.lock or nullcontext():
            handler.stream.write(text)
            handler.flush()
        return
    for entry in entries:
        handler.handle(_record(entry))


def _record(entry: AccessEntry) -> logging.LogRecord:
    message = f"{entry.method} {entry.endpoint} {entry.status}"
    record = logging.LogRecord(access.name, logging.INFO, __file__, 0, message, None, None)
    record.created = entry.time
    record.request_id = entry.request_id
    record.duration_ms = entry.duration_ms
    record.subject = entry.subject
    return record
