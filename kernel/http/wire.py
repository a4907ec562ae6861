"""Requests with an id and a clock, the headers of every response, and a fast way to write them.

aiohttp builds a response's head from a multidict in five steps, which with our headers costs a third of
serving a small request. A response that is only a body needs none of them (`BodyResponse`).

Cross-origin requests are allowed from `CORS_ALLOWED_ORIGINS`, with all methods and headers (wire-facts 1.3).
"""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

from aiohttp import HttpVersion11, MultipartReader, StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from multidict import CIMultiDict

from kernel.auth.principals import ANONYMOUS, Principal
from kernel.errors import BadRequest, UnsupportedMediaType
from kernel.http.downloads import WHOLE, part_of
from kernel.http.streams import OpenStream, OpenStreams
from kernel.settings.checks import split_list

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
            self._by_origin: dict[str, Headers] = {}
        else:
            self._without = ((hdrs.VARY, hdrs.ORIGIN),)
            self._any_origin = (*self._without, exposed)
            self._by_origin = {origin: (*self._without, *_trust(origin), exposed) for origin in listed}

    def is_preflight(self, request: web.Request) -> bool:
        """Whether the request is a browser's preflight."""
        return request.method == "OPTIONS" and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers

    def preflight(self, request: web.Request) -> web.Response:
        """A 204 with what is allowed; the origin is added as to any response."""
        allowed_headers = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "*")
        return web.Response(
            status=204,
            headers={
                hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, POST, PUT, PATCH, DELETE, OPTIONS",
                hdrs.ACCESS_CONTROL_ALLOW_HEADERS: allowed_headers,
                hdrs.ACCESS_CONTROL_MAX_AGE: "600",
            },
        )

    def headers(self, origin: str | None, *, any_origin: bool = False) -> Headers:
        """The headers that let the sender's page read the response, if its origin (or any) is allowed."""
        if any_origin:
            return _OPEN
        return self._without if origin is None else self._by_origin.get(origin, self._any_origin)

    def add_headers(self, origin: str | None, headers: CIMultiDict[str], *, any_origin: bool = False) -> None:
        """Add the CORS headers to a response. They replace its own, except that Vary is merged."""
        for name, value in self.headers(origin, any_origin=any_origin):
            if name == hdrs.VARY:
                headers.add(name, value)
            else:
                headers[name] = value


def _trust(origin: str) -> Headers:
    return ((hdrs.ACCESS_CONTROL_ALLOW_ORIGIN, origin), (hdrs.ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"))


JSON = "application/json"

_SERVER = "Platform"
_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
_WITHOUT_BODY = frozenset({204, 304})

_PLAIN_CODINGS = frozenset({"", "identity"})
_CODINGS = "gzip, deflate"

TOO_LATE = web.RequestKey("too_late", str)
"""The plugin that did not identify the sender in time."""


def unknown_coding() -> UnsupportedMediaType:
    """The error for a body that the server has no decoder for (RFC 9110, 15.5.16)."""
    detail = f"The body's Content-Encoding is not supported; send it uncompressed, or as one of: {_CODINGS}"
    return UnsupportedMediaType(detail, headers={hdrs.ACCEPT_ENCODING: _CODINGS})


class HeadSent(ConnectionResetError):
    """Stops a handler that begins to stream the response to HEAD, as a lost client would.

    aiohttp would send the body, and the client (behind a proxy, somebody else) would take it for the
    connection's next response.
    """

    def __init__(self, response: web.StreamResponse) -> None:
        super().__init__("the response to HEAD is complete")
        headers = response.headers.copy()
        self.response = web.Response(status=response.status, reason=response.reason, headers=headers)


class Request(web.Request):
    """A request and the state of its response; `answering` means that the response has begun.

    With `any_origin`, pages of any origin may read it. `streams` watches a response that streams on behalf of
    `principal`, as `stream`. While a handler runs, it `is_handled`. `coding` is that of a compressed body.
    With `awaits_go_ahead`, the client sends the body only after a 100, which reading the body sends; a
    refusal before that saves the transfer.
    """

    ATTRS = web.Request.ATTRS | {
        *("answering", "any_origin", "common", "principal", "request_id", "started", "stream", "streams"),
        *("awaits_go_ahead", "coding", "expectation", "is_handled"),
    }

    common: CommonHeaders | None = None
    request_id: str = ""
    started: float = 0.0
    answering: bool = False
    any_origin: bool = False
    principal: Principal = ANONYMOUS
    streams: OpenStreams | None = None
    stream: OpenStream | None = None
    is_handled: bool = False
    coding: str | None = None
    expectation: str | None = None
    awaits_go_ahead: bool = False

    def heed_expectation(self) -> None:
        """Note if the client awaits a 100 (RFC 9110, 10.1.1), or raise HTTPExpectationFailed."""
        if self.expectation is None or self.version < HttpVersion11:
            return
        self.awaits_go_ahead = self.can_read_body
        if self.expectation.lower() != "100-continue":
            raise web.HTTPExpectationFailed()

    def heed_coding(self) -> None:
        """Refuse a body that there is no decoder for; otherwise it would be read undecoded.

        Raises UnsupportedMediaType, and BadRequest for a transfer coding.
        """
        if not self.can_read_body:
            return
        transfer = self.headers.get(hdrs.TRANSFER_ENCODING, "chunked")
        if transfer.lower() != "chunked":
            raise BadRequest("The body's Transfer-Encoding is not supported; use 'chunked'")
        codings = self.headers.getall(hdrs.CONTENT_ENCODING, None)
        if codings is None:
            return
        can_decode = self.coding is not None and len(codings) == 1
        if not can_decode and {coding.strip().lower() for coding in codings} - _PLAIN_CODINGS:
            raise unknown_coding()

    @property
    def has_unread_coding(self) -> bool:
        """Whether a compressed body was not read to its end."""
        return self.coding is not None and not super().content.is_eof()

    @property
    def content(self) -> StreamReader:
        """The body. A client that waits for a 100 is told to send it."""
        self._go_ahead()
        return super().content

    async def read(self) -> bytes:
        """The whole body."""
        self._go_ahead()
        return await super().read()

    async def multipart(self) -> MultipartReader:
        """The body as a form."""
        self._go_ahead()
        return await super().multipart()

    def _go_ahead(self) -> None:
        if self.awaits_go_ahead and not self.answering and self.transport is not None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.awaits_go_ahead = False

    @property
    def http_range(self) -> slice:
        """The requested part of a file; aiohttp's own refuses headers that must be ignored."""
        if self.method != hdrs.METH_GET:
            return WHOLE
        return part_of(self.headers.getall(hdrs.RANGE, []))

    def admit_stream(self) -> None:
        """Raise TooManyStreams if the caller has as many streams open as it may."""
        if self.streams is not None:
            self.streams.admit(self.principal)

    def watch_stream(self) -> None:
        """Cut the response off when the session of its caller is over."""
        if self.streams is not None:
            self.stream = self.streams.watch(self.principal, self._cut)

    def _cut(self) -> None:
        """Cut the connection: aiohttp then cancels the task that writes the response."""
        if self.transport is not None:
            self.transport.abort()


def _is_streaming(response: web.StreamResponse) -> bool:
    return not isinstance(response, web.Response) or isinstance(response.body, Payload)


class CommonHeaders:
    """The headers of every response (wire-facts 1.3): added to one, or as the text of a complete head."""

    def __init__(self, cors: Cors) -> None:
        self._cors = cors
        self._heads: dict[tuple[Any, ...], str] = {}
        self._second = 0
        self._now = ""

    async def prepare(self, request: web.Request, response: web.StreamResponse) -> None:
        """aiohttp's signal before the head of a response is written."""
        assert isinstance(request, Request)
        streaming = _is_streaming(response)
        if streaming and request.is_handled and request.method == hdrs.METH_HEAD:
            raise HeadSent(response)
        request.answering = True
        self.add_to(response, request)
        if streaming:
            request.watch_stream()

    def add_to(self, response: web.StreamResponse, request: Request) -> None:
        """Add them to any response; its own Content-Security-Policy and the like stay."""
        headers = response.headers
        if request.request_id:
            headers["X-Request-ID"] = request.request_id
            headers["X-Response-Time"] = _elapsed(request)
        headers["Server"] = _SERVER
        for name, value in _SECURITY_HEADERS.items():
            headers.setdefault(name, value)
        origin = request.headers.get(hdrs.ORIGIN)
        self._cors.add_headers(origin, headers, any_origin=request.any_origin)

    def head(self, status: int, reason: str, content_type: str, length: int, request: Request) -> bytes:
        """Status line and headers of a response with a body of `length` bytes; keeps the connection."""
        origin = request.headers.get(hdrs.ORIGIN)
        allowed = self._cors.headers(origin, any_origin=request.any_origin)
        key = (status, content_type, allowed)
        start = self._heads.get(key)
        if start is None:
            fixed = {hdrs.CONTENT_TYPE: content_type, hdrs.SERVER: _SERVER, **_SECURITY_HEADERS}
            lines = [f"{name}: {value}\r\n" for name, value in (*fixed.items(), *allowed)]
            start = self._heads[key] = f"HTTP/1.1 {status} {reason}\r\n{''.join(lines)}"
        return (
            f"{start}Content-Length: {length}\r\nDate: {self._date()}\r\n"
            f"X-Request-ID: {request.request_id}\r\nX-Response-Time: {_elapsed(request)}\r\n\r\n"
        ).encode()

    def _date(self) -> str:
        now = int(time.time())
        if now != self._second:
            self._second, self._now = now, formatdate(now, usegmt=True)
        return self._now


class BodyResponse(web.Response):
    """A response that is only a body: its head is prebuilt text, and both are written at once.

    Anything more (a header of its own, HEAD, HTTP/1.0, a closing connection, a plugin that listens to
    aiohttp's `on_response_prepare`) takes aiohttp's way.
    """

    def __init__(self, body: bytes, status: int = 200, content_type: str = JSON) -> None:
        super().__init__(body=body, status=status, content_type=content_type)
        self._type = content_type
        self._is_untouched = status not in _WITHOUT_BODY
        self._whole: bytes | None = None

    @property
    def headers(self) -> CIMultiDict[str]:
        """The headers, which may now be changed."""
        self._is_untouched = False
        return super().headers

    @property
    def prepared(self) -> bool:
        """Whether the head has been made."""
        return self._whole is not None or super().prepared

    @property
    def keep_alive(self) -> bool | None:
        """Whether the connection stays open."""
        return True if self._whole is not None else super().keep_alive

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Make the head; it is sent with the body."""
        if self._whole is None and isinstance(request, Request) and self._is_plain(request):
            common, body = request.common, self.body
            if common is not None and isinstance(body, bytes):
                head = common.head(self.status, self.reason, self._type, len(body), request)
                self._whole = head + body
                request.answering = True
                self._writer: AbstractStreamWriter | None = request.writer
                return request.writer
        return None if self._whole is not None else await super().prepare(request)

    def _is_plain(self, request: Request) -> bool:
        return (
            self._is_untouched
            and request.version == HttpVersion11
            and request.method != hdrs.METH_HEAD
            and request.keep_alive
            and super().keep_alive is not False
            and not self.compression
            and not self.chunked
            and not self.cookies
            and len(request.app.on_response_prepare) == 1
        )

    async def write_eof(self, data: bytes = b"") -> None:
        """Write the whole response."""
        if self._whole is None:
            return await super().write_eof(data)
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.write_eof(self._whole)
        return None


def _elapsed(request: Request) -> str:
    return f"{(time.perf_counter() - request.started) * 1000:.2f}ms"
