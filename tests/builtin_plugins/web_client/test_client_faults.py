"""A file, an answer or the browser's storage is missing: a page is shown all the same."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Browser, Route, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = 500
DOCUMENTS = 1_200
# The one time limit ends when the test says so.
TIME_LIMIT = """AbortSignal.timeout = () => {
  const limit = new AbortController();
  window.timeIsUp = () => limit.abort(new DOMException("", "TimeoutError"));
  return limit.signal;
}"""
# As browsers answer that block a site's cookies.
BLOCKED = """for (const name of ["localStorage", "sessionStorage"]) {
  const get = () => { throw new DOMException("Access is denied", "SecurityError"); };
  Object.defineProperty(window, name, { get, configurable: true });
}"""


async def gone(route: Route) -> None:
    await route.fulfill(status=404, body="")


def keep(token: str | None, milliseconds: int) -> str:
    """A script: a session that a reload left, with what is left of its token's life."""
    kept = {"token": token, "mustChange": False, "lifetime": 9e5}
    text = f"{{...{json.dumps(kept)}, until: Date.now() + {milliseconds}}}"
    return f"sessionStorage['platform.session'] = JSON.stringify({text})"


async def test_an_answer_that_was_cut_off(site: Running, visitor: Visitor) -> None:
    """It is told in words what happened, and can be tried again; no talk of JSON."""
    page = await visitor.arrive(await site.user(), "/keys")
    await page.route(
        "**/v1/rag/pipeline?*",
        lambda route: route.fulfill(content_type="application/json", body='{"items": [{"id'),
    )
    await visitor.open("/pipelines")
    told = page.get_by_role("alert")
    await expect(told).to_contain_text("The connection was lost before the answer was complete.")
    await page.unroute("**/v1/rag/pipeline?*")
    await told.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("No pipelines yet")).to_be_visible()


async def test_nothing_is_deleted_that_was_not_named(site: Running, visitor: Visitor) -> None:
    """A knowledge base can be deleted once one has been told which pipelines go with it."""
    ana = await site.user()
    base = (await ana.post("/v1/rag/knowledge-bases", json={"name": "Empty"})).json()
    await ana.post("/v1/rag/pipeline", json={"name": "Asks it alone", "knowledge_base_ids": [base["id"]]})
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.route("**/v1/rag/pipeline?*", _busy)
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Delete for good").check()
    await expect(dialog.get_by_role("alert")).to_contain_text("The server is busy")
    await expect(dialog).to_contain_text("It has no documents.")
    await expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
    await page.unroute("**/v1/rag/pipeline?*")
    await dialog.get_by_role("button", name="Try again").click()
    await expect(dialog).to_contain_text("Asks it alone")
    await dialog.get_by_role("button", name="Delete").click()
    await page.get_by_role("heading", name="Documents", level=1).wait_for()
    assert (await ana.get("/v1/rag/pipeline")).json()["total"] == 0


async def _busy(route: Route) -> None:
    await route.fulfill(status=503, json={"detail": "The server is busy", "code": "busy"})


async def test_an_update_while_signing_in(site: Running, visitor: Visitor) -> None:
    """The frame of the page's release is gone: one is asked to reload."""
    ana = await site.user()
    page = await visitor.open()
    await page.route("**/parts/frame.js", gone)
    await page.get_by_label("Username").fill(ana.user["username"])
    await page.get_by_label("Password").fill(ana.password)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_text("This page has been updated on the server")).to_be_visible()
    await page.unroute("**/parts/frame.js")
    await page.get_by_role("button", name="Try again").click()
    await page.locator(".frame").wait_for()


async def test_nothing_that_is_asked_for_first(site: Running, browser: Browser) -> None:
    """The language's texts are gone and a refresh isn't answered in JSON: the page is there, in English."""
    ana = await site.user()
    context = await browser.new_context(locale="de-DE")
    visitor = Visitor(site, context)
    page = await visitor.new_tab()
    await page.route("**/languages/de.js", gone)
    await page.route("**/v1/auth/refresh", lambda route: route.fulfill(body="<h1>Proxy</h1>"))
    await page.add_init_script(keep(ana.token, 30_000))
    await page.goto(f"{site.url}/app/documents")
    await expect(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()
    assert visitor.problems == []
    await context.close()


async def test_a_refresh_without_an_answer(site: Running, visitor: Visitor) -> None:
    """It has a time limit; then the page is shown with the token that is there."""
    ana = await site.user()
    asked = asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await asyncio.Event().wait()

    page = await visitor.new_tab()
    await page.route("**/v1/auth/refresh", hold)
    await page.add_init_script(TIME_LIMIT)
    await page.add_init_script(keep(ana.token, 50_000))
    await page.goto(f"{site.url}/app/documents")
    await asked.wait()
    await page.evaluate("timeIsUp()")
    await expect(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()


async def test_blocked_storage(site: Running, visitor: Visitor) -> None:
    """One signs in all the same; only a reload forgets it."""
    ana = await site.user()
    await knowledge_base(ana)
    await visitor.context.add_init_script(BLOCKED)
    await visitor.sign_in(ana)
    await expect(visitor.page.get_by_label("What to ask")).to_be_visible()


async def test_a_long_list_comes_in_pages(site: Running, visitor: Visitor) -> None:
    """Numbers and search say that more is to come; after a failure the list continues where it stopped."""
    ana = await site.user()
    base = await knowledge_base(ana)
    [known] = (await ana.get(f"/v1/rag/knowledge-bases/{base['id']}/documents")).json()["items"]
    asked: list[int] = []
    coming, broken = asyncio.Event(), asyncio.Event()

    async def answer(route: Route) -> None:
        offset = int(parse_qs(urlsplit(route.request.url).query)["offset"][0])
        asked.append(offset)
        if offset == 2 * PAGE and not broken.is_set():
            await coming.wait()
            broken.set()
            await route.fulfill(status=500, json={"detail": "The disk is full", "code": "internal"})
            return
        numbers = range(offset, min(offset + PAGE, DOCUMENTS))
        items = [{**known, "document_id": f"{n:032x}", "filename": f"note-{n}.txt"} for n in numbers]
        await route.fulfill(json={"items": items, "total": DOCUMENTS, "limit": PAGE, "offset": offset})

    await visitor.context.route("**/v1/rag/knowledge-bases/*/documents?*", answer)
    await visitor.arrive(ana, f"/documents/{base['id']}?q=note-1199")
    page = visitor.page
    so_far = page.get_by_text("1,000 of 1,200 documents are loaded")
    await expect(so_far).to_be_visible()
    await expect(page.get_by_text("No document matches so far.")).to_be_visible()
    coming.set()
    failure = page.get_by_role("alert").filter(has_text="The disk is full")
    await failure.wait_for()
    await expect(so_far).to_be_visible()
    await failure.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("note-1199.txt")).to_be_visible()
    await expect(so_far).to_have_count(0)
    await expect(failure).to_have_count(0)
    assert asked == [0, PAGE, 2 * PAGE, 2 * PAGE]
