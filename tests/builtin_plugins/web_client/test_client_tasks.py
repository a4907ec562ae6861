"""What people do besides: passwords, traces, correlations, trees of organizations, visitors, addresses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from kernel.testing import Actor, Running, eventually
from tests.builtin_plugins.web_client.places import PAGES, one_of_everything
from tests.builtin_plugins.web_client.visits import (
    STATION,
    Visitor,
    completed,
    evaluate,
    knowledge_base,
    publish,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How much may a hotel in Oslo cost per night?"
SCREENS = ((3840, 2160), (360, 640))


async def kept(page: Page, press: Locator) -> Any:
    """The JSON that a button hands to the browser to keep."""
    async with page.expect_download() as download:
        await press.click()
    return json.loads((await (await download.value).path()).read_text(encoding="utf-8"))


async def test_changing_the_password(site: Running, visitor: Visitor) -> None:
    """This session goes on, others end. Without a provider, no other way to sign in is offered."""
    ana = await site.user()
    page = await visitor.open("/login")
    await expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    await expect(page.get_by_role("button", name="Sign in with")).to_have_count(0)
    await visitor.sign_in(ana, "/account")
    await page.get_by_label("Current password").fill(ana.password)
    await page.get_by_label("New password", exact=True).fill("another good one")
    await page.get_by_label("New password, again").fill("another good two")
    await expect(page.get_by_text("The two are not the same.")).to_be_visible()
    await page.get_by_label("New password, again").fill("another good one")
    await page.get_by_role("button", name="Change the password").click()
    await expect(page.get_by_text("Your password has been changed.")).to_be_visible()
    assert (await ana.get("/v1/rag/knowledge-bases")).status == 401
    await page.reload()
    await expect(page.get_by_role("heading", name="Your account")).to_be_visible()
    await site.sign_in(ana.user["username"], "another good one")


async def test_ones_own_data(site: Running, visitor: Visitor) -> None:
    """Conversations are downloaded; everything of one's own is deleted, and nothing of others that an
    administrator sees. A failure in between says what is left, and can be tried again.
    """
    ana, bob = await site.user(role="admin"), await site.user()
    base, others = await knowledge_base(ana), await knowledge_base(bob)
    pipeline = {"name": "Handbook", "knowledge_base_ids": [base["id"]]}
    pipeline_id = (await ana.post("/v1/rag/pipeline", json=pipeline)).json()["pipeline_id"]
    asked = {"question": QUESTION, "conversation_id": "talk"}
    assert (await ana.post(f"/v1/rag/pipeline/{pipeline_id}/query", json=asked)).status == 200
    chat = await publish(ana, pipeline_id)
    await ana.post("/v1/auth/tokens", json={"name": "agent"})
    page = await visitor.arrive(ana, "/account")
    bundle = await kept(page, page.get_by_role("button", name="Download your conversations"))
    assert QUESTION in json.dumps(bundle)
    await page.get_by_role("button", name="Delete your data").click()
    dialog = page.get_by_role("dialog", name="Delete your data?")
    lines = dialog.get_by_role("listitem")
    await expect(lines).to_have_text(
        [
            *("One knowledge base with one document", "One pipeline", "One published chat"),
            *("One conversation", "One key for a program"),
        ]
    )
    delete = dialog.get_by_role("button", name="Delete", exact=True)
    await dialog.get_by_label("To confirm, type your username").fill(f"{ana.user['username']}x")
    await expect(delete).to_be_disabled()
    await dialog.get_by_label("To confirm, type your username").fill(ana.user["username"])

    async def fail(route: Route) -> None:
        await route.fulfill(status=500, json={"detail": "The disk is full", "code": "broken"})

    await visitor.context.route("**/v1/conversations/mine", fail)
    await delete.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("The disk is full")
    await expect(lines).to_have_text(["One conversation", "One key for a program"])
    await visitor.context.unroute("**/v1/conversations/mine")
    await delete.click()
    await expect(page.get_by_text("Your data is deleted.")).to_be_visible()
    assert (await ana.get("/v1/conversations/mine")).json()["total"] == 0
    assert (await ana.get("/v1/auth/tokens")).json()["total"] == 0
    gone = {base["id"], pipeline_id, chat}
    for path in ("/v1/rag/knowledge-bases", "/v1/rag/pipeline", "/v1/rag/endpoints"):
        items = (await ana.get(path, params={"limit": 500})).json()["items"]
        assert gone.isdisjoint(one["id"] for one in items)
    assert (await bob.get(f"/v1/rag/knowledge-bases/{others['id']}")).status == 200


async def test_what_one_uses(site: Running, visitor: Visitor) -> None:
    """The account's page shows what it and its organizations use; a knowledge base's page says when a limit
    is near, before anything is refused.
    """
    ana = await site.user(role="admin")
    made = {"name": "Nordlys", "slug": f"uses-{ana.user['id']}"}
    organization = (await ana.post("/v1/organizations", json=made)).json()["id"]
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, "/account")
    stored = page.get_by_role("meter", name="Your account: Files", exact=True)
    await expect(stored).to_have_attribute("aria-valuetext", re.compile(r"\d+ .*bytes? of .*GB"))
    await expect(page.get_by_role("meter", name="Nordlys: Passages")).to_be_visible()
    await visitor.go(f"/documents/{base['id']}")
    near = page.get_by_role("status").filter(has_text="There is little room left")
    await expect(page.get_by_text("handbook.md")).to_be_visible()
    await expect(near).to_have_count(0)
    usage = (await ana.get("/v1/rag/usage")).json()
    assert usage["organizations"][0]["organization_id"] == organization
    usage["passages"] = {"used": 95, "limit": 100}

    async def scarce(route: Route) -> None:
        await route.fulfill(json=usage)

    await visitor.context.route("**/v1/rag/usage", scarce)
    await page.reload()
    await near.get_by_role("link", name="What you use").click()
    await expect(page.get_by_text("95 of 100")).to_be_visible()


async def test_deleting_ones_account(site: Running, visitor: Visitor) -> None:
    """What others use is named first; once private, it is deleted with the account, and the session ends."""
    ana = await site.user()
    base = await knowledge_base(ana)
    path = f"/v1/rag/knowledge-bases/{base['id']}"
    assert (await ana.patch(path, json={"visibility": "shared"})).status == 200
    page = await visitor.arrive(ana, "/account")
    await page.get_by_role("button", name="Delete your account").click()
    dialog = page.get_by_role("dialog", name="Delete your account?")
    delete = dialog.get_by_role("button", name="Delete your account")
    await dialog.get_by_label("To confirm, type your username").fill(ana.user["username"])
    await expect(delete).to_be_disabled()
    await dialog.get_by_label("Password").fill(f"{ana.password}x")
    await delete.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("wrong")
    await dialog.get_by_label("Password").fill(ana.password)
    await delete.click()
    await expect(dialog.get_by_role("listitem")).to_contain_text(["Knowledge base"])
    await expect(dialog.get_by_role("alert")).not_to_contain_text(base["name"])
    assert (await ana.patch(path, json={"visibility": "private"})).status == 200
    await delete.click()
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await expect(page.get_by_text("Your account is deleted.")).to_be_visible()
    assert (await ana.get(path)).status == 401


async def test_deleting_an_account(site: Running, visitor: Visitor) -> None:
    """A Platform Admin types the username, and enters an heir for what others use."""
    root, _ = await one_of_everything(site)
    bob, eve = await site.user(), await site.user()
    base = await knowledge_base(bob)
    path = f"/v1/rag/knowledge-bases/{base['id']}"
    assert (await bob.patch(path, json={"visibility": "shared"})).status == 200
    name = bob.user["username"]
    page = await visitor.arrive(root, f"/people/accounts?q={name}")
    await page.get_by_role("button", name=f"More on {name}").click()
    await page.get_by_role("menuitem", name="Delete").click()
    dialog = page.get_by_role("dialog", name=f"Delete the account {name}?")
    delete = dialog.get_by_role("button", name="Delete the account")
    await expect(delete).to_be_disabled()
    await dialog.get_by_label("To confirm, type the username").fill(name)
    await delete.click()
    await expect(dialog.get_by_role("listitem")).to_contain_text([base["name"]])
    await dialog.get_by_label("Username of the new owner").fill(name)
    await delete.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Enter another active account.")
    await dialog.get_by_label("Username of the new owner").fill("nobody-of-this-name")
    await delete.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("nobody-of-this-name")
    await dialog.get_by_label("Username of the new owner").fill(eve.user["username"])
    await delete.click()
    await expect(page.get_by_text(f"{name} is deleted.")).to_be_visible()
    await expect(page.get_by_role("button", name=f"More on {name}")).to_be_hidden()
    assert (await eve.get(path)).json()["owner_id"] == eve.user["id"]


async def test_ones_own_comes_first(site: Running, visitor: Visitor) -> None:
    """Whoever has asked nothing yet begins with what is theirs, not with what others share with everyone."""
    ana, bob = await site.user(), await site.user()
    await knowledge_base(ana, "For all of us", visibility="shared")
    await knowledge_base(bob, "Logbook")
    await knowledge_base(ana, "For all of us, too", visibility="shared")
    page = await visitor.arrive(bob)
    chosen = page.get_by_label("What to ask").locator("option:checked")
    await expect(chosen).to_have_text("Logbook")


async def test_the_trace_of_a_method(site: Running, visitor: Visitor) -> None:
    """A method is chosen beside the question; what it did can be unfolded under the answer."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await page.get_by_role("button", name="How to answer").click()
    await page.get_by_label("Method").select_option("corrective")
    await visitor.ask(QUESTION)
    answer = page.locator(".turn")
    await expect(answer).to_contain_text("185 euro")
    await answer.locator("summary").click()
    await expect(answer.locator(".trace")).to_contain_text("Judge what was found")


@pytest.mark.long
async def test_questions_that_got_worse(site: Running, visitor: Visitor) -> None:
    ana = await site.user()
    base = await knowledge_base(ana)
    _, run = await evaluate(ana, base["id"])

    async def worse(route: Route) -> None:
        answer = await route.fetch()
        found = await answer.json()
        found["worse"] = [{"question": QUESTION, "before": {"quality": 1}, "now": {"quality": 0.25}}]
        await route.fulfill(response=answer, json=found)

    await visitor.context.route(re.compile(r"/comparison\?"), worse)
    page = await visitor.arrive(ana, f"/evaluation/runs/{run}?with={run}")
    row = page.get_by_role("region", name="Questions that got worse").get_by_role("row", name=QUESTION)
    await expect(row).to_contain_text("0.25")


@pytest.mark.long
async def test_correlations(site: Running, visitor: Visitor) -> None:
    """Documents that name the same thing stand beside each other, with sentences, and lead to themselves."""
    ana = await site.user()
    base = await knowledge_base(ana, text=STATION, graph=True)
    path = f"/v1/rag/knowledge-bases/{base['id']}"
    text = b"# Repairs\n\nJonas Berg orders parts for the Aurora Sensor in Bergen.\n"
    sent = (await ana.upload(f"{path}/upload", "parts.md", text, "text/markdown")).json()
    await completed(ana, f"{path}/documents/{sent['document_id']}")

    async def found() -> bool:
        return bool((await ana.get("/v1/graph-rag/graph/correlations")).json()["total"])

    await eventually(found)  # the graph is built after the document is read
    page = await visitor.arrive(ana, f"/graph?base={base['id']}&show=correlations")
    pair = page.locator("article", has_text="parts.md")
    await expect(pair).to_contain_text("Aurora Sensor")
    await pair.get_by_role("link", name="parts.md").click()
    await expect(page.get_by_role("heading", name="parts.md", level=1)).to_be_visible()


@pytest.mark.long
async def test_a_tree_of_organizations(site: Running, visitor: Visitor) -> None:
    """One is made below another, is found there, and the whole is exported."""
    ana = await site.user(role="admin")
    body = {"name": "Nordlys", "slug": f"tree-{ana.user['id']}"}
    made = (await ana.post("/v1/organizations", json=body)).json()["id"]
    page = await visitor.arrive(ana, f"/people/organizations/{made}")
    more = page.locator("main").get_by_role("button", name="More", exact=True)
    await more.click()
    await page.get_by_role("menuitem", name="New organization below").click()
    form = page.get_by_role("dialog")
    await form.get_by_label("Name", exact=True).fill("Senja Station")
    await form.get_by_label("Short name").fill(f"senja-{ana.user['id']}")
    await form.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("heading", name="Senja Station", level=1)).to_be_visible()
    await visitor.go(f"/people/organizations/{made}/below")
    await expect(page.get_by_role("link", name="Senja Station")).to_be_visible()
    await more.click()
    bundle = await kept(page, page.get_by_role("menuitem", name="Export"))
    assert bundle["format"] == "platform.organization"


async def test_back_from_what_was_made(site: Running, visitor: Visitor) -> None:
    """Back leads to the list, not into the form that made it. Of what is gone, no second try is offered."""
    ana = await site.user()
    page = await visitor.arrive(ana, "/documents")
    await page.get_by_role("button", name="New knowledge base").first.click()
    await page.get_by_label("Name", exact=True).fill("Island")
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("heading", name="Island", level=1)).to_be_visible()
    made = page.url.rsplit("/", 1)[1]
    await page.go_back()
    await expect(page.get_by_role("link", name="Island")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await ana.delete(f"/v1/rag/knowledge-bases/{made}")
    await page.get_by_role("link", name="Island").click()
    await expect(page.get_by_text("Knowledge base not found")).to_be_visible()
    await expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    await page.get_by_role("alert").get_by_role("link", name="Documents").click()
    await expect(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()


async def test_a_team_on_a_phone(site: Running, visitor: Visitor) -> None:
    """What can be done with a member is in sight."""
    ana = await site.user()
    team = (await ana.post("/v1/teams", json={"name": f"Crew {ana.user['id']}"})).json()["id"]
    page = await visitor.arrive(ana, f"/people/teams/{team}")
    await page.set_viewport_size({"width": 390, "height": 844})
    members = page.get_by_role("region", name="Members")
    await expect(members.get_by_role("row")).to_have_count(2)
    assert await members.evaluate("(box) => box.scrollWidth <= box.clientWidth")


async def test_status(site: Running, visitor: Visitor) -> None:
    """Services with their checks, what doesn't work, and the work in the background."""
    ana = await site.user()
    await knowledge_base(ana)

    async def ill(route: Route) -> None:
        answer = await route.fetch()
        found = await answer.json()
        gateway = next(one for one in found["services"] if one["name"] == "api-gateway")
        gateway["checks"]["disk"] = "unhealthy: only 12 MB are free"
        await route.fulfill(response=answer, json=found)

    await visitor.context.route("**/v1/status", ill)
    page = await visitor.arrive(ana, "/operations")
    await expect(page.get_by_role("alert")).to_contain_text("only 12 MB are free")
    services = page.get_by_role("region", name="Services")
    await expect(services.get_by_role("row", name=re.compile("rag-pipeline"))).to_contain_text("Healthy")
    jobs = page.get_by_role("region", name="Background jobs")
    await expect(jobs.get_by_role("row", name=re.compile("Read a document")).first).to_contain_text("Done")


async def test_what_visitors_asked(site: Running, visitor: Visitor) -> None:
    """The owner of a published chat sees how often it was asked, and what."""
    ana = await site.user(role="admin")
    base = await knowledge_base(ana)
    made = await ana.post("/v1/rag/pipeline", json={"name": "Help", "knowledge_base_ids": [base["id"]]})
    pipeline = made.json()["pipeline_id"]
    chat = await publish(ana, pipeline)
    public = f"/v1/chat/help-{pipeline[:8]}"
    origin = {"Origin": "https://www.example.org"}
    session = (await site.anonymous.post(f"{public}/session", headers=origin)).json()
    headers = {**origin, "Authorization": f"Bearer {session['token']}"}
    asked = await site.anonymous.post(f"{public}/messages", json={"question": QUESTION}, headers=headers)
    assert asked.status == 200, asked.body
    page = await visitor.arrive(ana, f"/chats/{chat}")
    await page.get_by_role("button", name=re.compile("One question")).click()
    await expect(page.locator("main")).to_contain_text(QUESTION)
    await expect(page.locator("main")).to_contain_text("185 euro")


async def test_german(site: Running, browser: Browser) -> None:
    """Texts, dates, numbers and the commonest refusals follow the browser's language, and a choice is kept
    over a reload.
    """
    ana = await site.user()
    base = await knowledge_base(ana)
    context = await browser.new_context(locale="de-DE")
    visitor = Visitor(site, context)
    page = await visitor.open()
    await page.get_by_label("Benutzername").fill(ana.user["username"])
    await page.get_by_label("Passwort").fill("not this one")
    await page.get_by_role("button", name="Anmelden", exact=True).click()
    await expect(page.get_by_role("alert")).to_have_text("Benutzername oder Passwort ist falsch.")
    await visitor.arrive(ana, "/documents/gone")
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("Es existiert nicht, oder Sie haben keinen Zugriff darauf.")
    await expect(alert.locator("[lang=en]")).to_have_count(0)
    await expect(page.get_by_role("heading", name="Unter dieser Adresse gibt es nichts")).to_be_visible()
    await visitor.go(f"/documents/{base['id']}")
    await expect(page.locator(".document")).to_contain_text("eine Passage")
    await page.locator(".document a").click()
    await page.get_by_role("link", name="Einzelheiten").click()
    await expect(page.locator(".facts").first).to_contain_text(re.compile(r"\d\d\.\d\d\.\d{4}, \d\d:\d\d"))
    await page.locator(".sidebar-end button").click()
    await page.get_by_role("menuitem", name="English").click()
    await page.reload()
    await expect(page.get_by_role("link", name="Details")).to_be_visible()
    assert visitor.problems == []
    await context.close()


@pytest.mark.long
async def test_every_address_can_be_opened(site: Running, visitor: Visitor) -> None:
    """Each view is there after a reload, too, by its address alone; on a wall of 4 K and on a small phone
    nothing is wider than the screen.
    """
    root, ids = await one_of_everything(site)
    page = await visitor.arrive(root)
    lost, wide = [], []
    for at, (name, path) in enumerate(PAGES.items()):
        width, height = SCREENS[at % len(SCREENS)]
        await page.set_viewport_size({"width": width, "height": height})
        await visitor.open(path.format(**ids))
        await page.locator("main h1, main h2, dialog h2").first.wait_for()
        await page.locator(".skeleton").first.wait_for(state="detached")
        if await page.locator(".notice-bad").count() or await page.get_by_text("There is no page").count():
            lost.append(name)
        if not await page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            wide.append(f"{name} at {width}")
    assert (lost, wide) == ([], [])


async def test_without_a_mouse(site: Running, visitor: Visitor) -> None:
    """By keys alone: to the content, through a menu and back to its button, into a dialog and out of it."""
    ana: Actor = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("heading", name="Handbook").wait_for()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    more = page.locator("main").get_by_role("button", name="More", exact=True)
    for _ in range(4):
        await page.keyboard.press("Tab")
        if await more.evaluate("(one) => one === document.activeElement"):
            break
    rename = page.get_by_role("menuitem", name="Rename or describe")
    await page.keyboard.press("Enter")
    await expect(rename).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(more).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(rename).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog").get_by_label("Name", exact=True)).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
