"""What one listening address serves, as aiohttp's own application: its routes, middlewares and signals."""

from __future__ import annotations

import asyncio
import random
import re
import time
from typing import TYPE_CHECKING, Any

from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDictProxy

from kernel.http.endpoint import Endpoint
from kernel.http.middlewares import middlewares
from kernel.http.router import Router
from kernel.http.wire import CommonHeaders, Cors, Request

if TYPE_CHECKING:
    from kernel.platform import Platform

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:+/=@-]{1,128}")
# The version and variant bits of a UUID: cleared, then set.
_UUID_MASK = ~(0xF << 76 | 0x3 << 62)
_UUID_MARKS = 0x4 << 76 | 0x2 << 62


class Application:
    """The gateway, or one service at its own root; `web` is aiohttp's application."""

    def __init__(self, platform: Platform, *, is_gateway: bool) -> None:
        self.endpoints: list[Endpoint] = []
        cors = Cors(platform.settings.cors_allowed_origins)
        self._common = CommonHeaders(cors)
        # No limit of aiohttp's own: each route has one, and whoever reads the body keeps it.
        self.web = web.Application(client_max_size=0)
        self.router = Router(self.web.router)
        self.web.middlewares.extend(middlewares(platform, self.router, cors, is_gateway=is_gateway))
        self.web.on_response_prepare.append(self._common.prepare)

    def add_endpoint(self, endpoint: Endpoint) -> None:
        """Serve a declared route."""
        self.endpoints.append(endpoint)
        route = endpoint.route
        self.router.add(
            route.method,
            endpoint.template.aiohttp,
            endpoint,
            judges_credential=route.judges_credential,
            any_origin=route.any_origin,
            error_format=route.error_format,
        )

    def request(
        self,
        message: Any,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> Request:
        """Makes aiohttp's requests, also those that can't be parsed."""
        if message.chunked:
            # aiohttp adds the last trailer field of a body to the head of the connection's next request,
            # which behind a proxy may be somebody else's. The price: a new connection after each chunked
            # body.
            message = message._replace(should_close=True)
        expectation = message.headers.get(hdrs.EXPECT)
        if expectation is not None:
            # aiohttp would ask for the body at once; see `Request.heed_expectation`.
            headers = message.headers.copy()
            del headers[hdrs.EXPECT]
            message = message._replace(headers=CIMultiDictProxy(headers))
        loop = asyncio.get_running_loop()
        request = Request(message, payload, protocol, writer, task, loop, client_max_size=0)
        request.started = time.perf_counter()
        request.expectation = expectation
        request.coding = message.compression
        sent = message.headers.get("X-Request-ID", "")
        request.request_id = sent if _REQUEST_ID.fullmatch(sent) else _new_id()
        request.common = self._common
        return request


def _new_id() -> str:
    """A UUID (RFC 9562 version 4) as text, without the cost of a UUID object; not for security."""
    bits = random.getrandbits(128) & _UUID_MASK | _UUID_MARKS
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
