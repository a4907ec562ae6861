"""A door for clients that can't send a token: it passes requests on with one, and changes nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from kernel.testing import Actor

_OWN = ("Connection", "Transfer-Encoding", "Content-Length", "Date", "Server")


@asynccontextmanager
async def relay(actor: Actor) -> AsyncIterator[str]:
    """The address at which /mcp is open to everybody as `actor`."""

    async def pass_on(request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name not in _OWN}
        headers["Authorization"] = f"Bearer {actor.token}"
        url, data = actor.running.url + request.path, await request.read()
        async with session.request(request.method, url, headers=headers, data=data) as answer:
            kept = {name: value for name, value in answer.headers.items() if name not in _OWN}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", pass_on)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        try:
            yield f"http://localhost:{port}/mcp"
        finally:
            await runner.cleanup()
