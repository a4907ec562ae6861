"""A long list draws what is seen, and little of it at a time."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import FilePayload, Request, Route, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, colleagues, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

DOCUMENTS = 400
MANY = 20  # rows that one frame may add
# Counts the rows that each frame adds.
WATCH = """() => {
  window.added = [];
  const rows = (record) => [...record.addedNodes].filter((one) => one.nodeName === "LI").length;
  new MutationObserver((records) => window.added.push(records.reduce((sum, one) => sum + rows(one), 0)))
    .observe(document.querySelector(".long-list"), { childList: true });
}"""
# The names of the rows that lie within the window, once no frame adds another.
SEEN = """async () => {
  for (let before = -1; before !== window.added.length; ) {
    before = window.added.length;
    for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
  }
  return [...document.querySelectorAll(".long-list li")].filter((row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  }).map((row) => Number(row.querySelector(".name").textContent.match(/[0-9]+/)));
}"""


@pytest.mark.long
async def test_a_leap_draws_few_rows_at_once(site: Running, visitor: Visitor) -> None:
    """Wherever one leaps to, the rows that are seen are all there, and no frame made many of them."""
    ana = await site.user()
    base = await knowledge_base(ana)
    [known] = (await ana.get(f"/v1/rag/knowledge-bases/{base['id']}/documents")).json()["items"]
    items = [{**known, "document_id": f"{n:032x}", "filename": f"note-{n}.txt"} for n in range(DOCUMENTS)]

    async def answer(route: Route) -> None:
        await route.fulfill(json={"items": items, "total": DOCUMENTS, "limit": 500, "offset": 0})

    await visitor.context.route("**/v1/rag/knowledge-bases/*/documents?*", answer)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.set_viewport_size({"width": 1280, "height": 2400})
    await expect(page.get_by_text("note-30.txt")).to_be_visible()
    await page.evaluate(WATCH)
    height = await page.evaluate("document.body.scrollHeight")
    for share in (0.5, 0.9, 0.2, 0.25, 1, 0):
        await page.evaluate("(to) => scrollTo(0, to)", share * height)
        seen = await page.evaluate(SEEN)
        assert seen == list(range(seen[0], seen[-1] + 1))
        assert len(seen) >= 25
        assert 0 < max(await page.evaluate("added")) <= MANY
    await expect(page.get_by_text("note-0.txt")).to_be_visible()


UPLOADED = 24
FEW = 3  # documents that are asked for one by one at a time
PAUSE = 1_500  # between two looks


@pytest.mark.long
async def test_many_are_read_at_once(site: Running, visitor: Visitor) -> None:
    """What became of many documents is asked for together: an account may send only so many requests."""
    ana = await site.user()
    base = await knowledge_base(ana)
    files: list[FilePayload] = [
        {"name": f"note-{n}.md", "mimeType": "", "buffer": f"Berth {n}.".encode()} for n in range(UPLOADED)
    ]
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.set_viewport_size({"width": 1280, "height": 2400})
    await page.locator("input[type=file]").set_input_files(files)
    read = page.get_by_text("one passage")
    await expect(read).to_have_count(UPLOADED + 1)

    async def unread(route: Route) -> None:
        answer = await route.fetch()
        body = await answer.json()
        for item in body["items"]:
            item["status"] = "processing"
        await route.fulfill(response=answer, json=body)

    await page.route("**/documents?*", unread, times=1)
    single: list[str] = []

    def hear(request: Request) -> None:
        if request.url.split("?")[0].split("/")[-2] == "documents" and "/v1/" in request.url:
            single.append(request.url)

    page.on("request", hear)
    await page.reload()
    await expect(page.get_by_role("progressbar").first).to_be_visible()
    await expect(read).to_have_count(UPLOADED + 1)
    assert len(single) <= FEW


LONG = 30_000  # until an answer is no longer waited for


@pytest.mark.long
@pytest.mark.parametrize("lost", [False, True])
async def test_a_slow_server_is_asked_once(site: Running, visitor: Visitor, lost: bool) -> None:
    """While the server hasn't said how far a document is, nobody asks it again, and its answer counts. One
    that a cut connection has lost is not waited for forever.
    """
    ana = await site.user()
    base = await knowledge_base(ana)
    path = f"/v1/rag/knowledge-bases/{base['id']}/documents"
    [known] = (await ana.get(path)).json()["items"]
    held: list[Route] = []

    async def answer(route: Route) -> None:
        if waiting:
            held.append(route)
        else:
            await route.fulfill(json={**known, "status": "processing"})

    async def pass_by(milliseconds: int) -> None:
        async with page.expect_response("**/livez"):
            await page.clock.run_for(milliseconds)
            await page.evaluate("() => { fetch('/livez'); }")

    waiting = False
    await visitor.context.clock.install()
    await visitor.context.route(f"**{path}/{known['document_id']}", answer)
    page = await visitor.arrive(ana, f"/documents/{base['id']}/{known['document_id']}")
    await expect(page.get_by_text("This document is being read")).to_be_visible()
    waiting = True
    for _ in range(4):
        await pass_by(PAUSE)
    assert len(held) == 1
    if lost:
        await pass_by(LONG)
        assert len(held) == 2
    await held[-1].fulfill(json=known)
    await expect(page.frame_locator("iframe").get_by_text("185 euro per night")).to_be_visible()


CONVERSATIONS = 230
# Whether the first letter of a text that is cut off is in its box.
BEGINS = """(box) => {
  const range = document.createRange();
  range.setStart(box.firstChild, 0);
  range.setEnd(box.firstChild, 1);
  const [letter, whole] = [range.getBoundingClientRect(), box.getBoundingClientRect()];
  const isInside = letter.left >= whole.left - 1 && letter.right <= whole.right + 1;
  return isInside && box.scrollWidth > box.clientWidth;
}"""


def _conversation(number: int) -> dict[str, object]:
    question = f"Question {number} about the harbour"
    if number == 0:
        question = "كم الحد الأقصى لتكلفة الفندق في أوسلو لليلة الواحدة؟ " * 3
    return {
        "conversation_id": f"c{number}",
        "last_activity": "2026-01-01T00:00:00Z",
        "snippet": question,
        "first_question": question,
        "title": None,
        "shared": False,
    }


async def test_all_conversations_are_reached(site: Running, visitor: Visitor) -> None:
    """Those beyond the first ones are shown on demand, and found by name; no name loses its beginning."""
    ana = await site.user()
    await knowledge_base(ana)

    async def answer(route: Route) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        offset, limit = (int(query.get(name, ["0"])[0]) for name in ("offset", "limit"))
        items = [_conversation(n) for n in range(offset, min(offset + limit, CONVERSATIONS))]
        await route.fulfill(json={"items": items, "total": CONVERSATIONS, "limit": limit, "offset": offset})

    await visitor.context.route("**/v1/conversations/mine?*", answer)
    page = await visitor.arrive(ana)
    links = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    await expect(links).to_have_count(20)
    assert await links.first.locator(".clip").evaluate(BEGINS)
    for count in (120, 220, CONVERSATIONS):
        await page.get_by_role("button", name="Show older ones").click()
        await expect(links).to_have_count(count)
    await expect(page.get_by_role("button", name="Show older ones")).to_have_count(0)
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Find anything").fill("question 77 about")
    await expect(page.get_by_role("option", name="Question 77 about")).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{site.url}/app/ask/c77")


async def test_a_conversation_that_moves_is_shown_once(site: Running, visitor: Visitor) -> None:
    """A question asked between two pages pushes the last conversation of one onto the next."""
    ana = await site.user()
    await knowledge_base(ana)

    async def answer(route: Route) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        offset, limit = (int(query.get(name, ["0"])[0]) for name in ("offset", "limit"))
        first = offset - 1 if offset else 0
        items = [_conversation(n) for n in range(first, min(first + limit, CONVERSATIONS))]
        await route.fulfill(json={"items": items, "total": CONVERSATIONS, "limit": limit, "offset": offset})

    await visitor.context.route("**/v1/conversations/mine?*", answer)
    page = await visitor.arrive(ana)
    conversations = page.get_by_role("navigation", name="Conversations")
    await page.get_by_role("button", name="Show older ones").click()
    await expect(conversations.get_by_role("link", name="Question 118 about")).to_be_visible()
    await expect(conversations.get_by_role("link", name="Question 99 about")).to_have_count(1)


async def test_messages_leave_the_composer_free(site: Running, visitor: Visitor) -> None:
    """On a phone and on a desktop, a message shown for a while covers nothing that is typed in or pressed."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await visitor.ask("How much may a hotel in Oslo cost per night?")
    copy = page.get_by_role("button", name="Copy the answer")
    for width, height in ((390, 844), (1280, 800)):
        await page.set_viewport_size({"width": width, "height": height})
        await expect(page.locator(".message")).to_have_count(0)
        message = asyncio.create_task(page.locator(".message").last.bounding_box())  # it goes by itself
        await copy.click()
        said, free = await message, await page.locator(".composer").bounding_box()
        assert said and free and said["y"] + said["height"] <= free["y"]


async def test_an_outage_on_a_phone(site: Running, visitor: Visitor) -> None:
    """The line that says so takes the width of the screen rather than a third of its height."""
    ana = await site.user()
    page = await visitor.arrive(ana, "/documents")
    await page.set_viewport_size({"width": 390, "height": 844})
    await visitor.context.route("**/v1/**", lambda route: route.abort())
    await page.reload()
    box = await page.locator(".outage").bounding_box()
    assert box and box["width"] > 340 and box["height"] < 100


@pytest.mark.long
async def test_a_crowd_is_drawn_in_parts(site: Running, visitor: Visitor) -> None:
    """Of hundreds of members the first are shown, more on request; anybody is found by name or e-mail. The
    field stays while something is in it, however few remain.
    """
    ana, _, organization = await colleagues(site)
    [owner, *_] = (await ana.get(f"/v1/organizations/{organization}/members")).json()["items"]
    items = [owner] + [
        {**owner, "user_id": 10_000 + n, "username": f"crew-{n:03}", "email": f"{n:03}@crew.example"}
        for n in range(299)
    ]

    async def answer(route: Route) -> None:
        await route.fulfill(json={"items": items, "total": len(items), "limit": 500, "offset": 0})

    await visitor.context.route(f"**/v1/organizations/{organization}/members?*", answer)
    await visitor.context.route("**/suspension", lambda route: route.fulfill(status=204))
    page = await visitor.arrive(ana, f"/people/organizations/{organization}")
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(100)
    await page.get_by_role("button", name="Show more").click()
    await expect(rows).to_have_count(200)
    await page.get_by_label("Find by name or e-mail").fill("298@crew")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("crew-298")
    del items[2:]
    await page.get_by_role("button", name="More on crew-298").click()
    await page.get_by_role("menuitem", name="Suspend").click()
    await expect(page.get_by_text("Nobody matches.")).to_be_visible()
    await page.get_by_label("Find by name or e-mail").clear()
    await expect(rows).to_have_count(2)
