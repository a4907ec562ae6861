"""What people do here besides: originals, sharing, receipts, tools, settings, reasons of rights, pulls."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from kernel.sdk import Account, Unit
from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.documents.sample_documents import pdf, prose
from tests.builtin_plugins.licensing.licensing_support import activate, make_listing
from tests.builtin_plugins.plugin_registry.registry_support import Shop
from tests.builtin_plugins.web_client.visits import Visitor, colleagues, completed, evaluate, knowledge_base
from tests.fakes.model_server import PullScript, Script, model_server

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How much may a hotel in Oslo cost per night?"
ANSWER = "A hotel in Oslo may cost up to 185 euro per night."
# Something was drawn: not every pixel of the page is white.
INK = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.some((value) => value < 128);
}"""


async def _without_quotes(route: Route) -> None:
    reply = await route.fetch()
    text = re.sub(r',\s*"quotes":\s*\[[^\]]*\]', "", await reply.text())
    await route.fulfill(response=reply, body=text)


async def saved(page: Page, press: Locator) -> Any:
    """The JSON that a button hands to the browser to keep."""
    async with page.expect_download() as download:
        await press.click()
    path = await (await download.value).path()
    return json.loads(path.read_text(encoding="utf-8"))


async def test_a_pdf_in_its_place(site: Running, visitor: Visitor, tmp_path: Path) -> None:
    """A citation of a PDF opens its page, drawn, with the passage marked; one can turn to the others."""
    ana = await site.user()
    base = await knowledge_base(ana, text="Boats moor in the harbour of Senja.\n")
    path = f"/v1/rag/knowledge-bases/{base['id']}"
    rules = pdf(tmp_path / "rules.pdf", [prose(40), [ANSWER, *prose(40, 40)]])
    sent = await ana.upload(f"{path}/upload", rules.name, rules.read_bytes(), "application/pdf")
    await completed(ana, f"{path}/documents/{sent.json()['document_id']}")
    page = await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    citation = page.get_by_role("button", name=re.compile(r"^Source \d+: rules.pdf")).first
    await citation.click()
    drawn = page.get_by_role("img", name="Page 2 of 2")
    await expect(page.locator(".pdf-marks span").first).to_be_visible()
    assert await drawn.evaluate(INK)
    await page.get_by_role("button", name="Previous page").click()
    await expect(page.get_by_role("img", name="Page 1 of 2")).to_be_visible()
    await page.get_by_role("button", name="Text").click()
    await expect(page.locator("mark")).to_contain_text("185 euro")
    await page.keyboard.press("Escape")
    await expect(citation).to_be_focused()
    await citation.click()
    await expect(page.locator(".viewer")).to_be_visible()
    await page.get_by_label("Your question").focus()
    await page.keyboard.press("Escape")  # on a phone, Back asks the same
    await expect(page.locator(".viewer")).to_have_count(0)


@pytest.mark.long
async def test_a_passage_over_two_pages(site: Running, visitor: Visitor, tmp_path: Path) -> None:
    """Where no sentence of it is named, as by earlier versions, it is marked on the page where it begins and,
    when one turns over, where it ends; nowhere else.
    """
    ana = await site.user()
    base = await knowledge_base(ana, text="Boats moor in the harbour of Senja.\n")
    path = f"/v1/rag/knowledge-bases/{base['id']}"
    lines = [f"Boat {n} leaves harbour {n * 7} at {n} o'clock with {n * 13} crates." for n in range(80)]
    pages = [[*lines[:3], ANSWER], lines[3:43], lines[43:]]
    rules = pdf(tmp_path / "rules.pdf", pages)
    sent = await ana.upload(f"{path}/upload", rules.name, rules.read_bytes(), "application/pdf")
    document = f"{path}/documents/{sent.json()['document_id']}"
    await completed(ana, document)
    [whole, *_] = (await ana.get(f"{document}/chunks")).json()["items"]
    turned = sum(line[:20] in whole["text"] for line in pages[1])
    assert whole["page"] == 1 and 0 < turned < len(pages[1]), whole
    page = await visitor.arrive(ana)
    await page.route("**/query", _without_quotes)
    await visitor.ask(QUESTION)
    await page.get_by_role("button", name=re.compile(r"^Source \d+: rules.pdf")).first.click()
    marks = page.locator(".pdf-marks span")
    await page.get_by_role("img", name="Page 1 of 3").wait_for()
    await expect(marks).to_have_count(len(pages[0]))
    await page.get_by_role("button", name="Next page").click()
    await page.get_by_role("img", name="Page 2 of 3").wait_for()
    await expect(marks).to_have_count(turned)
    await page.get_by_role("button", name="Next page").click()
    await page.get_by_role("img", name="Page 3 of 3").wait_for()
    await expect(marks).to_have_count(0)


@pytest.mark.long
async def test_a_quotation_on_a_later_page_of_its_passage(
    site: Running, visitor: Visitor, tmp_path: Path
) -> None:
    """Short pages are one passage: the page of the sentence is named, opened and marked, and no other."""
    ana = await site.user()
    base = await knowledge_base(ana, text="Boats moor in the harbour of Senja.\n")
    path = f"/v1/rag/knowledge-bases/{base['id']}"
    lines = ["The harbour was built in 1911.", "Its crane lifts nine tonnes.", ANSWER, "The pier is of oak."]
    rules = pdf(tmp_path / "rules.pdf", [[line] for line in lines])
    sent = await ana.upload(f"{path}/upload", rules.name, rules.read_bytes(), "application/pdf")
    await completed(ana, f"{path}/documents/{sent.json()['document_id']}")
    page = await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    await expect(page.locator(".source").filter(has_text="rules.pdf")).to_contain_text("page 3")
    await page.get_by_role("button", name=re.compile(r"^Source \d+: rules.pdf")).first.click()
    marks = page.locator(".pdf-marks span")
    await page.get_by_role("img", name="Page 3 of 4").wait_for()
    await expect(marks).to_have_count(1)
    await page.get_by_role("button", name="Next page").click()
    await page.get_by_role("img", name="Page 4 of 4").wait_for()
    await expect(marks).to_have_count(0)


async def test_licenses(site: Running, visitor: Visitor) -> None:
    """One reads which plugins one has licenses for, and for how long; without any, what they are."""
    root, ana, bob = await site.user(role="admin"), await site.user(), await site.user()
    await site.platform.database.write(_promote, root.user["id"])
    root = await site.sign_in(root.user["username"], root.password)
    listing = await make_listing(site, root)
    await activate(root, listing["id"], user_id=str(ana.user["id"]))
    page = await visitor.arrive(ana, "/plugins/licences")  # its former address, in British spelling
    await expect(page).to_have_url(f"{site.url}/app/plugins/licenses")
    row = page.get_by_role("row", name=re.compile(re.escape(listing["display_name"])))
    await expect(row).to_contain_text("Active")
    await expect(row).to_contain_text("pro")
    assert (await bob.get("/v1/marketplace/licenses")).json()["licenses"] == []


async def test_a_name_in_the_wrong_form(site: Running, visitor: Visitor) -> None:
    """It is told in words, beside the field; no regular expression."""
    page = await visitor.arrive(await site.user(role="admin"), "/operations/models?pull=1")
    field = page.get_by_label("Name of the model")
    await field.fill("llama 3.2")
    await field.press("Enter")
    await expect(field).to_have_accessible_description(re.compile("characters that aren’t allowed here"))
    await expect(page.get_by_role("dialog")).not_to_contain_text("^")


async def _reads(site: Running, browser: Browser, actor: Actor, address: str) -> None:
    """Somebody finds the conversation without its address, and reads it."""
    async with await browser.new_context(locale="en-GB") as context:
        reader = Visitor(site, context)
        page = await reader.arrive(actor)
        talks = page.get_by_role("navigation", name="Conversations")
        await talks.get_by_role("button", name="Shared with you 1").click()
        await talks.get_by_role("link", name=QUESTION).click()
        await expect(page).to_have_url(address)
        await expect(page.locator(".markdown")).to_contain_text("185 euro")
        await talks.get_by_role("button", name="Yours").click()
        await expect(talks).to_contain_text("You have no conversations of your own yet.")
        assert reader.problems == []


async def test_sharing_a_conversation(site: Running, visitor: Visitor, browser: Browser) -> None:
    """Users of the pipeline find it among what is shared with them, and read it until that ends. Its owner
    gets the address to send, and is told who can read it, administrators among them; an export has its turns.
    """
    ana, bob = await site.user(), await site.user()
    base = await knowledge_base(ana)
    # With a team, and not with everybody: other tests' people would find it, too, and ask it first.
    team = (await ana.post("/v1/teams", json={"name": "Crew of the Gjøa"})).json()["id"]
    await ana.post(f"/v1/teams/{team}/members", json={"user_id": bob.user["id"]})
    seen = {"visibility": "team", "team_id": team}
    shared = await ana.patch(f"/v1/rag/knowledge-bases/{base['id']}", json=seen)
    assert shared.status == 200, shared.body
    pipeline = {"name": "For all", "knowledge_base_ids": [base["id"]], **seen}
    shown = {"pipeline_id": (await ana.post("/v1/rag/pipeline", json=pipeline)).json()["pipeline_id"]}
    page = await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    await expect(page.locator(".markdown")).to_contain_text("185 euro")
    more = page.locator(".head").get_by_role("button", name="More")
    await more.click()
    await page.get_by_role("menuitem", name="Share with users of the pipeline").click()
    dialog = page.get_by_role("dialog", name="This conversation is shared")
    await expect(dialog).to_contain_text(page.url)
    await expect(dialog).to_contain_text("Some people")
    await expect(dialog).to_contain_text("Administrators of this server can use every pipeline")
    await page.keyboard.press("Escape")
    await expect(page.locator(".head > .head-actions > .badge")).to_have_text("Shared")
    address = f"/v1/conversations/{page.url.rpartition('/')[2]}"
    await _reads(site, browser, bob, page.url)
    alone = {"visibility": "private", "team_id": None}
    assert (await ana.patch(f"/v1/rag/pipeline/{shown['pipeline_id']}", json=alone)).status == 200
    await more.click()
    await page.get_by_role("menuitem", name="Who can read this?").click()
    await expect(dialog.get_by_role("status")).to_contain_text("No other user can read it yet")
    await page.keyboard.press("Escape")
    await more.click()
    bundle = await saved(page, page.get_by_role("menuitem", name="Export"))
    assert QUESTION in json.dumps(bundle)
    await more.click()
    await page.get_by_role("menuitem", name="Stop sharing").click()
    await expect(page.locator(".head .badge")).to_have_count(0)
    assert (await bob.get(f"{address}/turns", params=shown)).status == 404


async def test_deleting_with_a_receipt(site: Running, visitor: Visitor) -> None:
    """Into the trash and back, then for good."""
    ana = await site.user()
    base = await knowledge_base(ana)
    path = f"/v1/rag/knowledge-bases/{base['id']}/documents"
    [document] = (await ana.get(path)).json()["items"]
    page = await visitor.arrive(ana, f"/documents/{base['id']}/{document['document_id']}")
    await page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Delete", exact=True).click()
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_role("button", name="Delete").click()
    await dialog.get_by_label("Delete for good").check()
    await dialog.get_by_label("Save the signed receipt").check()
    receipt = await saved(page, dialog.get_by_role("button", name="Delete for good"))
    assert document["document_id"] in json.dumps(receipt) and "signature" in json.dumps(receipt)
    await expect(page.get_by_role("heading", name="Handbook", level=1)).to_be_visible()
    assert (await ana.get(f"{path}/{document['document_id']}")).status == 404


async def test_a_knowledge_base_in_the_trash(site: Running, visitor: Visitor) -> None:
    """It is gone from the list, and back with its documents when it is taken back."""
    ana = await site.user()
    base = await knowledge_base(ana, "Manual")
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Delete", exact=True).click()
    await expect(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()
    await expect(page.locator(".tile", has_text="Manual")).to_have_count(0)
    await page.get_by_role("button", name="Trash").click()
    await dialog.get_by_role("button", name="Take back").click()
    await expect(dialog.get_by_text("The trash is empty.")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator(".tile", has_text="Manual")).to_contain_text("One document")


async def test_deleting_what_pipelines_search(site: Running, visitor: Visitor) -> None:
    """One's own pipelines are named and deleted with it, also those that search others; no one else's are."""
    ana, bob = await site.user(), await site.user()
    base, other = await knowledge_base(ana, visibility="shared"), await knowledge_base(ana, "Manual")
    over = {"Both": (ana, [base["id"], other["id"]]), "Bob": (bob, [base["id"]])}
    for name, (actor, bases) in over.items():
        body = {"name": name, "knowledge_base_ids": bases, "visibility": "shared"}
        assert (await actor.post("/v1/rag/pipeline", json=body)).status == 200
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Delete for good").check()
    await expect(dialog).to_contain_text("These pipelines search it and are deleted, too: Both")
    await expect(dialog).to_contain_text("remove this one from it first")
    await expect(dialog).not_to_contain_text("Bob")
    await dialog.get_by_role("button", name="Delete for good").click()
    await expect(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()
    found = (await bob.get("/v1/rag/pipeline", params={"limit": 500})).json()["items"]
    assert {"Both", "Bob"}.intersection(item["name"] for item in found) == {"Bob"}


@pytest.mark.long
async def test_measures_are_drawn(site: Running, visitor: Visitor) -> None:
    ana = await site.user()
    base = await knowledge_base(ana)
    _, run = await evaluate(ana, base["id"])
    page = await visitor.arrive(ana, f"/evaluation/runs/{run}")
    plot = page.get_by_role("img", name="The measures as bars, with their intervals")
    await expect(plot.locator("rect.tone-accent")).to_have_count(8)
    await page.set_viewport_size({"width": 360, "height": 740})
    box = await plot.locator("svg").first.bounding_box()
    assert box is not None and box["width"] > 80 and box["x"] + box["width"] < 360


async def test_trying_a_tool(site: Running, visitor: Visitor) -> None:
    """A tool is found, run with what its form asks for, and its result shown; a refusal tells why."""
    page = await visitor.arrive(await site.user(), "/tools")
    await page.get_by_label("Find a tool").fill("find_correlations")
    await page.get_by_role("button", name=re.compile("^find_correlations")).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Run").click()
    await expect(dialog.get_by_label("Result").last).to_contain_text('"total": 0')
    await dialog.get_by_label(re.compile("entity", re.IGNORECASE)).first.fill("Nobody")
    await dialog.get_by_role("button", name="Run").click()
    await expect(dialog.get_by_role("alert")).not_to_be_empty()


async def test_lines_that_use_a_key(site: Running, visitor: Visitor) -> None:
    """Each is filled in with the address and the key that was made."""
    page = await visitor.arrive(await site.user(), "/keys?new=1")
    await page.get_by_label("Name", exact=True).fill("agent")
    await page.get_by_role("dialog").get_by_role("button", name="Create").click()
    key = (await page.locator(".notice code").inner_text()).strip()
    for name, path in (("curl", "/v1/ai"), ("Python", "/v1/ai"), ("Open WebUI", "/v1/ai"), ("MCP", "/mcp")):
        await page.get_by_role("button", name=name, exact=True).click()
        line = page.get_by_label(name, exact=True).locator("code")
        await expect(line).to_contain_text(f"{site.url}{path}")
        await expect(line).to_contain_text(key)


async def test_groups_and_reasons(site: Running, visitor: Visitor) -> None:
    """A group of rights goes into a role, the role to a member; why they may what they may names both."""
    ana, bob, organization = await colleagues(site)
    place = f"/people/organizations/{organization}"
    page = await visitor.arrive(ana, f"{place}/groups")
    dialog = page.get_by_role("dialog")
    await page.get_by_role("button", name="New group").click()
    await dialog.get_by_role("textbox", name="Name").fill("Care")
    await dialog.get_by_role("checkbox", name=re.compile("org.members.manage")).check()
    await dialog.get_by_role("button", name="Create").click()
    await expect(page.locator(".tile", has_text="Care")).to_contain_text("org.members.manage")
    await page.get_by_role("link", name="Roles", exact=True).click()
    await page.get_by_role("button", name="New role").click()
    await dialog.get_by_role("textbox", name="Name").fill("Host")
    await dialog.get_by_role("checkbox", name="Care").check()
    await dialog.get_by_role("button", name="Create").click()
    await expect(page.locator(".tile", has_text="Host")).to_contain_text("Care")
    await page.get_by_role("link", name="Members", exact=True).click()
    more = page.get_by_role("button", name=f"More on {bob.user['username']}")
    await more.click()
    await page.get_by_role("menuitem", name="Assign a role").click()
    async with page.expect_response(lambda answer: answer.request.method == "POST"):
        await dialog.get_by_role("checkbox", name="Host").check()
    await dialog.get_by_role("button", name="Close").click()
    await more.click()
    await page.get_by_role("menuitem", name="What may they do?").click()
    right = dialog.get_by_role("listitem").filter(has_text="org.members.manage")
    await expect(right).to_contain_text("through the role “Host” · Care")
    await dialog.get_by_role("button", name="Close").click()
    await visitor.go(f"{place}/groups")
    await page.get_by_role("button", name="Delete Care").click()
    await dialog.get_by_role("button", name="Delete", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("use it")


async def test_what_was_changed(site: Running, visitor: Visitor) -> None:
    """The audit log shows the state before a change and after it."""
    root, ana = await site.user(role="admin"), await site.user()
    await site.platform.database.write(_promote, root.user["id"])
    root = await site.sign_in(root.user["username"], root.password)
    changed = await root.patch(f"/v1/auth/users/{ana.user['id']}/role", json={"role": "admin"})
    assert changed.status == 200, changed.body
    page = await visitor.arrive(root, f"/audit?target={ana.user['id']}")
    row = page.get_by_role("row").filter(has_text="role")
    await row.first.get_by_role("button", name="Details").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Before")).to_contain_text('"user"')
    await expect(dialog.get_by_label("After")).to_contain_text('"admin"')


@pytest.mark.long
async def test_a_listing_from_review_to_rating(site: Running, visitor: Visitor) -> None:
    """A reviewer approves what was submitted; somebody else finds it, installs it and rates it."""
    ana, root, bob = await site.user(), await site.user(role="admin"), await site.user()
    name = f"tide-{ana.user['id']}"
    body = {"name": name, "display_name": name.title(), "author": "Ann", "description": "Tells the tides."}
    listing = (await ana.post("/v1/marketplace/plugins", json=body)).json()["id"]
    submitted = await ana.post(f"/v1/marketplace/submissions/{listing}/submit")
    assert submitted.status == 200, submitted.body
    page = await visitor.arrive(root, "/plugins/marketplace?show=review")
    await page.get_by_role("link", name=re.compile(name.title())).click()
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("heading", name="Review")).to_have_count(0)
    other = Visitor(site, await page.context.browser.new_context(locale="en-GB"))  # type: ignore[union-attr]
    page = await other.arrive(bob, "/plugins/marketplace")
    await page.get_by_label("Search the marketplace").fill(name)
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name=re.compile(name.title())).click()
    await page.get_by_role("button", name="Install").click()
    await page.get_by_label("Your rating").select_option("4")
    await page.get_by_label("Your review").fill("Right to the minute.")
    await page.get_by_role("button", name="Rate").click()
    await expect(page.get_by_role("article")).to_contain_text("Right to the minute.")
    await other.context.close()
    assert other.problems == []


async def test_settings_of_a_plugin(tmp_path: Path, browser: Browser) -> None:
    """The form comes from the plugin's settings; a secret is never shown, and kept if nothing is typed. A
    plugin that is off has no form, and no error in its place.
    """
    async with platforms(tmp_path) as start:
        running = await start("web_client", "plugin_registry", Shop, env={"SHOP_KEY": "k1"})
        visitor = Visitor(running, await browser.new_context(locale="en-GB"))
        root = await running.user(role="admin")
        page = await visitor.arrive(root, "/plugins/shop")
        await expect(page.get_by_label("SHOP_KEY")).to_have_value("")
        await expect(page.get_by_label("SHOP_KEY")).to_have_attribute("placeholder", "••••••••")
        await page.get_by_label("SHOP_GREETING").fill("Ahoy")
        await page.get_by_label("SHOP_LOUD").check()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved")).to_be_visible()
        values = (await root.get("/v1/plugins/shop/config")).json()["values"]
        assert (values["SHOP_GREETING"], values["SHOP_LOUD"], values["SHOP_KEY"]) == ("Ahoy", True, "***")
        await page.get_by_role("button", name="Turn off").click()
        await expect(page.get_by_role("button", name="Turn on")).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("heading", name="shop")).to_be_visible()
        await expect(page.get_by_role("heading", name="Settings")).to_have_count(0)
        await page.get_by_role("button", name="Turn on").click()
        await expect(page.get_by_label("SHOP_GREETING")).to_have_value("Ahoy")
        assert visitor.problems == []
        await visitor.context.close()


@pytest.mark.long
async def test_pulling_a_model(tmp_path: Path, browser: Browser) -> None:
    """A pull goes on over a reload, with its progress; at its end the model is in the list."""
    gate = asyncio.Event()
    script = Script(models=("there:latest",), pulls={"llama3.2": PullScript(gate=gate)})
    async with model_server(script) as server, platforms(tmp_path) as start:
        running = await start("web_client", "models", env={"OLLAMA_BASE_URL": server.url})
        visitor = Visitor(running, await browser.new_context(locale="en-GB"))
        page = await visitor.arrive(await running.user(role="admin"), "/operations/models?pull=1")
        await page.get_by_label("Name of the model").fill("llama3.2")
        await page.get_by_role("dialog").get_by_role("button", name="Pull", exact=True).click()
        meter = page.get_by_role("progressbar", name="llama3.2")
        await expect(meter).to_be_visible()
        going = asyncio.create_task(running.run_jobs())
        await server.streaming.wait()
        await page.reload()
        await expect(meter).to_be_visible()
        gate.set()
        await expect(page.get_by_role("cell", name=re.compile("^llama3.2"))).to_be_visible()
        await expect(meter).to_have_count(0)
        await going
        assert visitor.problems == []
        await visitor.context.close()


def _promote(unit: Unit, account_id: int) -> None:
    unit.session.get_one(Account, account_id).platform_admin = True
