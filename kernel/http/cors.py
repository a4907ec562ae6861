"""Cross-origin requests: the origins of `CORS_ALLOWED_ORIGINS`, all methods and headers (wire-facts 1.3)."""

from __future__ import annotations

from aiohttp import hdrs, web
from multidict import CIMultiDict

from kernel.settings import split_list

_EXPOSED = "X-Request-ID, X-Response-Time, Retry-After, Content-Disposition, X-Language, X-Duration"


class Cors:
    """Answers preflights and adds headers. Credentials are off while any origin is allowed."""

    def __init__(self, origins: str) -> None:
        self._origins = frozenset(split_list(origins))
        self._any = "*" in self._origins

    def is_preflight(self, request: web.Request) -> bool:
        """A browser asking whether it may send something."""
        return request.method == "OPTIONS" and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers

    def preflight(self, request: web.Request) -> web.Response:
        """204 with what is allowed; the origin is added like to any answer."""
        wanted = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "*")
        return web.Response(
            status=204,
            headers={
                hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, POST, PUT, PATCH, DELETE, OPTIONS",
                hdrs.ACCESS_CONTROL_ALLOW_HEADERS: wanted,
                hdrs.ACCESS_CONTROL_MAX_AGE: "600",
            },
        )

    def add_headers(self, request: web.Request, headers: CIMultiDict[str]) -> None:
        """Let the sender's page read the answer, where its origin is allowed."""
        if not self._any:
            headers.add(hdrs.VARY, hdrs.ORIGIN)
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None:
            return
        if self._any:
            headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = "*"
        elif origin in self._origins:
            headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            headers[hdrs.ACCESS_CONTROL_ALLOW_CREDENTIALS] = "true"
        headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = _EXPOSED
