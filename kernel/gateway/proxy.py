"""The streaming proxy to a service on another machine: bodies, event streams, time limits (wire-facts 1.3).

Both bodies are passed on as they arrive. If the client leaves, the connection to the service is closed, which
cancels the work there.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from kernel.errors import (
    BadGateway,
    GatewayTimeout,
    PayloadTooLarge,
    PlatformError,
    Unavailable,
)
from kernel.gateway.local import require_token_for_writes
from kernel.gateway.services import Mount, Slot
from kernel.http.context import Context
from kernel.http.forwarding import end_to_end_headers
from kernel.http.validation import iter_body
from kernel.resource_keys import ResourceKey
from kernel.settings import KernelSettings
from kernel.tracing import Tracing, carried_by_current

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

    def __init__(self, settings: KernelSettings, tracing: Tracing) -> None:
        self._tracing = tracing
        self._limit = settings.max_proxy_body_size_mb * 1024 * 1024
        self._patience = settings.body_timeout
        self.timeout = TIMEOUT
        self.long_timeout = LONG_TIMEOUT
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the pool."""
        if self._session is not None:
            await self._session.close()

    async def fetch_json(self, url: str, seconds: float) -> dict[str, Any]:
        """A JSON object from a service, whatever its status. Raises ClientError, TimeoutError, ValueError."""
        timeout = aiohttp.ClientTimeout(total=seconds)
        async with self._pool().get(url, timeout=timeout, allow_redirects=False) as answer:
            body = await answer.json(content_type=None)
        if not isinstance(body, dict):
            raise ValueError("not a JSON object")
        return body

    async def forward(self, ctx: Context, base: str, slot: Slot, mount: Mount) -> web.StreamResponse:
        """Forward the request and pass the response back."""
        request = ctx.request
        require_token_for_writes(ctx, mount)
        if request.content_length is not None and request.content_length > self._limit:
            raise PayloadTooLarge(f"The body is larger than {self._limit} bytes")
        target = URL(base + mount.target_of(request.rel_url), encoded=True)
        seconds = self.long_timeout if slot.long else self.timeout
        attributes = {"http.request.method": request.method, "platform.service": slot.name}
        with self._tracing.span(request.method, "client", attributes) as span:
            response = await self._exchange(ctx, target, slot, seconds)
            span.set("http.response.status_code", response.status)
            return response

    async def _exchange(self, ctx: Context, target: URL, slot: Slot, seconds: float) -> web.StreamResponse:
        request, sent = ctx.request, _Sent()
        try:
            async with self._open(ctx, target, seconds, sent) as answer:
                return await self._pass_back(request, answer)
        except _Refused as refused:
            raise refused.error from None
        except (TimeoutError, aiohttp.ServerTimeoutError):
            raise sent.error or GatewayTimeout(f"{slot.name} did not answer within {seconds:g} s") from None
        except aiohttp.ClientConnectorError:
            raise Unavailable(f"{slot.name} is unreachable") from None
        except aiohttp.ClientError as error:
            if isinstance(error, ConnectionResetError) and _has_left(request):
                raise
            if sent.error is not None:
                raise sent.error from None
            log.warning("%s: %s", slot.name, type(error).__name__)
            raise BadGateway(f"{slot.name} sent an unreadable response") from None

    def _open(
        self, ctx: Context, target: URL, seconds: float, sent: _Sent
    ) -> aiohttp.client._RequestContextManager:
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


PROXY: ResourceKey[Proxy] = ResourceKey("proxy")


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
