"""Another server than the platform."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def served_by(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """The address of a server with one handler."""
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def site_with(answer: Callable[[web.Request], web.Response]) -> AbstractAsyncContextManager[str]:
    """The address of a website that answers everything like this."""

    async def handle(request: web.Request) -> web.Response:
        return answer(request)

    return served_by(handle)
