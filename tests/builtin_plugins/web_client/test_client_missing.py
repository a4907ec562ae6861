"""Addresses of what doesn't exist, and things without an owner."""

from __future__ import annotations

import uuid

import pytest
from playwright.async_api import Browser, expect

from builtin_plugins.rag.models import KnowledgeBase
from kernel.sdk import Unit
from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

GONE = str(uuid.UUID(int=7))
ADDRESSES = (
    "/documents/gone",
    f"/documents/{GONE}",
    f"/documents/{GONE}/{GONE}",
    f"/ask/{GONE}",
    f"/chats/{GONE}",
    f"/evaluation/sets/{GONE}",
    f"/evaluation/runs/{GONE}",
    "/plugins/none",
    "/plugins/marketplace/987654",
    "/people/teams/987654",
    "/people/organizations/987654",
    "/no/such/page",
)


async def test_what_does_not_exist_has_a_heading(site: Running, browser: Browser) -> None:
    """Whatever a link led to once, the page says in its heading that it isn't there, in one language."""
    context = await browser.new_context(locale="de-DE", viewport={"width": 1280, "height": 800})
    visitor = Visitor(site, context)
    page = await visitor.arrive(await site.user())
    heading = page.locator("main h1")
    wrong = []
    for address in ADDRESSES:
        await visitor.open(address)
        await expect(heading.or_(page.locator("main [role=alert]")).first).to_be_visible()
        shown = await page.locator("main").inner_text()
        if await heading.count() != 1 or "not found" in shown.lower():
            wrong.append((address, shown))
    await context.close()
    assert wrong == []
    assert visitor.problems == []


def _disown(unit: Unit, base: str) -> None:
    row = unit.session.get_one(KnowledgeBase, base)
    row.owner_id, row.visibility = None, "shared"


async def test_what_nobody_owns(site: Running, visitor: Visitor) -> None:
    """What has no owner is everyone's to read; only an administrator is offered to change it."""
    ana, boss = await site.user(), await site.user(role="admin")
    base = await knowledge_base(ana)
    await site.platform.database.write(_disown, base["id"])
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await expect(page.locator("main").get_by_text("Everyone here")).to_be_visible()
    await expect(page.get_by_text("handbook.md")).to_be_visible()
    await expect(page.get_by_role("button", name="More", exact=True)).to_have_count(0)
    assert (await boss.delete(f"/v1/rag/knowledge-bases/{base['id']}")).status == 200
