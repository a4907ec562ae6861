"""The server is away for a minute, a session ends in mid-sentence: it is said, and nothing is lost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base
from tests.fakes.door import Door

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How much may a hotel in Oslo cost per night?"
LONGEST_PAUSE = 8_000  # ms between two tries of the client
ATTEMPT = 5  # seconds that an answer may take
AWAY = "The server doesn’t answer."


@pytest_asyncio.fixture(loop_scope="session")
async def door(site: Running) -> AsyncIterator[Door]:
    """A way to the platform that can be shut."""
    door = Door(site.url)
    await door.open()
    yield door
    await door.shut()


async def test_a_minute_without_the_server(site: Running, browser: Browser, door: Door) -> None:
    """Whoever asked gets the answer once the server is back; what was typed meanwhile is still there."""
    ana = await site.user()
    base = await knowledge_base(ana)
    await ana.post("/v1/rag/pipeline", json={"name": "Handbook", "knowledge_base_ids": [base["id"]]})
    context = await browser.new_context(locale="en-GB")
    await context.clock.install()
    page = await Visitor(replace(site, url=door.url), context).arrive(ana)
    await page.get_by_label("What to ask").wait_for()
    await page.get_by_label("Your question").fill(QUESTION)
    await door.shut()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text(AWAY)).to_be_visible()
    await page.get_by_label("Your question").fill("And in Bergen?")
    for _ in range(60_000 // LONGEST_PAUSE + 1):
        async with page.expect_event("requestfailed", lambda request: request.url.endswith("/livez")):
            await page.clock.run_for(LONGEST_PAUSE)
    await expect(page.get_by_text(AWAY)).to_be_visible()
    await door.open()
    async with page.expect_event("requestfinished", lambda request: request.url.endswith("/livez")):
        await page.clock.run_for(LONGEST_PAUSE)
    await expect(page.locator(".turn")).to_contain_text("185 euro")
    await expect(page.get_by_text(AWAY)).to_have_count(0)
    await expect(page.get_by_label("Your question")).to_have_value("And in Bergen?")
    await context.close()


async def test_a_view_that_was_not_there(site: Running, browser: Browser, door: Door) -> None:
    """Whoever goes to a view for the first time while the server is away sees it once the server is back."""
    context = await browser.new_context(locale="en-GB")
    await context.clock.install()
    page = await Visitor(replace(site, url=door.url), context).arrive(await site.user(), "/documents")
    await page.get_by_role("heading", name="Documents", exact=True).wait_for()
    await door.shut()
    await page.get_by_role("button", name="Manage", exact=True).click()
    await page.get_by_role("link", name="Pipelines", exact=True).click()
    await expect(page.get_by_text(AWAY)).to_be_visible()
    await expect(page.get_by_text("updated on the server")).to_have_count(0)
    await door.open()
    async with page.expect_event("requestfinished", lambda request: request.url.endswith("/livez")):
        await page.clock.run_for(LONGEST_PAUSE)
    await expect(page.get_by_role("heading", name="Pipelines", exact=True)).to_be_visible()
    await expect(page.get_by_text(AWAY)).to_have_count(0)
    await context.close()


async def test_a_session_ends_in_a_form(site: Running, visitor: Visitor) -> None:
    """One signs in over the form; what stands in it is sent then, unchanged, and Back doesn't lose it. A late
    refusal of the session that has ended doesn't end the new one.
    """
    ana = await site.user()
    late, signed_in = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        late.set()
        await signed_in.wait()
        await route.continue_()

    page = await visitor.sign_in(ana)
    await visitor.go("/documents?new=1")
    form = page.get_by_role("dialog", name="New knowledge base")
    await form.get_by_label("Name", exact=True).fill("Harbours of Senja")
    await form.get_by_label("Description").fill("Half a page of careful wor")
    await ana.post("/v1/auth/logout")
    await form.get_by_label("Description").press_sequentially("ds")
    await form.get_by_role("button", name="Create").click()
    again = page.get_by_role("dialog", name="Your session has ended")
    await again.get_by_label("Password").fill(ana.password)
    went = await page.evaluate("Promise.allSettled(Object.values(navigation.back()))")
    assert {step["status"] for step in went} == {"rejected"}
    await page.route("**/v1/auth/refresh", hold)
    await page.evaluate("dispatchEvent(new Event('focus'))")  # lists are loaded again
    await late.wait()
    await again.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("heading", name="Harbours of Senja", level=1)).to_be_visible()
    async with page.expect_response("**/v1/conversations/shared-with-me?*") as answer:
        signed_in.set()
    assert (await answer.value).status == 200
    await expect(again).to_have_count(0)
    await expect(page.get_by_text("Half a page of careful words")).to_be_visible()


@pytest.mark.long
async def test_conversations_come_back(site: Running, browser: Browser) -> None:
    """Where the list of conversations is out of service for a while, answers are kept again after that."""
    ana = await site.user()
    await knowledge_base(ana)
    context = await browser.new_context(locale="en-GB")
    await context.clock.install()
    listed = re.compile(r"/v1/conversations/mine\?")

    async def away(route: Route) -> None:
        await route.fulfill(status=503, json={"detail": "It is out of service", "code": "unavailable"})

    await context.route(listed, away)
    visitor = Visitor(site, context)
    page = await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    await expect(page.locator(".turn")).to_contain_text("185 euro")
    assert "/ask/" not in page.url
    await context.unroute(listed)
    answered = asyncio.Event()
    page.on("response", lambda one: answered.set() if listed.search(one.url) and one.ok else None)
    async with page.expect_response(lambda one: bool(listed.search(one.url)) and one.ok) as come_back:
        while not come_back.is_done():  # an attempt that failed before may be followed by another pause
            await page.clock.run_for(LONGEST_PAUSE)
            with suppress(TimeoutError):  # the next pause would end a request that is under way
                await asyncio.wait_for(answered.wait(), ATTEMPT)
    await visitor.ask("How many days a week may employees work from home?")
    await expect(page.get_by_role("navigation", name="Conversations").get_by_role("link")).to_have_count(1)
    assert "/ask/" in page.url
    await context.close()
