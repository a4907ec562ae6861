"""Evaluation, graphs, operations, published chats and voice in a real browser, against a real platform."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from contextlib import suppress
from dataclasses import replace

import pytest
from playwright.async_api import Browser, Error, FilePayload, Route, expect

from kernel.sdk import Account, Unit
from kernel.testing import Actor, Running, eventually
from tests.builtin_plugins.web_client.visits import (
    HANDBOOK,
    PLAIN_HOST,
    SETTLED,
    STATION,
    Visitor,
    evaluate,
    knowledge_base,
    publish,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTIONS = '{"question": "What does a hotel in Oslo cost?", "answers": ["185"]}\n'
REHEARSAL = 60_000  # milliseconds: another platform starts for it, twice


async def test_evaluation(site: Running, visitor: Visitor) -> None:
    """A file of questions becomes a set, is run in two ways, and the run shows what was measured."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/evaluation?base={base['id']}&new=1")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("Hotels")
    await dialog.get_by_label("From a file").check()
    file = FilePayload(name="hotels.jsonl", mimeType="application/jsonl", buffer=QUESTIONS.encode())
    await dialog.get_by_label("File", exact=True).set_input_files(file)
    await dialog.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("cell", name="What does a hotel in Oslo cost?")).to_be_visible()
    await page.get_by_role("button", name="Run", exact=True).click()
    await dialog.get_by_label("Also without keyword search").check()
    await expect(dialog).to_contain_text("2 configurations × 1 questions = 2 answers")
    await dialog.get_by_role("button", name="Start").click()
    measured = page.get_by_role("region", name="What was measured")
    await expect(measured.get_by_role("row")).to_have_count(3)
    await expect(page.get_by_role("heading", name="Worst-answered questions")).to_be_visible()


async def test_no_questions_in_the_documents(site: Running, visitor: Visitor) -> None:
    """Documents that give no questions are named as the reason for an empty set, with what is left to do."""
    ana = await site.user()
    base = await knowledge_base(ana, text="We met again at the pier, and it rained.\n")
    page = await visitor.arrive(ana, f"/evaluation?base={base['id']}&new=1")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("Rain")
    await dialog.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("heading", name="Rain")).to_be_visible()
    await expect(page.get_by_text("Add some from a file.")).to_be_visible()
    await page.get_by_role("button", name="Make from the documents").click()
    await expect(page.get_by_text("Add some from a file.")).to_have_count(2)


@pytest.mark.long
async def test_comparing_runs(site: Running, visitor: Visitor) -> None:
    """Two ways of one run are compared, with the significance of each difference."""
    ana = await site.user()
    base = await knowledge_base(ana)
    _, run = await evaluate(ana, base["id"])
    page = await visitor.arrive(ana, f"/evaluation/runs/{run}")
    await page.get_by_label("With the run of").select_option(run)
    await expect(page.get_by_label("The other run")).to_have_value("1")
    differences = page.get_by_role("region", name="Differences")
    await expect(differences.get_by_role("row", name=re.compile("^Quality"))).to_contain_text(
        "no clear difference"
    )


@pytest.mark.long
async def test_rated_answers_become_questions(site: Running, visitor: Visitor) -> None:
    """A thumb is kept over a reload, and the rated question can be added to a set."""
    ana = await site.user()
    base = await knowledge_base(ana)
    body = {"knowledge_base_id": base["id"], "name": "Asked by people"}
    questions = (await ana.post("/v1/rag/evaluation/sets", json=body)).json()["id"]
    page = await visitor.arrive(ana)
    await visitor.ask("How much may a hotel in Oslo cost per night?")
    await page.get_by_role("button", name="Good answer").click()
    await expect(page.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
    await page.get_by_label("What was good?").fill("Straight to the point.")
    await page.locator(".why").get_by_role("button", name="Send").click()
    await expect(page.get_by_text("Thank you")).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
    await expect(page.get_by_role("button", name="Change the comment")).to_be_visible()
    await visitor.open(f"/evaluation/sets/{questions}")
    await expect(page.get_by_role("region", name="Rated answers")).to_contain_text("Straight to the point.")
    await page.get_by_role("button", name="Add to the set").click()
    await expect(
        page.get_by_role("cell", name="How much may a hotel in Oslo cost per night?")
    ).to_be_visible()


async def test_graph(site: Running, visitor: Visitor) -> None:
    """A graph is built on request; an entity shows its connections and leads to its passage. Where an address
    names a knowledge base that is gone, no other one is shown in its place.
    """
    ana = await site.user()
    base = await knowledge_base(ana, text=HANDBOOK + STATION)
    page = await visitor.arrive(ana, "/graph?base=deleted")
    await expect(page.get_by_text("There is no such knowledge base")).to_be_visible()
    await page.get_by_label("Knowledge base").select_option(base["id"])
    await page.get_by_role("button", name="Build the graph").click()
    await page.get_by_label("Find an entity").fill("senja")
    await page.get_by_role("button", name="Senja Station").click()
    entity = page.get_by_role("complementary", name="Senja Station")
    await entity.get_by_role("button", name="Jonas Berg").click()
    jonas = page.get_by_role("complementary", name="Jonas Berg")
    await jonas.get_by_role("link", name="handbook.md").click()
    marked = page.frame_locator("iframe").locator("mark", has_text="Jonas Berg repairs the Aurora Sensor")
    await expect(marked).to_be_visible()


@pytest.mark.long
async def test_backup_and_bundles(site: Running, visitor: Visitor) -> None:
    """An administrator makes and rehearses a backup, types its name to restore it, and switches a bundle."""
    root = await site.user(role="admin")
    page = await visitor.arrive(root, "/operations/backups")
    await page.get_by_role("button", name="Back up now").click()
    archives = page.get_by_role("region", name="Backups")
    await archives.get_by_role("button", name="Rehearse").first.click()
    rehearsal = page.get_by_role("region", name="What was done").get_by_role("row", name="Rehearsal")
    await expect(rehearsal).to_contain_text("the same, row by row", timeout=REHEARSAL)
    await expect(rehearsal).to_contain_text(f"account {root.user['id']}")
    await archives.get_by_role("button", name="Restore").first.click()
    dialog = page.get_by_role("dialog")
    name = (await dialog.locator("code").inner_text()).strip()
    assert name.endswith(".tar.gz")
    await expect(dialog.get_by_role("button", name="Restore")).to_be_disabled()
    await page.keyboard.press("Escape")
    await visitor.open("/operations/bundles")
    voice = page.locator(".tile", has=page.get_by_role("heading", name="voice"))
    await voice.get_by_role("button", name="Turn off").click()
    await expect(voice.get_by_role("button", name="Turn on")).to_be_visible()
    await voice.get_by_role("button", name="Turn on").click()
    await expect(voice.get_by_text("Healthy")).to_be_visible()


async def test_settings_in_effect(site: Running, visitor: Visitor) -> None:
    """An administrator finds a setting with its value and source; nobody else may."""
    root, ana = await site.user(role="admin"), await site.user()
    page = await visitor.arrive(root, "/operations/settings")
    await page.get_by_label("Find a setting").fill("jwt_secret")
    await expect(page.get_by_role("row", name=re.compile("^JWT_SECRET"))).to_contain_text("not set")
    await page.get_by_label("Find a setting").fill("backup_keep")
    await expect(page.get_by_role("row", name=re.compile("PLATFORM_BACKUP_KEEP"))).to_contain_text("7")
    assert (await ana.get("/v1/settings")).status == 403


async def test_setting_changed(site: Running, visitor: Visitor) -> None:
    """An administrator changes a setting in its dialog, sees it set here, and takes the change back."""
    root = await site.user(role="admin")
    page = await visitor.arrive(root, "/operations/settings?q=history_turns")
    row = page.get_by_role("row", name=re.compile("HISTORY_TURNS"))
    await row.get_by_role("button", name="Change").click()
    field = page.get_by_role("dialog").get_by_role("spinbutton")
    await field.fill("5")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("Set here")
    assert await _value_of(root, "history_turns") == "5"
    await row.get_by_role("button", name="Change").click()
    await page.get_by_role("dialog").get_by_role("button", name="Take the change back").click()
    await expect(row).to_contain_text("Default")
    assert await _value_of(root, "history_turns") == "3"


async def test_settings_on_a_phone(site: Running, visitor: Visitor) -> None:
    """A setting is changed there without scrolling to the side."""
    root = await site.user(role="admin")
    page = await visitor.arrive(root, "/operations/settings?q=history_turns")
    await page.set_viewport_size({"width": 390, "height": 844})
    change = page.get_by_role("row", name=re.compile("HISTORY_TURNS")).get_by_role("button", name="Change")
    await expect(change).to_be_in_viewport(ratio=1)
    table = page.get_by_role("region", name="Settings")
    assert await table.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    await expect(table.get_by_role("columnheader")).to_have_count(3)


async def _value_of(root: Actor, name: str) -> str:
    settings = (await root.get("/v1/settings")).json()["settings"]
    return next(str(one["value"]) for one in settings if one["name"] == name)


async def test_logs_follow(site: Running, visitor: Visitor) -> None:
    """A Platform Admin sees log lines, and those that follow; nobody else may."""
    root, ana = await site.user(role="admin"), await site.user()
    await site.platform.database.write(_promote, root.user["id"])
    page = await visitor.arrive(await site.sign_in(root.user["username"], root.password), "/operations/logs")
    lines = page.get_by_role("log")
    await expect(lines).to_be_visible()
    logging.getLogger("platform.web_client").warning("A line of its own")
    line = lines.locator("span").filter(has_text="A line of its own")
    assert (await line.first.text_content() or "").endswith("own\n")
    await expect(page.get_by_role("link", name="Logs")).to_be_visible()
    assert (await ana.get("/v1/containers/api-gateway/logs")).status == 403


async def test_published_chat(site: Running, visitor: Visitor) -> None:
    """Its owner changes the greeting, sees it in the preview, and gets the line to embed."""
    ana = await site.user(role="admin")
    base = await knowledge_base(ana)
    made = await ana.post("/v1/rag/pipeline", json={"name": "Help", "knowledge_base_ids": [base["id"]]})
    chat = await publish(ana, made.json()["pipeline_id"])
    page = await visitor.arrive(ana, f"/chats/{chat}?tab=looks")
    await page.get_by_label("Greeting").fill("Ahoy!")
    await expect(page.locator(".chat-preview-text")).to_have_text("Ahoy!")
    await page.get_by_label("Position on the page").select_option("left")
    await expect(page.get_by_label("Embed")).to_contain_text('data-position="left"')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved")).to_be_visible()
    stored = (await ana.get(f"/v1/rag/endpoints/{chat}")).json()
    assert stored["rag_config"]["greeting"] == "Ahoy!"


async def test_reading_aloud(site: Running, visitor: Visitor) -> None:
    """An answer is read aloud by the server's voice, until one has heard enough."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await visitor.ask("How much may a hotel in Oslo cost per night?")
    await page.get_by_role("button", name="Read aloud").click()
    await expect(page.get_by_role("button", name="Stop reading aloud")).to_be_visible()
    await page.get_by_role("button", name="Stop reading aloud").click()
    await expect(page.get_by_role("button", name="Read aloud", exact=True)).to_be_visible()


# Notes what is played, and what of it has been let go of.
SOUNDS = """(() => {
  window.played = 0;
  window.kept = new Set();
  const { play } = HTMLMediaElement.prototype;
  HTMLMediaElement.prototype.play = function () { window.played += 1; return play.call(this); };
  const [make, drop] = [URL.createObjectURL, URL.revokeObjectURL];
  URL.createObjectURL = (blob) => { const made = make.call(URL, blob); window.kept.add(made); return made; };
  URL.revokeObjectURL = (address) => { window.kept.delete(address); drop.call(URL, address); };
})()"""


@pytest.mark.long
async def test_a_voice_that_comes_too_late(site: Running, visitor: Visitor) -> None:
    """Speech that arrives after its page was left is not played; one that was stopped takes up no memory."""
    ana = await site.user()
    await knowledge_base(ana)
    await visitor.context.add_init_script(SOUNDS)
    go_on = asyncio.Event()

    async def wait(route: Route) -> None:
        await go_on.wait()
        with suppress(Error):  # the page has given up on it
            await route.continue_()

    page = await visitor.arrive(ana)
    await visitor.ask("How much may a hotel in Oslo cost per night?")
    read = page.get_by_role("button", name="Read aloud", exact=True)
    await read.click()
    await page.get_by_role("button", name="Stop reading aloud").click()
    await expect(read).to_be_visible()

    async def let_go() -> bool:
        return bool(await page.evaluate("played === 1 && kept.size === 0"))

    await eventually(let_go)
    await visitor.context.route("**/v1/tts", wait)
    async with page.expect_request("**/v1/tts") as asked:
        await read.click()
    await visitor.go("/documents")
    go_on.set()
    if answer := await (await asked.value).response():
        await answer.finished()
    await page.evaluate(SETTLED)
    assert await page.evaluate("played") == 1


# Holds back the beginning of each sound until it is let go.
SLOW_SOUNDS = """(() => {
  window.begun = [];
  const { play } = HTMLMediaElement.prototype;
  HTMLMediaElement.prototype.play = function () {
    return new Promise((go) => window.begun.push(go)).then(() => play.call(this));
  };
})()"""


@pytest.mark.long
async def test_two_answers_are_read_aloud(site: Running, visitor: Visitor) -> None:
    """Whoever has a second one read before the first sounds hears the second; its button alone says so."""
    ana = await site.user()
    await knowledge_base(ana)
    await visitor.context.add_init_script(SLOW_SOUNDS)
    page = await visitor.arrive(ana)
    read = page.get_by_role("button", name="Read aloud", exact=True)
    for number in (1, 2):
        await visitor.ask("How much may a hotel in Oslo cost per night?")
        await expect(read).to_have_count(number)
    buttons = await read.element_handles()
    for number, button in enumerate(buttons, 1):
        await button.click()

        async def is_about_to_sound(wanted: int = number) -> bool:
            return bool(await page.evaluate("begun.length") == wanted)

        await eventually(is_about_to_sound)
    await page.evaluate("begun[0]()")
    await page.evaluate(SETTLED)
    await page.evaluate("begun[1]()")
    await expect(page.get_by_role("button", name="Stop reading aloud")).to_have_count(1)
    assert await buttons[1].get_attribute("aria-label") == "Stop reading aloud"


@pytest.mark.long
async def test_speaking(site: Running, visitor: Visitor) -> None:
    """What the microphone hears goes to the server, whose words are put into the question."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await page.get_by_role("button", name="Speak instead of typing").click()
    await expect(page.get_by_role("timer")).to_have_text("1 s")
    async with page.expect_response(re.compile("/v1/stt$")) as answer:
        await page.get_by_role("button", name="Stop recording").click()
    heard = await answer.value
    assert heard.status == 200, await heard.text()
    words = (await heard.json())["text"]
    await expect(page.get_by_label("Your question")).to_have_value(words)


async def test_offering_a_plugin(site: Running, visitor: Visitor) -> None:
    """A draft is created with what was typed, and can be submitted for review."""
    page = await visitor.arrive(await site.user(), "/plugins/marketplace?new=1")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("tide-tables")
    await dialog.get_by_label("Title").fill("Tide tables")
    await dialog.get_by_role("button", name="Create a draft").click()
    await expect(page.get_by_role("heading", name="Tide tables", level=1)).to_be_visible()
    await expect(page.get_by_role("button", name="Submit for review")).to_be_visible()


async def test_importing_a_team(site: Running, visitor: Visitor) -> None:
    """An export is imported elsewhere after one has seen what it would do."""
    ana, bob = await site.user(), await site.user()
    team = (await ana.post("/v1/teams", json={"name": "Crew of the Fram"})).json()["id"]
    bundle = {
        "format": "platform.team",
        "version": 1,
        "team": {"name": "Elsewhere"},
        "members": [{"email": bob.user["email"], "team_role": "member"}],
    }
    page = await visitor.arrive(ana, f"/people/teams/{team}")
    file = FilePayload(name="team.json", mimeType="application/json", buffer=json.dumps(bundle).encode())
    await page.locator("input[type=file]").set_input_files(file)
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="See what it would do").click()
    await expect(dialog.locator("pre")).to_contain_text(bob.user["email"])
    await dialog.get_by_role("button", name="Import").click()
    await expect(page.get_by_role("cell", name=bob.user["username"], exact=True)).to_be_visible()


async def test_without_https(site: Running, browser: Browser) -> None:
    """On a server reached by its name over plain HTTP, one asks and copies the answer as well."""
    ana = await site.user()
    await knowledge_base(ana)
    context = await browser.new_context(locale="en-GB")
    visitor = Visitor(replace(site, url=site.url.replace("127.0.0.1", PLAIN_HOST)), context)
    page = await visitor.arrive(ana)
    assert await page.evaluate("isSecureContext") is False
    await visitor.ask("How much may a hotel in Oslo cost per night?")
    await expect(page.locator(".markdown")).to_contain_text("185 euro")
    await page.get_by_role("button", name="Copy the answer").click()
    await expect(page.get_by_text("Copied")).to_be_visible()
    await context.close()
    assert visitor.problems == []


def _promote(unit: Unit, account_id: int) -> None:
    unit.session.get_one(Account, account_id).platform_admin = True
