"""Another site that sends requests to the platform from the browser of somebody who is signed in."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import PLAIN_HOST, Visitor, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

ELSEWHERE = f"http://{PLAIN_HOST}:9/"
# All that a page may do to another site's server without asking it: answers whatever it was able to read.
FORGE = """async ([api, base]) => {
  const body = JSON.stringify({ name: "Forged" });
  const read = [];
  const told = (what) => what.then((answer) => answer.ok && read.push(answer.url), () => {});
  for (const mode of ["no-cors", "cors"]) {
    for (const type of ["text/plain", "application/x-www-form-urlencoded"]) {
      const headers = { "Content-Type": type };
      const options = { method: "POST", mode, credentials: "include", headers, body };
      await told(fetch(`${api}/v1/rag/knowledge-bases`, options));
      await told(fetch(`${api}/v1/auth/logout`, options));
      await told(fetch(`${api}/v1/auth/refresh`, options));
    }
    await told(fetch(`${api}/v1/rag/knowledge-bases`, { mode, credentials: "include" }));
  }
  await told(fetch(`${api}/v1/rag/knowledge-bases/${base}`, { method: "DELETE", credentials: "include" }));
  const image = new Image();
  const shown = new Promise((done) => Object.assign(image, { onload: done, onerror: done }));
  image.src = `${api}/v1/auth/logout`;
  await shown;
  return read;
}"""


async def test_requests_from_another_site(site: Running, visitor: Visitor) -> None:
    """The browser adds nothing by which the platform would know the account: no cookie is ever set, and
    nothing is changed, read or signed out.
    """
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.sign_in(ana, "/documents")
    assert await visitor.context.cookies() == []
    other = await visitor.context.new_page()
    await other.route(
        ELSEWHERE, lambda route: route.fulfill(content_type="text/html", body="<!doctype html><body>")
    )
    await other.goto(ELSEWHERE)
    assert await other.evaluate(FORGE, [site.url, base["id"]]) == []
    await other.close()
    await page.reload()
    await expect(page.get_by_role("link", name="Handbook Private")).to_be_visible()
    items = (await ana.get("/v1/rag/knowledge-bases")).json()["items"]
    assert "Forged" not in {one["name"] for one in items}
