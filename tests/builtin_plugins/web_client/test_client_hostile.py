"""A hostile user: names, texts and addresses that want to be more than text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from playwright.async_api import Route, ViewportSize, expect
from playwright.async_api import TimeoutError as PlaywrightTimeout

from kernel.testing import Actor, Running
from tests.builtin_plugins.web_client.visits import Visitor, answer_with, evaluate, knowledge_base, publish

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKUP = '"><img src=x onerror="document.title=\'caught\'"><script>document.title="caught"</script>'
HOSTILE = f"\u202egnp.exe {MARKUP} {{{{7*7}}}} javascript:alert(1)"
ANSWER = (
    "Hotels cost 9 euro. [a link](javascript:document.title='caught') [1](javascript:1) "
    f"![x](https://evil.example/p.png) <iframe src=//evil.example></iframe> {MARKUP}"
)
# What only markup could have made: nothing of it may be in a page.
LOOT = """() => [...document.querySelectorAll(
    "main img:not([src^='blob:']), main script, main iframe:not(.preview), main object, [onerror]")]
  .map((one) => one.outerHTML)
  .concat([...document.querySelectorAll("a[href]")].map((a) => a.href).filter((to) => !/^https?:/.test(to)))
  .concat(performance.getEntriesByType("resource").map((one) => one.name).filter((at) => at.includes("evil")))
  .concat(document.title.includes("caught") ? ["a script ran"] : [])
  .concat(document.documentElement.scrollWidth > innerWidth ? ["wider than the screen"] : [])"""

AS_WIDE = "document.documentElement.scrollWidth <= innerWidth"

PHONE: ViewportSize = {"width": 360, "height": 740}
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
ENDLESS = f"{HOSTILE} {'Ŵ' * 10_000}"
DIALOGS = (
    ("/documents?new=1", "Create"),
    ("/pipelines?new=1", "Create"),
    ("/chats?new=1", "Publish"),
    ("/evaluation?base={base}&new=1", "Create"),
    ("/keys?new=1", "Create"),
    ("/plugins/marketplace?new=1", "Create a draft"),
)
# The browser needs many seconds to lay out a word of 400 kB: that isn't what is tried here.
UNSEEN = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(".markdown { display: none }");
  document.adoptedStyleSheets = [sheet];
}"""
FITS = """(box) => {
  const { left, right } = box.getBoundingClientRect();
  return left >= 0 && right <= innerWidth && box.scrollWidth <= box.clientWidth;
}"""


def hostile(most: int) -> str:
    """As much of it as a field takes: markup, reversed writing, and a word without an end."""
    return ENDLESS[:most]


async def hostile_people(ana: Actor) -> dict[str, Any]:
    """An organization, a role, a team, a listing and a key with hostile names, as long as they may be."""
    body = {"name": hostile(255), "slug": f"hostile-{ana.user['id']}"}
    answer = await ana.post("/v1/organizations", json=body)
    assert answer.status == 201, answer.body
    organization = answer.json()["id"]
    role = {"name": hostile(100).replace("/", "_"), "description": hostile(2000), "permissions": []}
    made = await ana.post(f"/v1/organizations/{organization}/roles", json=role)
    assert made.status == 201, made.body
    listing = {
        "name": hostile(100).replace("/", "_"),
        "display_name": hostile(200),
        "author": hostile(100),
        "description": hostile(10_000),
    }
    offered = await ana.post("/v1/marketplace/plugins", json=listing)
    assert offered.status == 201, offered.body
    return {"organization": organization, "listing": offered.json()["id"]}


async def hostile_things(ana: Actor) -> dict[str, Any]:
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


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[a](http://" * 40_000, id="links without an end"),
        pytest.param("[ " * 100_000, id="brackets without an end"),
        pytest.param("\n" * 1_000_000 + "```\n" * 30_001, id="code far below"),
        pytest.param("- " * 50_000 + "\n" + "1. a\n\n" * 10_000, id="lists in lists"),
        pytest.param(
            "**" + "* " * 50_000 + "**a *b " * 10_000 + "~~_a__" * 10_000, id="marks without an end"
        ),
        pytest.param("`a ``b ```c " * 10_000 + "[1](" * 25_000, id="code and sources without an end"),
        pytest.param("> " * 50_000 + "a\n" + "![" * 50_000 + "$ a\\(" * 20_000, id="quotes and formulas"),
    ],
)
async def test_an_answer_that_takes_hours_to_read(site: Running, visitor: Visitor, text: str) -> None:
    """However a model arranges the marks of Markdown, the page doesn't go through them again and again."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await page.evaluate(UNSEEN)
    await answer_with(page, f"{text}\n\nThe end.")
    await visitor.ask("Which hotels are there?")
    await expect(page.locator(".markdown > :last-child")).to_have_text("The end.")


FORMATTED = """# Rules

1. Ask first:

   ```sh
   ask --first
   ```

2. Then **go *now*** or __stay__:
   - by boat
     - small
3. Pay ~~cash~~ by card. See https://example.com/pay_now.

Name | Price
--- | ---:
Boat | 2<br>3
A \\| B | \\*4

---

- السعر: 185
- [x] نعم
"""


async def test_markdown_as_models_write_it(site: Running, visitor: Visitor) -> None:
    """Lists in lists, code in items, tables without outer bars, rules, marks of all kinds, Arabic lists."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await answer_with(page, FORMATTED)
    await visitor.ask("Which rules are there?")
    answer = page.locator(".markdown")
    await expect(answer.locator("> ol > li")).to_have_count(3)
    await expect(answer.locator("> ol > li > pre")).to_have_text("ask --first")
    await expect(answer.locator("> ol > li > ul > li > ul")).to_have_text("small")
    await expect(answer.locator("strong")).to_have_text(["go now", "stay"])
    await expect(answer.locator("strong em")).to_have_text("now")
    await expect(answer.locator("s")).to_have_text("cash")
    await expect(answer.get_by_role("link")).to_have_attribute("href", "https://example.com/pay_now")
    await expect(answer.get_by_role("cell")).to_have_text(
        ["Boat", "2\n3", "A | B", "*4"], use_inner_text=True
    )
    await expect(answer.locator("hr")).to_have_count(1)
    await expect(answer.locator("> ul")).to_have_css("direction", "rtl")
    await expect(answer.locator("> ul > li").last).to_have_text("☑ نعم")


async def test_names_stay_text(site: Running, visitor: Visitor) -> None:
    """Nothing that somebody wrote becomes part of a page, on any page that shows it."""
    ana = await site.user(role="admin")
    ids = {**await hostile_things(ana), **await hostile_people(ana)}
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
        *("/people/organizations", "/people/organizations/{organization}"),
        *("/people/organizations/{organization}/roles", "/audit", "/tools"),
        *("/plugins/marketplace", "/plugins/marketplace/{listing}"),
    ):
        await visitor.go(path.format(**ids))
        for size in (PHONE, DESKTOP):
            await page.set_viewport_size(size)
            with suppress(PlaywrightTimeout):  # a page takes a moment to fit another size
                await page.wait_for_function(AS_WIDE, timeout=5_000)
            assert await page.evaluate(LOOT) == [], f"{path} at {size['width']}"
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("onerror")
    await page.get_by_role("option").first.wait_for()
    assert await page.evaluate(LOOT) == []


@pytest.mark.long
async def test_endless_names_are_refused(site: Running, visitor: Visitor) -> None:
    """10,000 characters in every field of every form: what was typed stays, the reason is told, and fits."""
    ana = await site.user()
    base = await knowledge_base(ana)
    await ana.post("/v1/rag/pipeline", json={"name": "Handbook", "knowledge_base_ids": [base["id"]]})
    page = await visitor.arrive(ana)
    await page.set_viewport_size(PHONE)
    for path, send in DIALOGS:
        await visitor.go(path.format(base=base["id"]))
        form = page.get_by_role("dialog")
        fields = form.locator("input:is([type=text], :not([type])), textarea")
        for field in await fields.all():
            await field.fill(ENDLESS)
        for needed in await form.get_by_role("checkbox", name="Handbook").all():
            await needed.check()
        async with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
            await form.get_by_role("button", name=send, exact=True).click()
        assert (await sent.value).status == 422, path
        await expect(form.get_by_role("alert")).to_be_visible()
        assert await page.evaluate(LOOT) == [], path
        assert await form.evaluate(FITS), path
        assert (await fields.first.input_value()).startswith("\u202e")


MANY = "Zu viele Anfragen. Versuchen Sie es"
FAILED = "Die Anfrage ist fehlgeschlagen ({}).".format


def answering(**answer: Any) -> Callable[[Route], Awaitable[None]]:
    async def give(route: Route) -> None:
        await route.fulfill(**answer)

    return give


@pytest.mark.long
async def test_refusals_in_disguise(site: Running, visitor: Visitor) -> None:
    """Codes that every object has, markup, braces, lists and times that make no sense: each is told in a
    sentence. A request that may be sent again in an hour isn't left waiting; a short message doesn't lose
    what the API says.
    """
    ana = await site.user()
    team = (await ana.post("/v1/teams", json={"name": "Nordlys {n}"})).json()["id"]
    answers: list[tuple[str, dict[str, Any]]] = [
        (MARKUP, {"status": 418, "json": {"detail": MARKUP, "code": "x"}}),
        ("{n} {status}", {"status": 418, "json": {"detail": "{n} {status}", "code": "toString"}}),
        ("Odd", {"status": 418, "json": {"detail": "Odd", "code": "constructor"}}),
        ("Odder", {"status": 418, "json": {"detail": "Odder", "code": "__proto__"}}),
        (FAILED(500), {"status": 500, "body": f"<h1>{MARKUP}</h1>"}),
        (FAILED(409), {"status": 409, "json": {"detail": {"shared": []}, "code": "x"}}),
        (FAILED(400), {"status": 400, "json": {"detail": [], "code": "x"}}),
        *(
            (f"{name}: Odd", {"status": 422, "json": {"detail": [{"loc": ["body", name], "msg": "Odd"}]}})
            for name in ("constructor", "__proto__")
        ),
        (f"{MANY} in 2.000 Minuten noch einmal.", {"status": 429, "headers": {"Retry-After": "120000"}}),
        (f"{MANY} in einer Sekunde noch einmal.", {"status": 429, "headers": {"Retry-After": "1"}}),
        *(
            (f"{MANY} später noch einmal.", {"status": 429, "headers": {"Retry-After": strange}})
            for strange in ("-5", "1e99", "Infinity", "Sat, 28 Nov 2026 01:00:00 GMT")
        ),
    ]
    await visitor.context.add_init_script("localStorage['platform.language'] = 'de'")
    page = await visitor.open()
    await page.get_by_label("Benutzername").fill("ana")
    await page.get_by_label("Passwort").fill("anything")
    for text, answer in answers:
        await page.route("**/v1/auth/login", answering(**answer), times=1)
        async with page.expect_response("**/v1/auth/login"):
            await page.get_by_role("button", name="Anmelden", exact=True).click()
        await expect(page.get_by_role("alert")).to_have_text(text)
    assert await page.evaluate(LOOT) == []

    full = {"detail": "At most 3 a day", "code": "limit_reached"}
    await page.route("**/v1/teams/*/export", answering(status=409, json=full))
    later = answering(status=429, headers={"Retry-After": "3600"})
    await page.route(f"**/v1/teams/{team}", later, times=1)
    await visitor.arrive(ana, f"/people/teams/{team}")
    await expect(page.get_by_role("alert")).to_contain_text("in 60 Minuten")
    await page.get_by_role("alert").get_by_role("button").click()
    await page.locator("main").get_by_role("button", name="Mehr", exact=True).click()
    await page.get_by_role("menuitem", name="Exportieren").click()
    await expect(page.locator(".message")).to_contain_text("Grenze dieses Servers")
    await expect(page.locator(".message [lang=en]")).to_have_text("At most 3 a day")


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
    await page.frame_locator("iframe").get_by_text("9 euro").first.wait_for()
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
