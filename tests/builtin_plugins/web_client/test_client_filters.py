"""Documents and questions narrowed by the values of fields."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Request, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, completed, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_documents_and_questions_by_facets(site: Running, visitor: Visitor) -> None:
    """What is chosen is shown, can be removed, and narrows the list and the question."""
    ana = await site.user()
    base = (await knowledge_base(ana))["id"]
    place = f"/v1/rag/knowledge-bases/{base}"
    for name in ("plan.md", "report.md"):
        sent = await ana.upload(f"{place}/upload", name, f"# {name}\n\nThe quay is closed.\n".encode())
        assert sent.status == 202
        await completed(ana, f"{place}/documents/{sent.json()['document_id']}")
    documents = {item["filename"]: item for item in (await ana.get(f"{place}/documents")).json()["items"]}
    for name, tags in (("plan.md", ["draft", "quay"]), ("report.md", ["quay"])):
        path = f"{place}/documents/{documents[name]['document_id']}/metadata"
        assert (await ana.patch(path, json={"tags": tags})).status == 200
    page = await visitor.arrive(ana, f"/documents/{base}")
    await page.get_by_role("button", name="Filter", exact=True).click()
    facets = page.get_by_role("group", name="Filter documents")
    await facets.get_by_role("button", name="quay 2").click()
    rows = page.get_by_role("list", name="Documents").get_by_role("listitem")
    await expect(rows).to_have_count(2)
    await facets.get_by_role("button", name="draft 1").click()
    await expect(rows).to_have_count(2)
    await page.get_by_role("button", name="Remove the filter Tags: quay").click()
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("plan.md")
    await page.get_by_role("button", name="Remove the filter Tags: draft").click()
    await expect(rows).to_have_count(len(documents))
    asked: list[Request] = []
    page.on("request", lambda one: asked.append(one) if one.url.endswith("/query") else None)
    await page.goto(f"{site.url}/app/?base={base}")
    await page.get_by_role("button", name="Ask only some documents").click()
    await page.get_by_role("button", name="draft 1").click()
    await page.get_by_label("Your question").fill("Is the quay open?")
    await page.get_by_role("button", name="Ask", exact=True).click()
    await expect(page.get_by_role("button", name="Remove the filter Tags: draft")).to_be_visible()
    await expect(page.locator(".transcript").get_by_text("closed").first).to_be_visible()
    assert json.loads(asked[0].post_data or "{}")["metadata_filter"] == {"tags": ["draft"]}
