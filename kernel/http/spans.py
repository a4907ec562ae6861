"""A request as a span, by OpenTelemetry's semantic conventions for HTTP servers.

The recorded path is the route's template: the real one may contain a secret, such as an invitation's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from kernel.http.context import UNMATCHED, Context
from kernel.observe.metrics import METHODS
from kernel.observe.tracing import Carried, Tracing

_UNTRACED: Final = frozenset({"/health", "/livez", "/readyz", "/metrics"})
_CARRIERS: Final = ("traceparent", "tracestate")


def is_traced(ctx: Context) -> bool:
    """Whether a request is traced; those that monitors send every few seconds are not."""
    return ctx.request.path not in _UNTRACED


async def traced(
    tracing: Tracing, ctx: Context, serve: Callable[[], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Serve a request within a span, which continues the request's own trace, if it names one."""
    request = ctx.request
    method = request.method if request.method in METHODS else "_OTHER"
    attributes = {
        "http.request.method": method,
        "url.scheme": request.scheme,
        "network.protocol.version": f"{request.version.major}.{request.version.minor}",
        "platform.request_id": ctx.request_id,
    }
    name = "HTTP" if method == "_OTHER" else method
    left = (ConnectionResetError,)  # the client disconnected: not a server error
    with tracing.span(name, "server", attributes, parent=_carried(ctx), expected=left) as span:
        try:
            response = await serve()
        finally:
            if ctx.endpoint != UNMATCHED:
                span.rename(f"{name} {ctx.endpoint}")
                span.set("http.route", ctx.endpoint)
                span.set("url.path", ctx.endpoint)
        span.set("http.response.status_code", response.status)
        if response.status >= 500:
            span.fail(str(response.status))
        return response


def _carried(ctx: Context) -> Carried:
    headers = ctx.request.headers
    return {name: headers[name] for name in _CARRIERS if name in headers}
