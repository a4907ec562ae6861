"""A service beside the platform, for what is looked at and passed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer


@dataclass
class Neighbour:
    port: int = 0
    status: int = 200
    requests: list[web.Request] = field(default_factory=list)
    first_piece: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def health(self, request: web.Request) -> web.Response:
        """As it is told."""
        return web.json_response({"mood": "good"}, status=self.status)

    async def echo(self, request: web.Request) -> web.Response:
        """What was sent, with a header for one hop and a cookie."""
        self.requests.append(request)
        headers = {"X-Own": "yes", "Keep-Alive": "timeout=99", "Set-Cookie": "a=b"}
        text = f"{request.method} {request.raw_path} {(await request.read()).decode()}"
        return web.Response(text=text, status=207, headers=headers)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """A piece as soon as the first piece of the body is here, another when told to go on."""
        response = web.StreamResponse()
        await response.prepare(request)
        piece = await request.content.readany() if request.can_read_body else b"one"
        await response.write(piece)
        self.first_piece.set()
        await self.go_on.wait()
        await response.write(b"two")
        return response

    async def broken(self, request: web.Request) -> web.StreamResponse:
        """Half of an answer."""
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return response


@asynccontextmanager
async def neighbour() -> AsyncIterator[Neighbour]:
    fake = Neighbour()
    app = web.Application()
    app.router.add_get("/health", fake.health)
    app.router.add_route("*", "/stream", fake.stream)
    app.router.add_get("/broken", fake.broken)
    app.router.add_route("*", "/{rest:.*}", fake.echo)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server()
    assert server.port is not None
    fake.port = server.port
    try:
        yield fake
    finally:
        fake.go_on.set()
        await server.close()
