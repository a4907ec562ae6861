"""Connecting a model in a real browser: found, used, chosen beside the question, and the step that fails."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from kernel.testing import Running, platforms
from tests.builtin_plugins.web_client.visits import SETTLED, Visitor, knowledge_base, working_jobs
from tests.fakes.browser import PATIENCE
from tests.fakes.model_server import ModelServer, Script, model_server

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.long]

PLUGINS = (
    "tenancy",
    "embeddings",
    "models",
    "extractive_answers",
    "conversations",
    "orchestrator",
    "web_client",
)
WIDTHS = (390, 768, 1280)
# Where screenshots go, for people to look at; without it none are taken.
SHOTS = os.environ.get("PLATFORM_TEST_SCREENSHOTS")


@pytest_asyncio.fixture(loop_scope="session")
async def ollama() -> AsyncIterator[ModelServer]:
    async with model_server(Script(answer="Up to 185 [1].", models=("small", "big"))) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def guest(
    tmp_path_factory: pytest.TempPathFactory, browser: Browser, ollama: ModelServer
) -> AsyncIterator[Visitor]:
    """A profile at a platform of its own: what is connected there answers everybody's questions."""
    async with platforms(tmp_path_factory.mktemp("connecting")) as start:
        running: Running = await start(*PLUGINS, env={"PLATFORM_MODELS_NEARBY": ollama.url})
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
        context.set_default_timeout(PATIENCE)
        visitor = Visitor(running, context)
        async with working_jobs(running):
            yield visitor
        await context.close()
        assert visitor.problems == []


async def fits(page: Page, name: str) -> None:
    """Nothing is wider than the screen, in either scheme, on a phone, a tablet and a desktop."""
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            await page.evaluate(SETTLED)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            if SHOTS:
                await page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{scheme}.png", full_page=True)


async def test_two_clicks(guest: Visitor, ollama: ModelServer) -> None:
    """What was found is used with one click; then it answers, and can be chosen for a question."""
    admin = await guest.site.user(role="admin")
    await knowledge_base(admin)
    page = await guest.arrive(admin, "/operations/models")
    await expect(page.get_by_text("Found: Ollama")).to_be_visible()
    await fits(page, "found")
    await page.get_by_role("button", name="Use this").click()
    await expect(page.get_by_role("heading", name="Which model answers")).to_be_visible()
    await page.get_by_role("button", name="Test ollama").click()
    await expect(page.get_by_text("It answers, and has 2 models.")).to_be_visible()
    await fits(page, "connected")
    await page.get_by_role("button", name="Connect a server").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Address").fill("http://127.0.0.1:9")
    await dialog.get_by_role("button", name="Test", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Nothing answers at this address")
    await fits(page, "failed")
    await guest.open("/")
    await page.get_by_label("Which model answers").select_option(label="big")
    await guest.ask("What does a hotel in Oslo cost?")
    await expect(page.locator(".answer")).to_contain_text("Up to 185")
    assert ollama.requests[-1].body["model"] == "big"
    await fits(page, "answered")
