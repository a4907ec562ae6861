"""A long list draws what is seen, and little of it at a time."""

from __future__ import annotations

import pytest
from playwright.async_api import Route, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base

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
