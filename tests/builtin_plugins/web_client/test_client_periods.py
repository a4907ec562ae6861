"""The period that a question was answered for, and what a text says about when it applies."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Request, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, completed, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_period_is_shown_and_removed(site: Running, visitor: Visitor) -> None:
    ana = await site.user()
    base = (await knowledge_base(ana))["id"]
    place = f"/v1/rag/knowledge-bases/{base}"
    text = "# Quay\n\nThe quay is closed on Sundays.\n\nValid from 1 January 2020.\n"
    sent = await ana.upload(f"{place}/upload", "quay.md", text.encode())
    assert sent.status == 202
    await completed(ana, f"{place}/documents/{sent.json()['document_id']}")
    page = await visitor.arrive(ana, f"/documents/{base}/{sent.json()['document_id']}")
    await page.get_by_role("link", name="Details").click()
    await page.get_by_role("button", name="Accept Valid from").click()
    await expect(page.get_by_role("button", name="Accept Valid from")).to_have_count(0)
    asked: list[Request] = []
    page.on("request", lambda one: asked.append(one) if one.url.endswith("/query") else None)
    await page.goto(f"{site.url}/app/?base={base}")
    await page.get_by_label("Your question").fill("When is the quay closed?")
    await page.get_by_role("button", name="Ask", exact=True).click()
    remove = page.get_by_role("button", name="Remove the period Documents that apply today")
    await remove.click()
    await expect(remove).to_have_count(0)
    await expect(page.locator(".transcript").get_by_text("Sundays").first).to_be_visible()
    assert [json.loads(one.post_data or "{}").get("use_period") for one in asked] == [None, False]
