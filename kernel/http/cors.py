"""Cross-origin requests: the origins of `CORS_ALLOWED_ORIGINS`, all methods and headers (wire-facts 1.3)."""

from __future__ import annotations

from aiohttp import hdrs, web
from multidict import CIMultiDict

from kernel.settings_checks import split_list

Headers = tuple[tuple[str, str], ...]

_EXPOSED = (
    "X-Request-ID, X-Response-Time, Retry-After, Content-Disposition, X-Language, X-Duration, "
    "Accept-Ranges, Content-Range, ETag, WWW-Authenticate, Mcp-Session-Id"
)

_OPEN: Headers = ((hdrs.ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (hdrs.ACCESS_CONTROL_EXPOSE_HEADERS, _EXPOSED))


class Cors:
    """Answers preflights and adds headers. Credentials are off if any origin is allowed."""

    def __init__(self, origins: str) -> None:
        listed = split_list(origins)
        exposed = (hdrs.ACCESS_CONTROL_EXPOSE_HEADERS, _EXPOSED)
        if "*" in listed:
            self._without: Headers = ()
            self._any_origin: Headers = _OPEN
            self._known: dict[str, Headers] = {}
        else:
            self._without = ((hdrs.VARY, hdrs.ORIGIN),)
            self._any_origin = (*self._without, exposed)
            self._known = {origin: (*self._without, *_trust(origin), exposed) for origin in listed}

    def is_preflight(self, request: web.Request) -> bool:
        """Whether the request is a browser's preflight."""
        return request.method == "OPTIONS" and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers

    def preflight(self, request: web.Request) -> web.Response:
        """A 204 with what is allowed; the origin is added as to any response."""
        wanted = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "*")
        return web.Response(
            status=204,
            headers={
                hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, POST, PUT, PATCH, DELETE, OPTIONS",
                hdrs.ACCESS_CONTROL_ALLOW_HEADERS: wanted,
                hdrs.ACCESS_CONTROL_MAX_AGE: "600",
            },
        )

    def headers(self, origin: str | None, *, any_origin: bool = False) -> Headers:
        """The headers that let the sender's page read the response, if its origin (or any) is allowed."""
        if any_origin:
            return _OPEN
        return self._without if origin is None else self._known.get(origin, self._any_origin)

    def add_headers(self, origin: str | None, headers: CIMultiDict[str], *, any_origin: bool = False) -> None:
        """Add the CORS headers to a response. They replace its own, except that Vary is merged."""
        for name, value in self.headers(origin, any_origin=any_origin):
            if name == hdrs.VARY:
                headers.add(name, value)
            else:
                headers[name] = value


def _trust(origin: str) -> Headers:
    return ((hdrs.ACCESS_CONTROL_ALLOW_ORIGIN, origin), (hdrs.ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"))
