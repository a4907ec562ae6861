"""Requests with an id and a clock, the headers of every response, and fast ways to write them.

aiohttp builds a response's head from a multidict in five steps, which with our headers costs a third of
serving a small request. A response that is only a body needs none of them.
"""

from __future__ import annotations

import time
from typing import Any

from aiohttp import HttpVersion11, MultipartReader, StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.compression_utils import HAS_BROTLI, HAS_ZSTD
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import StreamWriter
from aiohttp.payload import Payload
from aiohttp.web_request import BaseRequest

from kernel.auth.principals import ANONYMOUS, Principal
from kernel.errors import BadRequest, UnsupportedMediaType
from kernel.http.cors import Cors
from kernel.http.ranges import WHOLE, part_of
from kernel.http.streams import OpenStream, OpenStreams

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
_CODINGS = ", ".join(["gzip", "deflate", *(["br"] if HAS_BROTLI else []), *(["zstd"] if HAS_ZSTD else [])])

TOO_LATE = web.RequestKey("too_late", str)
"""The plugin that did not identify the sender in time."""


def unknown_coding() -> UnsupportedMediaType:
    """The error for a body that the server has no decoder for (RFC 9110, 15.5.16)."""
    detail = f"The body's Content-Encoding is not supported; send it uncompressed, or as one of: {_CODINGS}"
    return UnsupportedMediaType(detail, headers={hdrs.ACCEPT_ENCODING: _CODINGS})


class HeadSent(ConnectionResetError):
    """A response to HEAD is complete; stops a handler that streams a body, as a lost client would."""


class HeadWriter(StreamWriter):
    """Writes a response to HEAD. aiohttp would send a body that a handler streams, and the client (behind a
    proxy, somebody else) would take it for the connection's next response.
    """

    async def write(self, *_chunk: Any, **_options: Any) -> None:
        """Send the head alone. Raises HeadSent."""
        self.set_eof()
        raise HeadSent


class Request(web.Request):
    """A request and the state of its response; `answering` means that the response has begun.

    With `any_origin`, pages of any origin may read it. `streams` watches a response that streams on behalf of
    `principal`, as `stream`. `head_only` is the response to HEAD. With `awaits_go_ahead`, the client sends
    the body only after a 100, which reading the body sends; a refusal before that saves the transfer. With
    `ignores_range`, the whole file is sent.
    """

    ATTRS = web.Request.ATTRS | {
        *("answering", "any_origin", "common", "principal", "request_id", "started", "stream", "streams"),
        *("awaits_go_ahead", "head_only", "ignores_range"),
    }

    common: CommonHeaders | None = None
    request_id: str = ""
    started: float = 0.0
    answering: bool = False
    any_origin: bool = False
    principal: Principal = ANONYMOUS
    streams: OpenStreams | None = None
    stream: OpenStream | None = None
    head_only: web.StreamResponse | None = None
    awaits_go_ahead: bool = False
    ignores_range: bool = False

    def heed_expectation(self) -> None:
        """Note if the client awaits a 100 (RFC 9110, 10.1.1), or raise HTTPExpectationFailed."""
        expected = self.headers.get(hdrs.EXPECT)
        if expected is None or self.version < HttpVersion11:
            return
        self.awaits_go_ahead = self.can_read_body
        if expected.lower() != "100-continue":
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
        known = self._message.compression is not None and len(codings) == 1
        if not known and {coding.strip().lower() for coding in codings} - _PLAIN_CODINGS:
            raise unknown_coding()

    def forgo_body(self, response: web.StreamResponse) -> None:
        """Drop the rest of a compressed body that nobody read, and the connection with it.

        aiohttp would read it to the end: a few megabytes that expand to gigabytes block the loop for seconds.
        """
        if self._message.compression is not None and not self._payload.is_eof():
            response.force_close()
            ignore = getattr(self.protocol, "ignore_input", None)
            if ignore is not None:
                ignore()

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
        if self.ignores_range or self.method != hdrs.METH_GET:
            return WHOLE
        return part_of(self.headers.getall(hdrs.RANGE, []))

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """Called before a head is written; aiohttp's signal for that would cost 1.5 µs more."""
        self.answering = True
        if self.method == hdrs.METH_HEAD:
            self.head_only = response
        if self.common is not None:
            self.common.add_to(response, self)
        if self.streams is not None and _is_streaming(response):
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
            f"{start}Content-Length: {length}\r\nDate: {rfc822_formatted_time()}\r\n"
            f"X-Request-ID: {request.request_id}\r\nX-Response-Time: {_elapsed(request)}\r\n\r\n"
        ).encode()


class BodyResponse(web.Response):
    """A response that is only a body: its head is prebuilt text, and both are written at once.

    Anything more (a header of its own, HEAD, HTTP/1.0, a closing connection) takes aiohttp's way.
    """

    _head: bytes | None = None

    def __init__(self, body: bytes, status: int = 200, content_type: str = JSON) -> None:
        super().__init__(body=body, status=status, content_type=content_type)
        self._size = len(body)
        self._type = content_type

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Make the head; it is sent with the body."""
        if self.prepared or not isinstance(request, Request) or not self._is_plain(request):
            return await super().prepare(request)
        assert request.common is not None
        self._head = request.common.head(self._status, self._reason, self._type, self._size, request)
        request.answering = self._keep_alive = True
        self._req = request
        self._payload_writer = request.writer
        return request.writer

    def _is_plain(self, request: Request) -> bool:
        return (
            request.common is not None
            and request.version == HttpVersion11
            and request.method != hdrs.METH_HEAD
            and request.keep_alive
            and self._keep_alive is not False
            and len(self._headers) == 1
            and self._cookies is None
            and not self._compression
            and not self._chunked
            and self._status not in _WITHOUT_BODY
        )

    async def write_eof(self, data: bytes = b"") -> None:
        """Write the whole response."""
        if self._head is None or self._eof_sent:
            return await super().write_eof(data)
        writer = self._payload_writer
        assert writer is not None
        assert isinstance(self._body, bytes)
        await writer.write_eof(self._head + self._body)
        self._eof_sent = True
        self._req = None
        self._payload_writer = None
        self._body_length = writer.output_size
        return None


def _elapsed(request: Request) -> str:
    return f"{(time.perf_counter() - request.started) * 1000:.2f}ms"
