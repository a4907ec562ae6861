"""One platform and one browser for the tests of pages; each test has a profile and accounts of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from kernel.testing import Running, platforms
from tests.builtin_plugins.web_client.visits import CHROMIUM, Visitor, missing_browser
from tests.fakes.loaded_once import LoadedOnce

PATIENCE = 40_000  # ms, on a busy machine
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync"),
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
)
PLUGINS = (
    *("tenancy", LoadedOnce, "models", "rag", "access_tokens", "plugin_registry", "marketplace"),
    *("licensing", "dependency_graph", "orchestrator", "conversations", "published_chat", "web_client"),
    *("evaluation", "graph_rag", "speech", "platform_ops"),
)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A platform whose jobs are run as they come."""
    async with platforms(tmp_path_factory.mktemp("client")) as start:
        running = await start(*PLUGINS)
        working = asyncio.create_task(_work(running))
        yield running
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _work(running: Running) -> None:
    while True:
        await running.run_jobs()
        await asyncio.sleep(0.1)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Debian's Chromium, which calls nobody."""
    if not CHROMIUM.exists():
        missing_browser()
    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        found = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*ARGUMENTS])
        yield found
        await found.close()


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(site: Running, browser: Browser) -> AsyncIterator[Visitor]:
    """A browser profile; at the end, no script has failed and no policy was broken."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
    context.set_default_timeout(PATIENCE)
    visitor = Visitor(site, context)
    yield visitor
    await context.close()
    assert visitor.problems == []
