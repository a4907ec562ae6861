"""The streaming proxy to a service on another machine: bodies, event streams, time limits (wire-facts 1.3).

Both bodies are passed on as they arrive. If the client leaves, the connection to the service is closed, which
cancels the work there.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from kernel.sdk import (
    TRACING,
    BadGateway,
    Context,
    GatewayTimeout,
    Mount,
    PayloadTooLarge,
    Platform,
    PlatformError,
    Service,
    Unavailable,
    Unhealthy,
)
from kernel.sdk.http import end_to_end_headers, iter_body
from kernel.sdk.telemetry import carried_by_current

from .settings import RemoteServicesSettings

log = logging.getLogger("platform.proxy")

CONNECT_TIMEOUT = 10.0
TIMEOUT = 30.0
LONG_TIMEOUT = 300.0
_NOT_OUT = frozenset(
    {
        "host",
        "content-length",
        "x-forwarded-for",
        "x-service-token",
        "x-request-id",
        "expect",
    }
)
_NOT_BACK = frozenset(
    {
        "content-length",
        "content-encoding",
        "x-request-id",
        "x-response-time",
        "date",
        "server",
    }
)


class Proxy:
    """Forwards requests to services on other machines, over one connection pool."""

    def __init__(self, platform: Platform) -> None:
        settings = platform.settings
        self._tracing = platform.resource(TRACING)
        self._addresses = platform.settings_of(RemoteServicesSettings).addresses
        self.names = frozenset(self._addresses)
        self._limit = settings.max_proxy_body_size_mb * 1024 * 1024
        self._patience = settings.body_timeout
        self.timeout = TIMEOUT
        self.long_timeout = LONG_TIMEOUT
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the pool."""
        if self._session is not None:
            await self._session.close()

    async def fetch_health(self, name: str, seconds: float) -> dict[str, Any]:
        """The body of a service's `/health`, whatever its status. Raises Unhealthy."""
        url, timeout = f"{self._addresses[name]}/health", aiohttp.ClientTimeout(total=seconds)
        try:
            async with self._pool().get(url, timeout=timeout, allow_redirects=False) as answer:
                body = await answer.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            raise Unhealthy(f"it can't be reached: {type(error).__name__}") from None
        if not isinstance(body, dict):
            raise Unhealthy("it can't be reached: its answer is no JSON object")
        return body

    async def forward(self, ctx: Context, service: Service, mount: Mount) -> web.StreamResponse:
        """Forward the request and pass the response back."""
        request, base = ctx.request, self._addresses[service.name]
        mount.require_token_for_writes(ctx)
        if request.content_length is not None and request.content_length > self._limit:
            raise PayloadTooLarge(f"The body is larger than {self._limit} bytes")
        target = URL(base + mount.target_of(request.rel_url), encoded=True)
        seconds = self.long_timeout if service.long else self.timeout
        attributes = {"http.request.method": request.method, "platform.service": service.name}
        with self._tracing.span(request.method, "client", attributes) as span:
            response = await self._exchange(ctx, target, service.name, seconds)
            span.set("http.response.status_code", response.status)
            return response

    async def _exchange(self, ctx: Context, target: URL, name: str, seconds: float) -> web.StreamResponse:
        request, sent = ctx.request, _Sent()
        try:
            async with self._open(ctx, target, seconds, sent) as answer:
                return await self._pass_back(request, answer)
        except _Refused as refused:
            raise refused.error from None
        except (TimeoutError, aiohttp.ServerTimeoutError):
            raise sent.error or GatewayTimeout(f"{name} did not answer within {seconds:g} s") from None
        except aiohttp.ClientConnectorError:
            raise Unavailable(f"{name} is unreachable") from None
        except aiohttp.ClientError as error:
            if isinstance(error, ConnectionResetError) and _has_left(request):
                raise
            if sent.error is not None:
                raise sent.error from None
            log.warning("%s: %s", name, type(error).__name__)
            raise BadGateway(f"{name} sent an unreadable response") from None

    def _open(
        self, ctx: Context, target: URL, seconds: float, sent: _Sent
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        request = ctx.request
        body = self._body(request, sent) if request.can_read_body else None
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=seconds)
        return self._pool().request(
            request.method,
            target,
            headers=self._headers(ctx),
            data=body,
            allow_redirects=False,
            timeout=timeout,
            skip_auto_headers=("User-Agent", "Content-Type", "Accept-Encoding", "Accept"),
        )

    def _headers(self, ctx: Context) -> CIMultiDict[str]:
        headers = end_to_end_headers(ctx.request.headers, _NOT_OUT)
        if ctx.principal.is_service and "X-Service-Token" in ctx.request.headers:
            headers["X-Service-Token"] = ctx.request.headers["X-Service-Token"]
        if "Content-Encoding" in headers:
            # The body arrives here decompressed.
            del headers["Content-Encoding"]
        elif ctx.request.content_length is not None and ctx.request.can_read_body:
            headers["Content-Length"] = str(ctx.request.content_length)
        headers["X-Request-ID"] = ctx.request_id
        headers.update(carried_by_current())
        headers["X-Forwarded-For"] = ctx.client_ip
        return headers

    async def _body(self, request: web.Request, sent: _Sent) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in iter_body(request, self._patience):
                size += len(chunk)
                if size > self._limit:
                    raise PayloadTooLarge(f"The body is larger than {self._limit} bytes")
                yield chunk
        except PlatformError as error:
            sent.error = error
            raise _Refused(error) from None

    async def _pass_back(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(
            status=answer.status, headers=end_to_end_headers(answer.headers, _NOT_BACK)
        )
        if answer.content_length is not None and "Content-Encoding" not in answer.headers:
            response.content_length = answer.content_length
        await response.prepare(request)
        while chunk := await _next(answer):
            await response.write(chunk)
        await response.write_eof()
        return response

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0, limit_per_host=0, keepalive_timeout=30, ttl_dns_cache=30
            )
            self._session = aiohttp.ClientSession(
                connector=connector, auto_decompress=True, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


class _Sent:
    """An error in reading the client's body, not in the service."""

    def __init__(self) -> None:
        self.error: PlatformError | None = None


class _Refused(Exception):
    def __init__(self, error: PlatformError) -> None:
        self.error = error


def _has_left(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


async def _next(answer: aiohttp.ClientResponse) -> bytes:
    """The next piece of a service's response; empty at its end."""
    try:
        return await answer.content.readany()
    except (TimeoutError, aiohttp.ClientError, HttpProcessingError):
        # Half of the response is sent: the pipeline cuts the connection, the only honest end.
        raise BadGateway("The service's response ended early") from None
