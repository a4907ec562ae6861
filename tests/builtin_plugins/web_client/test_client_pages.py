"""The client in a real browser, against a real platform: one test for each thing that people do."""

from __future__ import annotations

import asyncio
import re

import aiohttp
import pytest
from playwright.async_api import FilePayload, Route, expect

from kernel.sdk import Account, Unit
from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import HANDBOOK, Visitor, completed, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How much may a hotel in Oslo cost per night?"
# From `holdFrames()` on, what waits for the next frame waits for ever.
FRAMES = """(() => {
  const { requestAnimationFrame: frame, setTimeout: timer } = window;
  let holding = false;
  window.requestAnimationFrame = (callback) => (holding ? 0 : frame(callback));
  window.setTimeout = (callback, after, ...rest) =>
    holding && !(after > 100) ? 0 : timer(callback, after, ...rest);
  window.holdFrames = () => { holding = true; };
})()"""


async def test_signing_in_and_out(site: Running, visitor: Visitor) -> None:
    """A wrong password is reported; a reload and a new tab stay signed in; signing out ends these tabs, and
    the next name can be typed at once.
    """
    ana = await site.user()
    page = await visitor.open()
    await page.get_by_label("Username").fill(ana.user["username"])
    await page.get_by_label("Password").fill("not this one")
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("Invalid")
    await visitor.sign_in(ana)
    await page.reload()
    await page.locator(".sidebar").wait_for()
    other = await visitor.new_tab()
    await other.goto(f"{site.url}/app/documents")
    await expect(other.get_by_role("heading", name="Documents", level=1)).to_be_visible()
    assert "eyJ" not in await page.evaluate("JSON.stringify(localStorage)")
    await page.locator(".sidebar-end button").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_label("Password")).to_be_visible()
    await expect(other.get_by_label("Password")).to_be_visible()
    await page.get_by_label("Username").fill(ana.user["username"])
    await page.get_by_label("Password").fill(ana.password)
    await page.keyboard.press("Enter")
    await page.locator(".sidebar-end button").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_label("Username")).to_be_focused()


async def test_signing_out_ends_one_account(site: Running, visitor: Visitor) -> None:
    """A tab in which somebody else is signed in stays as it is."""
    other = await visitor.new_tab()
    await other.goto(f"{site.url}/app")
    page = await visitor.sign_in(await site.user())
    bob = await site.user()
    await other.get_by_label("Username").fill(bob.user["username"])
    await other.get_by_label("Password").fill(bob.password)
    await other.get_by_role("button", name="Sign in", exact=True).click()
    await other.locator(".sidebar").wait_for()
    await page.locator(".sidebar-end button").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_label("Password")).to_be_visible()
    # A new tab asks the open ones: the answer comes after the other tab has heard of the signing out.
    new = await visitor.new_tab()
    await new.goto(f"{site.url}/app")
    await expect(new.locator(".sidebar-end")).to_contain_text(bob.user["username"])
    await expect(other.locator(".sidebar-end")).to_contain_text(bob.user["username"])


async def test_registering(site: Running, visitor: Visitor) -> None:
    """Whoever makes an account is signed in, and shown how to begin."""
    page = await visitor.open("/register")
    await page.get_by_label("Username").fill("newcomer")
    await page.get_by_label("E-mail").fill("newcomer@example.org")
    await page.get_by_label("Password").fill("a long password")
    await page.get_by_role("button", name="Create the account").click()
    await expect(page.get_by_role("heading", name="Ask your own documents")).to_be_visible()


async def test_temporary_password(site: Running, visitor: Visitor) -> None:
    """Whoever was given a temporary password chooses another one before anything else."""
    root, ana = await site.user(role="admin"), await site.user()
    await site.platform.database.write(_make_platform_admin, root.user["id"])
    path = f"/v1/auth/users/{ana.user['id']}/reset-password"
    ana.password = (await root.post(path, json={"mode": "generate"})).json()["temporary_password"]
    page = await visitor.open()
    await page.get_by_label("Username").fill(ana.user["username"])
    await page.get_by_label("Password").fill(ana.password)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_label("New password", exact=True).fill("my own password")
    await page.get_by_label("New password, again").fill("my own password")
    await page.get_by_role("button", name="Change the password").click()
    await expect(page.locator(".sidebar")).to_be_visible()
    await site.sign_in(ana.user["username"], "my own password")


async def test_sign_out_everywhere(site: Running, visitor: Visitor) -> None:
    ana = await site.user()
    page = await visitor.sign_in(ana, "/account")
    await page.get_by_role("button", name="Sign out everywhere").click()
    await page.get_by_role("dialog").get_by_role("button", name="Sign out everywhere").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert (await ana.get("/v1/rag/knowledge-bases")).status == 401


async def test_from_nothing_to_a_cited_answer(site: Running, visitor: Visitor) -> None:
    """A new account drops a file, asks, and sees the passage in its place."""
    page = await visitor.arrive(await site.user())
    travel = FilePayload(
        name="travel.md", mimeType="text/markdown", buffer=b"A hotel in Oslo costs 185 euro."
    )
    await page.locator("input[type=file]").set_input_files(travel)
    await expect(page.locator(".document", has_text="travel.md")).to_contain_text("one passage")
    await page.get_by_role("link", name="Ask", exact=True).last.click()
    await visitor.ask("What does a hotel in Oslo cost?")
    citation = page.get_by_role("button", name="Source 1: travel.md")
    await expect(page.locator(".markdown")).to_contain_text("185 euro")
    await citation.hover()
    await expect(page.get_by_role("tooltip")).to_contain_text("A hotel in Oslo costs 185 euro.")
    await citation.click()
    await expect(page.frame_locator("iframe").locator("mark")).to_have_text("A hotel in Oslo costs 185 euro")


async def test_a_file_that_overtakes_the_list(site: Running, visitor: Visitor) -> None:
    """A list that was read before the first file arrived, and comes later, leaves it on the page."""
    listed, taken = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        answer = await route.fetch()
        listed.set()
        await taken.wait()
        await route.fulfill(response=answer)

    async def upload(route: Route) -> None:
        await listed.wait()
        await route.fulfill(response=await route.fetch())

    page = await visitor.arrive(await site.user())
    await page.route("**/documents?**", late)
    await page.route("**/upload", upload)
    travel = FilePayload(name="travel.md", mimeType="text/markdown", buffer=b"A hotel costs 185 euro.")
    await page.locator("input[type=file]").set_input_files(travel)
    document = page.locator(".document", has_text="travel.md")
    await expect(document).to_be_visible()
    taken.set()
    await expect(document).to_contain_text("one passage")


async def test_asking_at_once(site: Running, visitor: Visitor) -> None:
    """Whoever types before the page has drawn its first frame is answered like anybody else."""
    ana = await site.user()
    await knowledge_base(ana)

    async def last(route: Route) -> None:
        answer = await route.fetch()
        await page.evaluate("holdFrames()")
        await route.fulfill(response=answer)

    page = await visitor.open()
    await page.add_init_script(FRAMES)
    await page.route("**/v1/rag/knowledge-bases?**", last)
    await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    await expect(page.locator(".turn")).to_contain_text("185 euro")


async def test_what_the_documents_do_not_say(site: Running, visitor: Visitor) -> None:
    """A question without an answer gets an honest one, with what to do; a follow-up stays in the talk."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await visitor.ask("Who wins the football championship?")
    await expect(page.get_by_role("heading", name="Your documents don’t say")).to_be_visible()
    await visitor.ask(QUESTION)
    await expect(page.locator(".turn").last).to_contain_text("185 euro")
    await expect(page.locator(".turn")).to_have_count(2)
    await page.reload()
    await page.get_by_role("link", name="Add documents").click()
    await expect(page.get_by_role("button", name="New knowledge base")).to_be_visible()


async def test_a_source_that_has_changed_since(site: Running, visitor: Visitor) -> None:
    """It opens as it was, with what the newest version says there instead."""
    ana = await site.user()
    base = (await knowledge_base(ana))["id"]
    page = await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    await expect(page.locator(".markdown")).to_contain_text("185 euro")
    form = aiohttp.FormData()
    form.add_field("on_conflict", "replace")
    form.add_field("file", HANDBOOK.replace("185", "190").encode(), filename="handbook.md")
    sent = await ana.post(f"/v1/rag/knowledge-bases/{base}/upload", data=form)
    assert sent.status == 202, sent.body
    await completed(ana, f"/v1/rag/knowledge-bases/{base}/documents/{sent.json()['document_id']}")
    await page.reload()
    await expect(page.locator(".sources")).to_contain_text("changed since")
    await page.get_by_role("button", name="Source 1: handbook.md").click()
    viewer = page.get_by_role("complementary", name=re.compile("Source 1"))
    await expect(viewer.get_by_text("This document has changed since.")).to_be_visible()
    await expect(viewer.get_by_role("insertion")).to_have_text("190")
    await expect(viewer.get_by_role("deletion")).to_have_text("185")
    await expect(page.frame_locator("iframe").locator("mark")).to_contain_text("185 euro")


async def test_conversations(site: Running, visitor: Visitor) -> None:
    """A conversation has an address, survives a reload with its citations, is renamed and deleted."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    recent = page.get_by_role("navigation", name="Conversations")
    await expect(recent).to_contain_text("Oslo")
    await page.reload()
    await expect(page.locator(".markdown")).to_contain_text("185 euro")
    await page.get_by_role("button", name="Source 1: handbook.md").click()
    await expect(page.frame_locator("iframe").locator("mark")).to_have_text(
        "A hotel in Oslo may cost up to 185 euro per night"
    )
    await (
        page.get_by_role("complementary", name=re.compile("Source 1"))
        .get_by_role("button", name="Close")
        .click()
    )
    await page.locator(".head").get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Rename").click()
    await page.get_by_role("textbox", name="Name").fill("Hotels")
    await page.get_by_role("button", name="Save").click()
    await expect(recent).to_contain_text("Hotels")
    await page.locator(".head").get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    await expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    await expect(recent).to_have_count(0)


async def test_a_conversation_keeps_its_name(site: Running, visitor: Visitor) -> None:
    """It is listed by its first question, also after others."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    recent = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    await expect(recent).to_have_text(QUESTION)
    async with page.expect_response("**/v1/conversations/mine**"):
        await visitor.ask("Who wins the football championship?")
    await page.reload()
    await expect(recent).to_have_text(QUESTION)


@pytest.mark.long
async def test_many_files(site: Running, visitor: Visitor) -> None:
    """Each file shows what became of it: read, or failed with the reason; refused ones can be sent away."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    files = [
        FilePayload(name=f"note-{n}.txt", mimeType="text/plain", buffer=b"Note %d." % n) for n in range(20)
    ]
    files.append(FilePayload(name="broken.pdf", mimeType="application/pdf", buffer=b"%PDF-1.7 nothing"))
    files.append(FilePayload(name="empty.txt", mimeType="text/plain", buffer=b""))
    await page.locator("input[type=file]").set_input_files(files)
    await expect(page.get_by_text("22 documents")).to_be_visible()
    refused = page.get_by_role("alert").filter(has_text="empty.txt")
    await refused.get_by_role("button", name="Dismiss").click()
    await expect(refused).to_have_count(0)
    await page.get_by_role("button", name="Failed 1").click()
    failed = page.locator(".document", has_text="broken.pdf")
    await expect(failed.locator(".bad").first).not_to_be_empty()
    await expect(failed.get_by_role("button", name="Try again")).to_be_visible()
    await page.get_by_role("button", name="Being read 0").wait_for()
    await failed.get_by_role("button", name="More on broken.pdf").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    await expect(failed).to_have_count(0)


async def test_sharing(site: Running, visitor: Visitor) -> None:
    """Who sees a knowledge base is chosen in plain words; another member then finds it."""
    ana, bob = await site.user(), await site.user()
    base = await knowledge_base(ana, "For everyone")
    path = f"/v1/rag/knowledge-bases/{base['id']}"
    assert (await bob.get(path)).status == 404
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("button", name="Share", exact=True).click()
    await page.get_by_role("radio", name=re.compile("Everyone here")).check()
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("main .badge")).to_have_text("Everyone here")
    assert (await bob.get(path)).status == 200
    await page.get_by_role("button", name="Share", exact=True).click()
    await page.get_by_role("radio", name=re.compile("People I choose")).check()
    name = page.get_by_label("Username or e-mail address")
    await name.fill("nobody@example.org")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Nobody here has the name")
    await name.fill(bob.user["username"])
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("main .badge")).to_have_text("Some people")
    assert (await bob.get(path)).status == 200
    await page.get_by_role("button", name="Share", exact=True).click()
    await page.get_by_role("button", name=f"Take {bob.user['username']} away").click()
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("main .badge")).to_have_text("Private")
    assert (await bob.get(path)).status == 404


async def test_pipelines(site: Running, visitor: Visitor) -> None:
    """A pipeline over two knowledge bases is made, changed, and can be asked. Whoever shares it is told that
    the knowledge bases aren't shared with it.
    """
    ana = await site.user()
    await knowledge_base(ana, "One")
    await knowledge_base(ana, "Two", "The canteen opens at noon.")
    page = await visitor.arrive(ana, "/pipelines?new=1")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name", exact=True).fill("Both")
    await dialog.get_by_role("checkbox", name=re.compile("^One ")).check()
    await dialog.get_by_role("checkbox", name=re.compile("^Two ")).check()
    await dialog.get_by_role("button", name="Create").click()
    tile = page.locator("article", has_text="Both")
    await tile.get_by_role("button", name="More on Both").click()
    await page.get_by_role("menuitem", name="Change").click()
    await expect(dialog.get_by_text("knowledge bases are private")).to_have_count(0)
    await dialog.get_by_role("radio", name=re.compile("Everyone here")).check()
    await expect(dialog.get_by_role("status")).to_contain_text("2 of its knowledge bases are private")
    await dialog.get_by_role("button", name="Close").first.click()
    await page.get_by_role("button", name="Discard").click()
    await tile.get_by_role("button", name="More on Both").click()
    await page.get_by_role("menuitem", name="Change").click()
    [made] = (await ana.get("/v1/rag/pipeline")).json()["items"]
    elsewhere = {"visibility": "shared"}
    assert (await ana.patch(f"/v1/rag/pipeline/{made['id']}", json=elsewhere)).status == 200
    await dialog.get_by_role("textbox", name="Name").fill("Both of them")
    await dialog.get_by_role("button", name="Save").click()
    tile = page.locator("article", has_text="Both of them")
    await expect(tile).to_contain_text("Everyone here")  # what was changed in another tab stays
    await expect(tile).to_contain_text("One, Two")
    await tile.get_by_role("link", name="Ask").click()
    await visitor.ask("When does the canteen open?")
    await expect(page.locator(".turn")).to_contain_text("noon")


async def test_published_chats(site: Running, visitor: Visitor) -> None:
    """A pipeline of one's own is published for a site, and the line to embed it is shown. Whoever has none is
    told to make one; Back closes a dialog, after a question.
    """
    ana, bob = await site.user(), await site.user()
    base, shared = await knowledge_base(ana), await knowledge_base(bob)
    body = {"name": "Everybody's", "knowledge_base_ids": [shared["id"]], "visibility": "shared"}
    assert (await bob.post("/v1/rag/pipeline", json=body)).status == 200
    page = await visitor.arrive(ana, "/chats")
    await page.get_by_role("button", name="New chat").first.click()
    dialog = page.get_by_role("dialog", name="New chat")
    await expect(dialog).to_contain_text("Make one first")
    await dialog.get_by_role("link", name="New pipeline").click()
    await page.get_by_role("dialog", name="New pipeline").get_by_label("Name", exact=True).fill("Handb")
    await page.evaluate("Promise.allSettled(Object.values(navigation.back()))")
    await page.get_by_role("button", name="Discard").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.get_by_role("heading", name="Pipelines", level=1)).to_be_visible()
    await ana.post("/v1/rag/pipeline", json={"name": "Handbook", "knowledge_base_ids": [base["id"]]})
    await visitor.go("/chats?new=1")
    await expect(dialog.get_by_label("Pipeline").get_by_role("option")).to_have_text(["Handbook"])
    await dialog.get_by_role("textbox", name="Name").fill("Help desk")
    await dialog.get_by_role("textbox", name="Address").fill("help-desk")
    await dialog.get_by_label("Sites that may show it").fill("https://www.example.org")
    await dialog.get_by_role("button", name="Publish").click()
    await page.get_by_role("button", name="Embed").click()
    line = page.get_by_role("dialog", name="Help desk").locator("code")
    await expect(line).to_contain_text("/v1/chat/help-desk/widget.js")
    assert (await site.anonymous.get("/v1/chat/help-desk")).json()["name"] == "Help desk"


async def test_teams(site: Running, visitor: Visitor) -> None:
    """A team is made, and somebody invited with a link to pass on, even if the operator named no address."""
    ana = await site.user()
    crew = f"Crew of {ana.user['username']}"
    page = await visitor.arrive(ana, "/people")
    await page.get_by_role("button", name="New team").first.click()
    await page.get_by_label("Name", exact=True).fill(crew)
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("heading", name=crew, level=1)).to_be_visible()
    await page.get_by_role("button", name="Invite", exact=True).click()
    await page.get_by_label("E-mail").fill("guest@example.org")
    await page.get_by_role("dialog").get_by_role("button", name="Invite").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Pass it on yourself")
    link = (await page.get_by_role("dialog").locator("code").inner_text()).strip()
    await page.get_by_role("button", name="Done").click()
    await expect(page.get_by_role("region", name="Invites")).to_contain_text("guest@example.org")
    await page.goto(link)
    await expect(page.locator("main")).to_contain_text(crew)


@pytest.mark.parametrize("agrees", [False, True])
async def test_an_organizations_invite(site: Running, visitor: Visitor, agrees: bool) -> None:
    """Whoever has an account already is asked whether the organization may manage it; the box is empty."""
    ana, ben, boss = await site.user(), await site.user(), await site.user(role="admin")
    fields = {"name": "Aurora", "slug": f"o-{ana.user['username']}", "owner_user_id": ana.user["id"]}
    org = (await boss.post("/v1/organizations", json=fields)).json()["id"]
    body = {"email": ben.user["email"]}
    token = (await ana.post(f"/v1/organizations/{org}/invites", json=body)).json()["token"]
    page = await visitor.open(f"/invites#token={token}")
    await expect(page.locator("main")).to_contain_text("Aurora will manage an account that you create now")
    await page.get_by_role("link", name="Sign in").click()
    await page.get_by_label("Username").fill(ben.user["username"])
    await page.get_by_label("Password").fill(ben.password)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    box = page.get_by_label("Aurora may manage my account")
    await expect(box).not_to_be_checked()
    if agrees:
        await box.check()
    await page.get_by_role("button", name=re.compile("^Accept")).click()
    await expect(page).to_have_url(re.compile("/people"))
    [mine] = (await ben.get("/v1/organizations/mine")).json()
    assert (mine["id"], mine["managed"]) == (org, agrees)


async def test_what_publishes_a_knowledge_base(site: Running, visitor: Visitor) -> None:
    """Its owner sees the chats that answer from it, and turns one off."""
    ana, ben = await site.user(), await site.user()
    base = await knowledge_base(ana, visibility="shared", publishing="allowed")
    body = {"name": "p", "knowledge_base_ids": [base["id"]]}
    pipeline = (await ben.post("/v1/rag/pipeline", json=body)).json()["pipeline_id"]
    chat = {"name": "Shop", "slug": f"s-{base['id']}", "pipeline_id": pipeline, "allowed_origins": "*"}
    made = (await ben.post("/v1/rag/endpoints", json=chat)).json()
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Rename or describe").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Whoever sees it may also publish it")).to_be_checked()
    await expect(dialog).to_contain_text(f"Shop, by {ben.user['username']}")
    await dialog.get_by_role("button", name="Turn off").click()
    await expect(dialog.get_by_role("button", name="Turn off")).to_have_count(0)
    await dialog.get_by_label("Whoever sees it may also publish it").uncheck()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    await ben.patch(f"/v1/rag/endpoints/{made['id']}", json={"enabled": True})
    seen = (await ben.get(f"/v1/rag/endpoints/{made['id']}")).json()
    assert seen["state"] == "publishing_not_allowed"


async def test_keys(site: Running, visitor: Visitor) -> None:
    """A key is shown once, works with its scope, and not after it is revoked."""
    page = await visitor.arrive(await site.user(), "/keys?new=1")
    await page.get_by_label("Name", exact=True).fill("agent")
    await page.get_by_role("dialog").get_by_role("button", name="Create").click()
    key = (await page.locator(".notice code").inner_text()).strip()
    headers = {"Authorization": f"Bearer {key}"}
    assert (await site.anonymous.get("/v1/rag/knowledge-bases", headers=headers)).status == 200
    await page.get_by_role("button", name="Revoke").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_role("heading", name="No keys yet")).to_be_visible()
    assert (await site.anonymous.get("/v1/rag/knowledge-bases", headers=headers)).status == 401


async def test_plugins(site: Running, visitor: Visitor) -> None:
    """Plugins are listed with their state; somebody who isn't an administrator gets no switches."""
    page = await visitor.arrive(await site.user(), "/plugins")
    await page.get_by_label("Find a plugin").fill("rag")
    await page.get_by_role("link", name=re.compile("^rag ")).click()
    await expect(page.get_by_role("heading", name="rag", level=1)).to_be_visible()
    await expect(page.get_by_role("button", name=re.compile("^Turn"))).to_have_count(0)
    await expect(page.get_by_role("link", name="Audit log")).to_have_count(0)


async def test_keyboard(site: Running, visitor: Visitor) -> None:
    """The palette finds pages, knowledge bases and documents; two keys lead to a page."""
    ana = await site.user()
    await knowledge_base(ana, "Rosebud")
    page = await visitor.arrive(ana, "/keys")
    await page.get_by_role("heading", name="No keys yet").wait_for()
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("rosebud")
    await expect(page.get_by_role("option", name=re.compile("Knowledge base"))).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Rosebud")).to_be_visible()
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("handb")
    await page.get_by_role("option", name="handbook.md Rosebud").click()
    await expect(page.get_by_role("heading", name="handbook.md")).to_be_visible()
    await page.keyboard.press("g")
    await page.keyboard.press("p")
    await expect(page.get_by_role("heading", name="Pipelines", level=1)).to_be_visible()


# A shortcut, and how things stand before the browser does anything else, such as to hear of another key.
TYPED_AT_ONCE = """async () => {
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }));
  for (let turn = 0; turn < 20; turn += 1) await null;
  return document.activeElement.getAttribute("role");
}"""


async def test_a_letter_right_after_a_shortcut(site: Running, visitor: Visitor) -> None:
    """The palette has the focus before the next key arrives: what is typed at once is not lost."""
    page = await visitor.arrive(await site.user(), "/keys")
    await page.get_by_role("heading", name="No keys yet").wait_for()
    assert await page.evaluate(TYPED_AT_ONCE) == "combobox"


async def test_first_view_is_small(site: Running, visitor: Visitor) -> None:
    """What a new visitor loads stays below 100 kB compressed, in a handful of requests."""
    page = await visitor.open()
    await page.get_by_label("Password").wait_for()
    loaded = await page.evaluate(
        "performance.getEntriesByType('resource').map((one) => [one.name, one.encodedBodySize])"
    )
    assert 0 < sum(size for _, size in loaded) < 60_000
    names = {str(name).rpartition("/")[2] for name, _ in loaded}
    late = {"icon.svg", "capabilities"}  # the form doesn't wait for them
    assert names - late == {"main.js", "styles.css"}


async def test_the_form_waits_for_nobody(site: Running, visitor: Visitor) -> None:
    """Name and password can be typed while the API has not said yet how else one may sign in."""
    asked = asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await asyncio.Event().wait()

    page = await visitor.new_tab()
    await page.route("**/v1/auth/capabilities", hold)
    await page.goto(f"{site.url}/app")
    await page.get_by_label("Username").fill("ana")
    await asked.wait()
    await expect(page.get_by_label("Username")).to_have_value("ana")


def _make_platform_admin(unit: Unit, account_id: int) -> None:
    unit.session.get_one(Account, account_id).platform_admin = True
