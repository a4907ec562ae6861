"""What is offered to whom: nobody sees a button for what they may not do, and owners see what others see."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from builtin_plugins.accounts.api import ACCOUNTS
from kernel.testing import Running, platforms
from tests.builtin_plugins.web_client.visits import Visitor, colleagues, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

OF_MANAGERS = re.compile(
    "^(Invite|Import|New role|More|Delete.*|Add .*|Make .*|Run|New set.*|Upload a folder|Try again)$"
)


async def test_readers_get_no_buttons_of_owners(site: Running, visitor: Visitor) -> None:
    """A plain member reads knowledge base, document, questions and organization, and is offered nothing
    refused. A pipeline that would answer nothing isn't what is asked first.
    """
    ana, bob, organization = await colleagues(site)
    shared: dict[str, Any] = {"visibility": "organization", "organization_id": organization}
    base = await knowledge_base(ana, "Handbook of Nordlys", **shared)
    documents = (await ana.get(f"/v1/rag/knowledge-bases/{base['id']}/documents")).json()["items"]
    question = {"question": "How much?", "answers": ["185"]}
    asked = {"knowledge_base_id": base["id"], "name": "Basics", "questions": [question]}
    questions = (await ana.post("/v1/rag/evaluation/sets", json=asked)).json()["id"]
    private = await knowledge_base(ana, "Only hers")
    empty = {"name": "Of nothing", "knowledge_base_ids": [private["id"]], **shared}
    pipeline = (await ana.post("/v1/rag/pipeline", json=empty)).json()["pipeline_id"]
    place = f"/people/organizations/{organization}"
    page = await visitor.arrive(bob, f"/documents/{base['id']}")
    for path, heading in (
        (f"/documents/{base['id']}", "Handbook of Nordlys"),
        (f"/documents/{base['id']}/{documents[0]['document_id']}", "handbook.md"),
        (f"/evaluation?base={base['id']}", "Evaluation"),
        (f"/evaluation/sets/{questions}", "Basics"),
        (place, "Nordlys"),
        (f"{place}/roles", "Nordlys"),
        ("/people/organizations", "People"),
    ):
        await visitor.go(path)
        await expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        await expect(page.locator("main").get_by_role("button", name=OF_MANAGERS)).to_have_count(0)
        await expect(page.locator("main input[type=file]")).to_have_count(0)
    await visitor.go("/")
    await expect(page.get_by_label("What to ask")).not_to_have_value(f"pipeline:{pipeline}")
    await visitor.go(place)
    await page.get_by_role("button", name=f"More on {bob.user['username']}").click()
    await expect(page.get_by_role("menuitem")).to_have_text(["What may I do here?", "Leave the organization"])
    await expect(page.get_by_role("button", name=f"More on {ana.user['username']}")).to_have_count(0)


async def test_owners_look_as_others(site: Running, visitor: Visitor) -> None:
    """An owner chooses a member and reads whether they see the knowledge base, and why."""
    ana, bob = await site.user(), await site.user()
    team = (await ana.post("/v1/teams", json={"name": "Crew of the Maud"})).json()["id"]
    await ana.post(f"/v1/teams/{team}/members", json={"user_id": bob.user["id"]})
    base = await knowledge_base(ana, "Only mine")
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="View as another member").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Who?").select_option(label=bob.user["username"])
    await expect(dialog).to_contain_text(f"{bob.user['username']} doesn’t see it")
    await dialog.get_by_role("button", name="Close").click()
    await ana.patch(f"/v1/rag/knowledge-bases/{base['id']}", json={"visibility": "team", "team_id": team})
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="View as another member").click()
    await dialog.get_by_label("Who?").select_option(label=bob.user["username"])
    await expect(dialog).to_contain_text("shared with a team that they belong to")


async def test_an_administrator_sees_whose_it_is(site: Running, visitor: Visitor) -> None:
    """What is private to somebody else isn't shown as if it were private to oneself; and a form says so."""
    ana, root = await site.user(), await site.user(role="admin")
    base, own = await knowledge_base(ana), await knowledge_base(root)
    page = await visitor.arrive(root, f"/documents/{base['id']}")
    await expect(page.locator("main .badge").first).to_have_text("Private to another user")
    await visitor.go(f"/documents/{own['id']}")
    await expect(page.locator("main .badge").first).to_have_text("Private")
    await visitor.go("/documents?new=1")
    await expect(page.get_by_role("dialog")).to_contain_text("Administrators of this server can see it")


async def test_changed_roles_and_nested_groups(site: Running, visitor: Visitor) -> None:
    """A group may hold another one; who has a role with it gains those rights, and loses them with it."""
    ana, bob, organization = await colleagues(site)
    place = f"/v1/organizations/{organization}"
    body = {"name": "Care", "permissions": ["org.members.manage"]}
    assert (await ana.post(f"{place}/permission-groups", json=body)).status == 201
    assert (await ana.post(f"{place}/permission-groups", json={"name": "Heads"})).status == 201
    role = (await ana.post(f"{place}/roles", json={"name": "Host"})).json()["id"]
    member = f"{place}/members/{bob.user['id']}"
    assert (await ana.post(f"{member}/roles", json={"role_id": role})).status in (200, 201)
    page = await visitor.arrive(ana, f"/people/organizations/{organization}/groups")
    dialog = page.get_by_role("dialog")
    await page.get_by_role("button", name="Change Heads").click()
    await dialog.get_by_role("checkbox", name="Care").check()
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.locator(".tile", has=page.get_by_role("heading", name="Heads"))).to_contain_text("Care")
    await page.get_by_role("link", name="Roles", exact=True).click()
    await page.get_by_role("button", name="Change Host").click()
    await dialog.get_by_role("textbox", name="Name").fill("Hosts")
    await dialog.get_by_role("checkbox", name="Heads").check()
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.locator(".tile", has_text="Hosts")).to_contain_text("Heads")
    assert "org.members.manage" in (await ana.get(f"{member}/effective-permissions")).body.decode()
    await visitor.go(f"/people/organizations/{organization}/groups")
    await page.get_by_role("button", name="Change Care").click()
    await dialog.get_by_role("checkbox", name="Heads").check()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).not_to_be_empty()  # each would hold the other
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Discard").click()
    await page.get_by_role("button", name="Change Heads").click()
    await dialog.get_by_role("checkbox", name="Care").uncheck()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    assert "org.members.manage" not in (await ana.get(f"{member}/effective-permissions")).body.decode()


async def test_upkeep_of_a_knowledge_base(site: Running, visitor: Visitor) -> None:
    """An owner has trees built; an embedding model that isn't there is refused with those that are."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Build trees").click()
    async with page.expect_response(re.compile("/trees$")) as answer:
        await page.get_by_role("dialog").get_by_role("button", name="Build").click()
    assert (await answer.value).status == 202
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Change the embedding model").click()
    await page.get_by_label("New model").fill("no-such-model")
    await page.get_by_role("button", name="Change the model").click()
    await expect(page.get_by_role("alert")).to_contain_text("'no-such-model' is not available here")


async def test_the_first_account(tmp_path: Path, browser: Browser) -> None:
    """The link that the terminal shows makes it: its code leaves the address, and one is signed in. Somebody
    who has registered already, who is no administrator, is not in the way.
    """
    async with platforms(tmp_path) as start:
        running = await start("web_client")
        running.platform.secrets.set("first-account", "the-code")
        await running.platform.resource(ACCOUNTS).register("eve", "eve@example.org", "correct horse battery")
        context = await browser.new_context(locale="en-GB")
        page = await Visitor(running, context).open("/#first-account=the-code")
        await page.get_by_label("Username").fill("ada")
        assert "the-code" not in page.url
        await page.get_by_label("Password").fill("correct horse battery")
        await page.get_by_role("button", name="Create the account").click()
        await expect(page.locator(".sidebar")).to_be_visible()
        await context.close()


async def test_the_first_start(tmp_path: Path, browser: Browser) -> None:
    """Where nobody has an account, the page says how the first is made, and notices a terminal's."""
    async with platforms(tmp_path) as start:
        running = await start("web_client")
        context = await browser.new_context(locale="en-GB")
        page = await Visitor(running, context).open()
        welcome = page.get_by_role("heading", name="Welcome! Make the first account")
        await expect(welcome).to_be_visible()
        await expect(page.locator("code").first).to_have_text("./setup.sh users create YOURNAME --admin")
        await page.get_by_label("Username").fill("ada")
        accounts = running.platform.resource(ACCOUNTS)
        await accounts.register("ada", "ada@example.org", "correct horse battery", role="admin")
        await page.evaluate("dispatchEvent(new Event('focus'))")
        await expect(welcome).to_have_count(0)
        await expect(page.get_by_label("Username")).to_have_value("ada")
        await page.get_by_label("Password").fill("correct horse battery")
        await page.get_by_role("button", name="Sign in", exact=True).click()
        await expect(page.locator(".sidebar")).to_be_visible()
        await context.close()
