"""Many documents at once: selected by mouse or keys, deleted or read again with one question."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import FilePayload, Locator, Page, Route, expect

from kernel.testing import Actor, Running
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOX = "input[type=file]"
ONE = "**/v1/rag/knowledge-bases/*/documents/*"


def _notes(*numbers: int) -> list[FilePayload]:
    return [
        {"name": f"note-{n}.md", "mimeType": "", "buffer": f"# Note {n}\n\nBerth {n}.\n".encode()}
        for n in numbers
    ]


async def _with_notes(site: Running, visitor: Visitor, *numbers: int) -> tuple[Actor, dict[str, Any], Page]:
    """The owner's page of a knowledge base with a handbook and these notes."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.locator(BOX).set_input_files(_notes(*numbers))
    await expect(page.get_by_text("one passage")).to_have_count(len(numbers) + 1)
    return ana, base, page


def _box(page: Page, name: str) -> Locator:
    return page.get_by_role("checkbox", name=f"Select {name}", exact=True)


async def _holding(page: Page, address: str, method: str = "POST") -> asyncio.Event:
    """Hold such requests back until the event is set."""
    go_on = asyncio.Event()

    async def wait(route: Route) -> None:
        if route.request.method == method:
            await go_on.wait()
        await route.continue_()

    await page.route(address, wait)
    return go_on


async def _names(page: Page) -> list[str]:
    return await page.locator(".document .name").all_inner_texts()


async def test_several_are_deleted(site: Running, visitor: Visitor) -> None:
    """A range is selected with the shift key; one question names what goes, and its end is said."""
    ana, base, page = await _with_notes(site, visitor, 1, 2, 3, 4)
    listed = await _names(page)
    await _box(page, listed[1]).click()
    await _box(page, listed[3]).click(modifiers=["Shift"])
    tools = page.get_by_role("group", name="Selected documents")
    await expect(tools.get_by_role("status")).to_have_text("3 documents are selected.")
    await tools.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete 3 documents?")
    for name in listed[1:4]:
        await expect(dialog).to_contain_text(name)
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("3 documents are deleted.")).to_be_visible()
    await expect(page.locator(".document")).to_have_count(2)
    left = (await ana.get(f"/v1/rag/knowledge-bases/{base['id']}/documents")).json()["items"]
    assert {one["filename"] for one in left} == {listed[0], listed[4]}
    await expect(tools.get_by_role("checkbox", name="Select all")).to_be_focused()


@pytest.mark.long
async def test_all_are_deleted_by_keys(site: Running, visitor: Visitor) -> None:
    """Without a mouse, everything is selected, looked at and deleted; what a filter hides stays."""
    _, _, page = await _with_notes(site, visitor, 1, 2)
    await page.get_by_label("Find a document").fill("note")
    await expect(page.locator(".document")).to_have_count(2)
    every = page.get_by_role("checkbox", name="Select all")
    await every.focus()
    await page.keyboard.press("Space")
    await page.get_by_label("Find a document").fill("")
    await expect(every).to_have_js_property("indeterminate", True)
    await every.focus()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Delete 2 documents?")
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator(".document")).to_have_count(1)
    await expect(page.get_by_role("link", name="handbook.md")).to_be_visible()
    await expect(every).to_be_focused()


@pytest.mark.long
async def test_some_are_not_deleted(site: Running, visitor: Visitor) -> None:
    """The ones that the server keeps are named with the reason, stay selected, and can be tried again; one
    that somebody else has deleted meanwhile is no failure.
    """
    _, _, page = await _with_notes(site, visitor, 1, 2, 3)
    refused = {"detail": "The store is being moved", "code": "moving"}

    async def answer(route: Route) -> None:
        if route.request.method != "DELETE":
            await route.continue_()
        elif route.request.url.partition("?")[0].endswith(wanted):
            await route.fulfill(status=409, json=refused)
        else:
            await route.fulfill(
                status=404, json={"detail": "Document not found", "code": "document_not_found"}
            )

    wanted = (await page.get_by_role("link", name="note-2.md").get_attribute("href") or "").split("/")[-1]
    await page.route(ONE, answer)
    await page.get_by_role("checkbox", name="Select all").click()
    await page.get_by_role("group", name="Selected documents").get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete 4 documents?")
    await dialog.get_by_role("button", name="Delete").click()
    card = dialog.get_by_role("alert")
    await expect(card).to_contain_text("note-2.md")
    await expect(card).to_contain_text("The store is being moved")
    await expect(dialog).to_contain_text("3 of 4 are done.")
    await page.unroute(ONE)
    await dialog.get_by_role("button", name="Try again").click()
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("link", name="note-2.md")).to_have_count(0)


async def test_work_that_is_stopped(site: Running, visitor: Visitor) -> None:
    """Escape doesn't close the question while it works; whoever stops it keeps what was not begun."""
    _, _, page = await _with_notes(site, visitor, 1, 2, 3, 4, 5, 6)
    go_on = await _holding(page, ONE, "DELETE")
    await page.get_by_role("checkbox", name="Select all").click()
    await page.get_by_role("group", name="Selected documents").get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Delete").click()
    stop = dialog.get_by_role("button", name="Stop")
    await expect(stop).to_be_focused()
    for _ in range(2):
        await page.keyboard.press("Escape")
    await expect(dialog.get_by_role("progressbar")).to_be_visible()
    await stop.click()
    go_on.set()
    await expect(dialog).to_contain_text("4 of 7 are done.")
    await dialog.get_by_role("button", name="Close").last.click()
    await expect(page.locator(".document")).to_have_count(3)
    await expect(page.get_by_text("3 documents are selected.")).to_be_visible()


async def test_a_filter_that_hides_the_last_one_at_work(site: Running, visitor: Visitor) -> None:
    """Work on documents goes on, and says its end, though none of them is listed any more meanwhile."""
    _, _, page = await _with_notes(site, visitor, 1)
    await page.get_by_label("Find a document").fill("note")
    await page.get_by_role("checkbox", name="Select all").click()
    await page.get_by_role("group", name="Selected documents").get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete one document?")
    go_on = await _holding(page, ONE, "DELETE")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(dialog).to_contain_text("0 of 1 are done.")
    await visitor.go(f"{page.url.split('/app')[1].split('?')[0]}?q=nothing+at+all")
    await expect(page.get_by_text("No document matches.")).to_be_visible()
    await expect(dialog).to_contain_text("0 of 1 are done.")
    go_on.set()
    await expect(page.get_by_text("One document is deleted.")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_failed_ones_are_read_again(site: Running, visitor: Visitor) -> None:
    """Those that failed among the selected are tried again: all with one request, a few one by one."""
    _, _, page = await _with_notes(site, visitor, 1)
    broken: list[FilePayload] = [
        {"name": f"broken-{n}.json", "mimeType": "", "buffer": f'{{"a": [{n},'.encode()} for n in range(3)
    ]
    await page.locator(BOX).set_input_files(broken)
    await expect(page.locator(".document .badge-bad")).to_have_count(3)
    await page.get_by_role("checkbox", name="Select all").click()
    tools = page.get_by_role("group", name="Selected documents")
    await tools.get_by_role("button", name="Try 3 failed ones again").click()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.method} {request.url.split('/')[-1]}"))
    dialog = page.get_by_role("dialog", name="Read 3 documents again?")
    go_on = await _holding(page, "**/ingestion/retry")
    await dialog.get_by_role("button", name="Try again").click()
    await expect(dialog).to_contain_text("0 of 3 are done.")
    go_on.set()
    await expect(page.get_by_text("3 documents are being read again.")).to_be_visible()
    assert "POST retry" in sent
    assert "POST upload" not in sent
    await expect(page.locator(".document .badge-bad")).to_have_count(3)
    await _box(page, "broken-1.json").click()
    await tools.get_by_role("button", name="Try 2 failed ones again").click()
    await page.get_by_role("dialog").get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("2 documents are being read again.")).to_be_visible()
    assert sent.count("POST upload") == 2
