"""Passes a request on to a registered service, and its answer back; both bodies are streamed."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from builtin_plugins.platform_ops.discovery.records import ServiceOut
from builtin_plugins.platform_ops.discovery.service_calls import CALLING, as_platform_error
from kernel.sdk import (
    BadGateway,
    CallLimits,
    Context,
    OutgoingError,
    OutgoingReply,
    PayloadTooLarge,
    PlatformError,
)
from kernel.sdk.http import end_to_end_headers, iter_body

_LIMITS = CallLimits(total_seconds=None, connect_seconds=10, silence_seconds=30, body_bytes=sys.maxsize)
# Segments of /v1/proxy/{service_name}/, before the service's own path.
_OURS = 4
_IDENTITY = frozenset({"authorization", "cookie", "x-service-token"})
_NOT_OUT = frozenset(
    {"host", "content-length", "content-encoding", "accept-encoding", "expect", "x-request-id"}
    | {"forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"}
)
_NOT_BACK = frozenset(
    {"content-length", "content-encoding", "set-cookie", "date", "server", "x-request-id", "x-response-time"}
)


async def pass_on(ctx: Context, service: ServiceOut) -> web.StreamResponse:
    """Pass on what the service returns. Raises an error of the discovery if it fails."""
    calling, body = ctx.resource(CALLING), _Body(ctx)
    headers = _outward(ctx, trusted=calling.trusts(service.address))
    try:
        reply = await calling.client.call(
            ctx.request.method,
            _target(ctx, service),
            headers=headers,
            body=body.pieces() if ctx.request.can_read_body else None,
            limits=_LIMITS,
        )
    except OutgoingError as error:
        raise body.error or as_platform_error(error, service.service_name) from None
    async with reply:
        return await _back(ctx.request, reply)


def _target(ctx: Context, service: ServiceOut) -> URL:
    """The address at the service, with the path unchanged from the request."""
    request_url = ctx.request.rel_url
    path = "/" + "/".join(request_url.raw_path.split("/", _OURS)[_OURS:])
    query = f"?{request_url.raw_query_string}" if request_url.raw_query_string else ""
    return URL(service.address.url(path + query), encoded=True)


def _outward(ctx: Context, *, trusted: bool) -> CIMultiDict[str]:
    """The caller's headers; credentials only go to a trusted service."""
    request = ctx.request
    headers = end_to_end_headers(request.headers, _NOT_OUT | (frozenset() if trusted else _IDENTITY))
    was_compressed = "Content-Encoding" in request.headers  # then the content is longer now
    if request.content_length is not None and request.can_read_body and not was_compressed:
        headers["Content-Length"] = str(request.content_length)
    headers["X-Request-ID"] = ctx.request_id
    headers["X-Forwarded-For"] = ctx.client_ip
    return headers


class _Body:
    """The client's body as it is sent, and what went wrong while reading it."""

    def __init__(self, ctx: Context) -> None:
        settings: Any = ctx.platform.settings
        self._request = ctx.request
        self._limit = int(settings.max_proxy_body_size_mb) * 1024 * 1024
        self._patience = float(settings.body_timeout)
        self.error: PlatformError | None = None

    async def pieces(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in iter_body(self._request, self._patience):
                size += len(piece)
                if size > self._limit:
                    raise PayloadTooLarge(f"The body is larger than {self._limit} bytes")
                yield piece
        except PlatformError as error:
            self.error = error
            raise


async def _back(request: web.Request, reply: OutgoingReply) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status, headers=end_to_end_headers(reply.headers, _NOT_BACK))
    await response.prepare(request)
    try:
        async with aclosing(reply.pieces()) as pieces:
            async for piece in pieces:
                await response.write(piece)
    except OutgoingError:
        # The status has been sent, so the pipeline has to cut the connection.
        raise BadGateway("The service's response ended early") from None
    await response.write_eof()
    return response
