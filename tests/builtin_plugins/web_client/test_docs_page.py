"""The page of the API's documents in a browser: signing in there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.builtin_plugins.web_client.visits import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOGIN, STT, QUESTIONS = "/v1/auth/login", "/v1/stt", "/v1/rag/evaluation/sets/{set_id}/upload"


async def short_page(visitor: Visitor, paths: Iterable[str]) -> Page:
    """The page with the POST of these paths alone: the whole document takes a browser many seconds."""
    page = await visitor.new_tab()
    document = (await visitor.site.anonymous.get("/openapi.json")).json()
    few = {path: {"post": document["paths"][path]["post"] | {"responses": {}}} for path in paths}
    schemes: Any = {"securitySchemes": document["components"]["securitySchemes"]}
    fewer = document | {"paths": few, "components": schemes}
    await page.route("**/openapi.json", lambda route: route.fulfill(json=fewer))
    await page.goto(f"{visitor.site.url}/docs")
    return page


@pytest.mark.long
async def test_the_whole_document(visitor: Visitor) -> None:
    """The browser shows it, with operations and the form to sign in."""
    page = await visitor.new_tab()
    await page.goto(f"{visitor.site.url}/docs")
    await expect(page.locator(".opblock").first).to_be_visible()
    await expect(page.locator(".btn.authorize.unlocked")).to_be_visible()
    await expect(page.locator("#sign-in")).to_be_visible()


async def test_signing_in_on_the_page(visitor: Visitor) -> None:
    """A wrong password is said; after the right one, the page asks as the account."""
    ann = await visitor.site.user()
    page = await short_page(visitor, [LOGIN, QUESTIONS])
    form = page.locator("#sign-in")
    await expect(page.locator(".btn.authorize.unlocked")).to_be_visible()
    await form.get_by_label("Username").fill(ann.user["username"])
    await form.get_by_label("Password").fill("not this one")
    await form.get_by_role("button", name="Sign in").click()
    await expect(form.locator("output")).to_contain_text("Invalid username or password")
    await form.get_by_label("Password").fill(ann.password)
    await form.get_by_role("button", name="Sign in").click()
    await expect(form.locator("output")).to_have_text(f"Signed in as {ann.user['username']}")
    await expect(page.locator(".btn.authorize.locked")).to_be_visible()


async def test_examples_of_bodies(visitor: Visitor) -> None:
    """JSON Lines are shown as lines; who tries a form finds its fields filled in."""
    page = await short_page(visitor, [QUESTIONS, STT])
    lines = page.locator(f'.opblock:has([data-path="{QUESTIONS}"])')
    await lines.locator(".opblock-summary-control").click()
    example = lines.locator(".body-param__example")
    await expect(example).to_contain_text('"130 EUR"]}\n{"question": ', use_inner_text=True)
    form = page.locator(f'.opblock:has([data-path="{STT}"])')
    await form.locator(".opblock-summary-control").click()
    await expect(form.get_by_text("-F file=@meeting.wav -F language=en-US")).to_be_visible()
    await form.get_by_role("button", name="Try it out").click()
    await expect(form.get_by_role("textbox")).to_have_value("en-US")
