"""Pages of other sites in a real Chromium: served from their own origin, with a strict policy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from playwright.async_api import Page, Route, expect

from tests.fakes.npm import npm_folder

_PAGE = """<!doctype html><html lang="en"><head><title>A shop</title></head>
<body><main><h1>A shop</h1><p>Words of the shop.</p></main>
<script src="{script}"{attributes}></script></body></html>"""


@asynccontextmanager
async def shop_site(api: str) -> AsyncIterator[ShopSite]:
    """A site on its own address."""
    site = ShopSite(api)
    app = web.Application()
    app.router.add_get("/", site.page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    site.origin = f"http://localhost:{runner.addresses[0][1]}"
    try:
        yield site
    finally:
        await runner.cleanup()


class ShopSite:
    """One page with the widget; scripts and styles may come from the page itself and from the API alone."""

    def __init__(self, api: str) -> None:
        self.api = api
        self.slug = ""
        self.attributes = ""
        self.origin = ""

    async def page(self, _request: web.Request) -> web.Response:
        """The page."""
        script = f"{self.api}/v1/chat/{self.slug}/widget.js"
        body = _PAGE.format(script=script, attributes=f" {self.attributes}" if self.attributes else "")
        policy = {"Content-Security-Policy": f"default-src 'self' {self.api}"}
        return web.Response(text=body, content_type="text/html", headers=policy)


class Watched:
    """A page in the browser, what it complained of, and whom it called."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.called: list[str] = []
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda sent: self.called.append(sent.url))

    async def open(self) -> None:
        """Open the chat by its button."""
        await self.page.get_by_role("button", name="Open chat").click()

    async def ask(self, question: str) -> None:
        """Type a question and send it with the Enter key."""
        await self.page.get_by_label("Your question").fill(question)
        await self.page.get_by_label("Your question").press("Enter")

    async def hold_answers(self) -> asyncio.Event:
        """Questions that are sent from now on are on their way until the event is set."""
        gate = asyncio.Event()

        async def hold(route: Route) -> None:
            await gate.wait()
            await route.continue_()

        await self.page.route("**/messages", hold)
        return gate

    async def answered(self) -> None:
        """Wait until the answer is complete."""
        await expect(self.page.get_by_role("log")).to_have_attribute("aria-busy", "false")

    async def serious(self) -> list[dict[str, Any]]:
        """What axe finds serious or worse."""
        await self.page.evaluate((_axe() / "axe.min.js").read_text(encoding="utf-8"))
        found = await self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            {"id": one["id"], "nodes": [node["html"][:200] for node in one["nodes"]]}
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]


def _axe() -> Path:
    folder = npm_folder(Path(__file__).parent / "axe", "the tests of the widget")
    return folder / "node_modules" / "axe-core"
