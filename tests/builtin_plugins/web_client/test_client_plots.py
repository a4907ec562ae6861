"""Bars over time, each with a table of the same, and the audit log filtered by names."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Route, expect

from kernel.sdk import Account, Unit
from kernel.testing import Running
from tests.builtin_plugins.rag.rag_support import ingest
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _promote(unit: Unit, account_id: int) -> None:
    unit.session.get_one(Account, account_id).platform_admin = True


async def test_jobs_of_the_last_day(site: Running, visitor: Visitor) -> None:
    """The bars of the background jobs add up to what the table below them says."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana, "/operations")
    plot = page.get_by_role("figure", name="Jobs of the last 24 hours")
    await expect(plot.locator("rect").first).to_be_attached()
    await plot.get_by_text("As a table").click()
    await expect(plot.get_by_role("row")).to_have_count(25)
    cells = await plot.locator("tbody td.number").all_text_contents()
    assert sum(map(int, cells)) == (await ana.get("/v1/jobs?limit=1")).json()["total"]


async def test_questions_of_a_published_chat(site: Running, visitor: Visitor) -> None:
    """Questions and ratings of each day of the last month, also of days without any."""
    ana = await site.user()
    base = await knowledge_base(ana)
    body = {"name": "Help", "knowledge_base_ids": [base["id"]]}
    pipeline = (await ana.post("/v1/rag/pipeline", json=body)).json()["pipeline_id"]
    chat = {"name": "Help", "slug": f"s-{base['id']}", "pipeline_id": pipeline, "allowed_origins": "*"}
    made = await ana.post("/v1/rag/endpoints", json=chat)
    assert made.status in (200, 201), made.body
    today = {"day": datetime.now(UTC).date().isoformat(), "tokens": 0}
    counts = {"questions": 9, "answered": 6, "refused": 2, "failed": 1, "up": 4, "down": 1}
    figures = json.dumps({"items": [today | counts], **counts, "tokens": 0})

    async def answer(route: Route) -> None:
        await route.fulfill(content_type="application/json", body=figures)

    page = await visitor.arrive(ana)
    await page.route("**/figures?*", answer)
    await visitor.go("/chats")
    await page.get_by_role("button", name="More on Help").click()
    await page.get_by_role("menuitem", name="Figures").click()
    plot = page.get_by_role("figure", name="Questions per day")
    await expect(plot.locator("rect")).to_have_count(3)
    await plot.get_by_text("As a table").click()
    await expect(plot.get_by_role("row")).to_have_count(31)
    await expect(plot.get_by_role("row").last.locator("td.number")).to_have_text(["6", "2", "1"])
    await expect(page.get_by_role("figure", name="Ratings per day").locator("rect")).to_have_count(2)


async def test_the_audit_log_by_names(site: Running, visitor: Visitor) -> None:
    """Who did it and what it concerns are chosen by name; an entry leads to all about its target."""
    ana, ben, root = await site.user(), await site.user(), await site.user(role="admin")
    await site.platform.database.write(_promote, root.user["id"])
    root = await site.sign_in(root.user["username"], root.password)
    await knowledge_base(ana, name="Handbook of Ana")
    await knowledge_base(ben, name="Handbook of Ben")
    page = await visitor.arrive(root, "/audit")
    await page.get_by_label("By", exact=True).select_option(label=ana.user["username"])
    rows = page.locator("tbody tr")
    await expect(page.get_by_role("link", name="Handbook of Ben")).to_have_count(0)
    await page.get_by_label("Concerning", exact=True).select_option(label="Knowledge base")
    await expect(rows).to_have_count(1)
    await rows.get_by_role("button", name="Details").click()
    await page.get_by_role("link", name="Everything about it").click()
    await expect(page.get_by_role("button", name="Only about “Handbook of Ana”")).to_be_visible()
    await page.get_by_role("button", name="Only about “Handbook of Ana”").click()
    await expect(page.get_by_role("button", name="Only about")).to_have_count(0)


async def test_questions_of_knowledge_bases(site: Running, visitor: Visitor) -> None:
    """Whoever may change a knowledge base sees how often it was asked, there and at Operations."""
    ana = await site.user()
    base = await knowledge_base(ana)
    body = {"name": "Help", "knowledge_base_ids": [base["id"]]}
    pipeline = (await ana.post("/v1/rag/pipeline", json=body)).json()["pipeline_id"]
    asked = await ana.post(f"/v1/rag/pipeline/{pipeline}/query", json={"question": "Who won the regatta?"})
    assert asked.status == 200, asked.body
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Figures").click()
    plot = page.get_by_role("dialog").get_by_role("figure", name="Questions per day")
    await expect(plot.locator("rect")).to_have_count(1)
    await page.keyboard.press("Escape")
    await visitor.open("/operations")
    await expect(page.get_by_role("figure", name="Questions per day")).to_be_visible()


async def test_storage_of_knowledge_bases(site: Running, visitor: Visitor) -> None:
    """What documents take up today, and on days without a record what the day before had."""
    ana = await site.user()
    base = await knowledge_base(ana)
    await ingest(site, ana, base["id"], "keeper.md", "The keeper earns 4,100 crowns.")
    page = await visitor.arrive(ana, "/operations")
    plot = page.get_by_role("figure", name="Files by day")
    await expect(plot.locator("rect")).to_have_count(1)
    await expect(page.get_by_role("figure", name="Storage by day").locator("rect")).to_have_count(1)
    today = datetime.now(UTC).date()
    records = [
        {"day": (today - timedelta(days=ago)).isoformat(), "size_bytes": 2000, "files": count}
        for ago, count in ((0, 5), (3, 4), (40, 3))
    ]

    async def answer(route: Route) -> None:
        counts = dict.fromkeys(("questions", "refused", "up", "down"), 0)
        await route.fulfill(
            content_type="application/json", body=json.dumps({"items": [], "storage": records} | counts)
        )

    await page.route("**/figures?*", answer)
    await page.reload()
    await plot.get_by_text("As a table").click()
    await expect(plot.locator("td.number")).to_have_text([*["3"] * 26, "4", "4", "4", "5"])
