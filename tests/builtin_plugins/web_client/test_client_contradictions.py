"""What documents say differently: compared, shown beside each other, and opened where it stands."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Route, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, completed, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_documents_are_compared_and_shown(site: Running, visitor: Visitor) -> None:
    ana = await site.user()
    base = (await knowledge_base(ana))["id"]
    place = f"/v1/rag/knowledge-bases/{base}"
    for year, amount in ((2025, 185), (2026, 210)):
        text = f"# Travel\n\nA hotel in Bergen may cost up to {amount} euro per night.\n"
        sent = await ana.upload(f"{place}/upload", f"travel-{year}.md", text.encode())
        await completed(ana, f"{place}/documents/{sent.json()['document_id']}")
    page = await visitor.arrive(ana, f"/documents/{base}")
    await page.get_by_role("link", name="Contradictions").click()
    await expect(page.get_by_role("heading", name="Contradictions")).to_be_visible()
    await page.get_by_role("button", name="Compare the documents").click()
    await expect(page.get_by_text("One contradiction")).to_be_visible()
    pair = page.locator(".change")
    await expect(pair.locator("mark")).to_have_text(["185", "210"])
    await pair.get_by_role("link", name="travel-2025.md").click()
    await expect(page.get_by_role("heading", name="travel-2025.md")).to_be_visible()
    assert "from=" in page.url and not visitor.problems


async def test_a_model_is_asked_and_named(site: Running, visitor: Visitor) -> None:
    """Where one is connected, which the server says here though there is none."""
    ana, sent = await site.user(), list[Any]()
    base = (await knowledge_base(ana))["id"]
    place = f"/v1/rag/knowledge-bases/{base}"
    for name, amount in (("travel-2025.md", 185), ("travel-2026.md", 210)):
        text = f"# Travel\n\nA hotel in Bergen may cost up to {amount} euro per night.\n"
        upload = await ana.upload(f"{place}/upload", name, text.encode())
        await completed(ana, f"{place}/documents/{upload.json()['document_id']}")

    async def answer(route: Route) -> None:
        if route.request.method == "POST":
            sent.append(route.request.post_data_json)
            await route.continue_(post_data={"model_calls": 0})
            return
        found = await (await route.fetch()).json()
        found["items"] = [{**one, "found_by": "model"} for one in found["items"]]
        await route.fulfill(json={**found, "has_model": True})

    page = await visitor.arrive(ana, f"/documents/{base}")
    await page.route(f"**{place}/contradictions*", answer)
    await page.get_by_role("link", name="Contradictions").click()
    await page.get_by_role("button", name="Ask the model, too").click()
    await expect(page.get_by_text("Found by the model")).to_be_visible()
    await expect(page.locator(".change")).to_contain_text("185 euro")
    await expect(page.locator(".change mark")).to_have_count(0)
    assert sent == [{"model_calls": 100}]
