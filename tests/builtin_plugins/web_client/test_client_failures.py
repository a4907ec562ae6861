"""What can't be loaded is said where it is missing: no button, list or choice is silently left out."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page, Route, expect

from kernel.testing import Actor, Running
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

Step = Callable[[Page], Awaitable[None]]
FULL = "The disk is full"


async def nothing(_: Page) -> None:
    pass


async def how_to_answer(page: Page) -> None:
    await page.get_by_role("button", name="How to answer").click()


async def find_anything(page: Page) -> None:
    await page.keyboard.press("Control+k")


def choose(item: str) -> Step:
    """Of the menu beside the heading."""

    async def step(page: Page) -> None:
        await page.locator("main").get_by_role("button", name="More", exact=True).click()
        await page.get_by_role("menuitem", name=item, exact=True).click()

    return step


# The view, what is done there, and the requests that fail.
PLACES: dict[str, tuple[str, Step, str]] = {
    "ways of answering": ("", how_to_answer, "/v1/rag/capabilities$"),
    "conversations": ("", nothing, r"/v1/conversations/mine\?"),
    "whom to share with": ("/documents?new=1", nothing, r"/v1/teams\?"),
    "pipelines that go too": ("/documents/{base}", choose("Delete"), r"/v1/rag/pipeline\?"),
    "work on the whole": ("/documents/{base}", nothing, r"/v1/jobs\?.*subject="),
    "whose a document is": ("/documents/{base}/{document}", nothing, r"/knowledge-bases/[^/]+$"),
    "one's rights": ("/people/organizations/{organization}", nothing, "/effective-permissions$"),
    "a team's invites": ("/people/teams/{team}", nothing, r"/v1/invites\?"),
    "what to find": ("/account", find_anything, r"/v1/rag/knowledge-bases\?"),
}


async def fail(route: Route) -> None:
    await route.fulfill(status=500, json={"detail": FULL, "code": "internal"})


async def things(ana: Actor) -> dict[str, str]:
    """What the views show, by the names in their addresses."""
    base = await knowledge_base(ana)
    documents = (await ana.get(f"/v1/rag/knowledge-bases/{base['id']}/documents")).json()["items"]
    team = (await ana.post("/v1/teams", json={"name": f"Crew {ana.user['id']}"})).json()
    body = {"name": "Nordlys", "slug": f"fails-{ana.user['id']}"}
    organization = (await ana.post("/v1/organizations", json=body)).json()
    return {
        "base": base["id"],
        "document": documents[0]["document_id"],
        "team": str(team["id"]),
        "organization": str(organization["id"]),
    }


@pytest.mark.parametrize("missing", PLACES)
async def test_what_is_missing_is_said(site: Running, visitor: Visitor, missing: str) -> None:
    path, step, requests = PLACES[missing]
    ana = await site.user(role="admin")
    ids = await things(ana)
    await visitor.context.route(re.compile(requests), fail)
    page = await visitor.arrive(ana, path.format(**ids))
    await step(page)
    await expect(page.get_by_text(FULL).first).to_be_visible()


async def test_trying_again(site: Running, visitor: Visitor) -> None:
    """Once it works again, what was missing is there."""
    ana = await site.user()
    await knowledge_base(ana)
    offered = re.compile("/v1/rag/capabilities$")
    await visitor.context.route(offered, fail)
    page = await visitor.arrive(ana)
    await how_to_answer(page)
    failure = page.get_by_role("alert").filter(has_text=FULL)
    await failure.wait_for()
    await visitor.context.unroute(offered)
    await failure.get_by_role("button", name="Try again").click()
    await expect(page.get_by_label("Passages to read")).to_be_visible()
    await expect(failure).to_have_count(0)


async def test_a_document_that_cannot_be_read_again(site: Running, visitor: Visitor) -> None:
    """Pressing "Try again" on a failed document says why that failed, too."""
    ana = await site.user()
    base = await knowledge_base(ana)
    path = f"/v1/rag/knowledge-bases/{base['id']}"
    [known] = (await ana.get(f"{path}/documents")).json()["items"]
    broken = {**known, "status": "failed", "error": "The file is damaged"}

    async def answer(route: Route) -> None:
        await route.fulfill(json={"items": [broken], "total": 1, "limit": 500, "offset": 0})

    await visitor.context.route(re.compile(r"/documents\?"), answer)
    await visitor.context.route(re.compile("/content$"), fail)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.locator(".message-bad")).to_contain_text(FULL)


async def test_a_document_that_waits_for_room(site: Running, visitor: Visitor) -> None:
    """Its list and its page say what it waits for, and not that it was read in part."""
    ana = await site.user()
    base = await knowledge_base(ana)
    path = f"/v1/rag/knowledge-bases/{base['id']}"
    [known] = (await ana.get(f"{path}/documents")).json()["items"]
    waiting = {**known, "status": "processing", "searchable_count": 0, "notice": FULL}

    async def answer(route: Route) -> None:
        listed = {"items": [waiting], "total": 1, "limit": 500, "offset": 0}
        await route.fulfill(json=listed if "/documents?" in route.request.url else waiting)

    await visitor.context.route(re.compile(r"/knowledge-bases/[^/]+/documents[?/]"), answer)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await expect(page.locator(".document-progress")).to_have_text(FULL)
    await page.get_by_role("link", name=known["filename"]).click()
    await expect(page.locator(".notice")).to_have_text(f"This document is being read{FULL}")
