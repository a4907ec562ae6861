"""A request as a span, by OpenTelemetry's semantic conventions for HTTP servers.

The recorded path is the route's template: the real one may contain a secret, such as an invitation's.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from kernel.sdk.http import CONTEXT
from kernel.sdk.telemetry import Carried, Tracing

_UNTRACED: Final = frozenset({"/health", "/livez", "/readyz", "/metrics"})
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_UNMATCHED: Final = "__unmatched__"
_CARRIERS: Final = ("traceparent", "tracestate")


async def traced(tracing: Tracing, request: web.Request, handler: Handler) -> web.StreamResponse:
    """Serve a request within a span, which continues the request's own trace, if it names one.

    Requests that monitors send every few seconds are not traced.
    """
    if request.path in _UNTRACED:
        return await handler(request)
    ctx = request[CONTEXT]
    method = request.method if request.method in _METHODS else "_OTHER"
    attributes = {
        "http.request.method": method,
        "url.scheme": request.scheme,
        "network.protocol.version": f"{request.version.major}.{request.version.minor}",
        "platform.request_id": ctx.request_id,
    }
    name = "HTTP" if method == "_OTHER" else method
    left = (ConnectionResetError,)  # the client disconnected: not a server error
    with tracing.span(name, "server", attributes, parent=_carried(request), expected=left) as span:
        try:
            response = await handler(request)
        finally:
            if ctx.endpoint != _UNMATCHED:
                span.rename(f"{name} {ctx.endpoint}")
                span.set("http.route", ctx.endpoint)
                span.set("url.path", ctx.endpoint)
        span.set("http.response.status_code", response.status)
        if response.status >= 500:
            span.fail(str(response.status))
        return response


def _carried(request: web.Request) -> Carried:
    return {name: request.headers[name] for name in _CARRIERS if name in request.headers}
