"""A hostile user: names, texts and addresses that want to be more than text."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

from kernel.testing import Actor, Running
from tests.builtin_plugins.web_client.visits import Visitor, evaluate, knowledge_base, publish

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKUP = '"><img src=x onerror="document.title=\'caught\'"><script>document.title="caught"</script>'
HOSTILE = f"\u202egnp.exe {MARKUP} {{{{7*7}}}} javascript:alert(1)"
ANSWER = (
    "Hotels cost 9 euro. [a link](javascript:document.title='caught') [1](javascript:1) "
    f"![x](https://evil.example/p.png) <iframe src=//evil.example></iframe> {MARKUP}"
)
# What only markup could have made: nothing of it may be in a page.
LOOT = """() => [...document.querySelectorAll("main img, main script, main iframe, main object, [onerror]")]
  .map((one) => one.outerHTML)
  .concat([...document.querySelectorAll("a[href]")].map((a) => a.href).filter((to) => !/^https?:/.test(to)))
  .concat(performance.getEntriesByType("resource").map((one) => one.name).filter((at) => at.includes("evil")))
  .concat(document.title.includes("caught") ? ["a script ran"] : [])
  .concat(document.documentElement.scrollWidth > innerWidth ? ["wider than the screen"] : [])"""


async def hostile_things(ana: Actor) -> dict[str, Any]:
    """One of everything whose name a person chooses."""
    base = await knowledge_base(ana, HOSTILE, ANSWER, description=HOSTILE)
    path = f"/v1/rag/knowledge-bases/{base['id']}"
    name = HOSTILE.replace("/", "_") + ".md"
    sent = await ana.upload(f"{path}/upload", name, b"A ferry costs 12 euro.", "text/markdown")
    body = {"name": HOSTILE[:200], "knowledge_base_ids": [base["id"]]}
    pipeline = (await ana.post("/v1/rag/pipeline", json=body)).json()["pipeline_id"]
    chat = await publish(ana, pipeline)
    look = {"name": HOSTILE[:100], "rag_config": {"greeting": HOSTILE[:300]}}
    await ana.patch(f"/v1/rag/endpoints/{chat}", json=look)
    team = (await ana.post("/v1/teams", json={"name": HOSTILE[:100], "description": HOSTILE})).json()["id"]
    await ana.post("/v1/auth/tokens", json={"name": HOSTILE[:60]})
    questions, run = await evaluate(ana, base["id"])
    ids = {"base": base["id"], "document": sent.json()["document_id"], "chat": chat, "team": team}
    return {**ids, "set": questions, "run": run}


async def test_names_stay_text(site: Running, visitor: Visitor) -> None:
    """Nothing that somebody wrote becomes part of a page, on any page that shows it."""
    ana = await site.user()
    ids = await hostile_things(ana)
    page = await visitor.arrive(ana, "/documents")
    for path in (
        *("/documents", "/documents/{base}", "/documents/{base}/{document}", "/pipelines", "/chats"),
        *("/documents/{base}/{document}?tab=passages", "/documents/{base}/{document}?tab=details"),
        *("/chats/{chat}", "/chats/{chat}?tab=looks", "/people", "/people/teams/{team}", "/keys"),
        *(
            "/evaluation?base={base}",
            "/evaluation/sets/{set}",
            "/evaluation/runs/{run}",
            "/graph?base={base}",
        ),
        "/tools",
    ):
        await visitor.go(path.format(**ids))
        assert await page.evaluate(LOOT) == [], path
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("onerror")
    await page.get_by_role("option").first.wait_for()
    assert await page.evaluate(LOOT) == []


async def test_answers_stay_text(site: Running, visitor: Visitor) -> None:
    """An answer that quotes a hostile document, its citation and its source run nothing and load nothing."""
    ana = await site.user()
    await knowledge_base(ana, HOSTILE, ANSWER)
    page = await visitor.arrive(ana)
    await visitor.ask("How much do hotels cost?")
    await expect(page.locator(".markdown")).to_contain_text("9 euro")
    citation = page.get_by_role("button", name="Source 1").first
    await citation.hover()
    await citation.click()
    await page.locator("mark").first.wait_for()
    assert await page.evaluate(LOOT) == []


async def test_addresses_lead_nowhere_else(site: Running, visitor: Visitor) -> None:
    """Badly written addresses, and those that look like other hosts, show a page of the client."""
    ana = await site.user()
    page = await visitor.arrive(ana)
    origin = site.url
    for path in (
        "/documents/%E0%A4%A",
        "//evil.example/x",
        "/%2f%2fevil.example",
        "/login?next=//evil.example",
    ):
        await visitor.open(path)
        await page.locator("main :is(h1, h2, .notice)").first.wait_for()
        assert page.url.startswith(f"{origin}/app")
    await page.get_by_role("link", name="Ask", exact=True).first.click()
    assert page.url.startswith(f"{origin}/app")


async def test_tokens_and_policy(site: Running, visitor: Visitor) -> None:
    """The token is in this tab alone, in no address; the policy stops scripts and calls that slipped in."""
    ana = await site.user()
    page = await visitor.sign_in(ana)
    kept = "Object.entries({...localStorage}).concat(document.cookie ? [document.cookie] : [])"
    assert not [one for one in await page.evaluate(kept) if "eyJ" in str(one)]
    names = await page.evaluate("performance.getEntries().map((one) => one.name).join(' ') + location.href")
    assert "eyJ" not in names
    slipped = """async () => {
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      document.body.append(script);
      const called = await fetch("https://evil.example/").then(() => "called", () => "stopped");
      return [window.ran ?? false, called];
    }"""
    assert await page.evaluate(slipped) == [False, "stopped"]
    assert visitor.problems
    visitor.problems.clear()
    await page.get_by_role("button", name=ana.user["username"]).click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert await page.evaluate("sessionStorage.getItem('platform.session')") is None
