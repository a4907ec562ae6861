"""Sources in the client: adding one, what its runs say, confirming, removing, and where a document lives."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from builtin_plugins.source_folder.settings import SourceFolderSettings
from kernel.testing import Actor, Running, eventually
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_folder_is_added_and_kept_in_step(site: Running, visitor: Visitor) -> None:
    """In a form made from the schema, tried first; what is left out says why; much that is missing waits."""
    ana = await site.user()
    base = await knowledge_base(ana)
    folder = Path(site.platform.settings_of(SourceFolderSettings).source_folders) / base["id"]
    folder.mkdir()
    for number in range(9):
        (folder / f"rule-{number}.md").write_text(f"# Rule {number}\n\nBe kind, {number} times.")
    (folder / "empty.txt").write_text("")
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Sources").click()
    await page.get_by_role("button", name="Add a source").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Kind").select_option("folder")
    await dialog.get_by_label("Folder", exact=True).fill("/etc")
    await dialog.get_by_role("button", name="Try it").click()
    await expect(dialog.get_by_text("The source can’t be read")).to_be_visible()
    await dialog.get_by_label("Folder", exact=True).fill(str(folder))
    await dialog.get_by_text("What is taken").click()
    await dialog.get_by_label("Leave out").fill("*.txt")
    await dialog.get_by_role("button", name="Try it").click()
    await expect(dialog.get_by_text("rule-0.md")).to_be_visible()
    await expect(dialog.get_by_text("filter: its path is excluded")).to_be_visible()
    await dialog.get_by_label("Leave out").fill("")
    await dialog.get_by_label("Name").fill("Rules")
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_role("heading", name="Rules", level=1)).to_be_visible()
    await expect(page.get_by_text("10 found · 9 new · 1 left out").first).to_be_visible()
    await page.get_by_role("link", name="Items").click()
    await page.get_by_role("button", name="Left out").click()
    await expect(page.get_by_text("it is empty")).to_be_visible()
    await page.get_by_role("button", name="All").click()
    await page.get_by_role("link", name="rule-3.md").click()
    await page.get_by_role("link", name="Details").click()
    await expect(page.get_by_role("definition").filter(has_text="rule-3.md")).to_be_visible()
    await expect(page.get_by_text("Version there")).to_be_visible()
    await expect(page.get_by_text("Everybody who sees the knowledge base.")).to_be_visible()
    await expect(page.get_by_role("link", name="Rules", exact=True)).to_be_visible()
    await page.go_back()
    await page.go_back()
    for number in range(8):
        (folder / f"rule-{number}.md").unlink()
    await page.get_by_role("button", name="Run now").click()
    await expect(page.get_by_text("Much is missing at the source")).to_be_visible()
    await page.get_by_role("button", name="Delete it here, too").click()
    await page.get_by_role("link", name="Runs").click()
    await expect(page.get_by_text("2 found · 8 gone").first).to_be_visible()
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Remove").click()
    await page.get_by_label("Delete them").check()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("heading", name="No sources yet")).to_be_visible()
    left = (await ana.get(f"/v1/rag/knowledge-bases/{base['id']}/documents")).json()["items"]
    assert [one["filename"] for one in left] == ["handbook.md"]


async def test_settings_and_filters_are_changed(site: Running, visitor: Visitor) -> None:
    """They are tried before they are saved, and the source's page says what they are; a dry run is no run."""
    ana = await site.user()
    base = await knowledge_base(ana)
    top = Path(site.platform.settings_of(SourceFolderSettings).source_folders) / f"changed-{base['id']}"
    for name in ("old", "new"):
        (top / name).mkdir(parents=True)
        (top / name / f"{name}.md").write_text(f"# The {name} one")
    body = {"kind": "folder", "name": "Rules", "settings": {"path": str(top / "old")}}
    made = await ana.post(f"/v1/rag/knowledge-bases/{base['id']}/sources", json=body)
    path = f"/v1/rag/sources/{made.json()['id']}"
    page = await visitor.arrive(ana, f"/documents/{base['id']}/sources/{made.json()['id']}")
    await expect(page.get_by_text("1 found · 1 new").first).to_be_visible()
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Change", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Who may read")).to_contain_text("Whoever may read it there")
    await dialog.get_by_label("Folder", exact=True).fill(str(top / "new"))
    await dialog.get_by_text("What is taken").click()
    await dialog.get_by_label("Largest file in MB").fill("2.5")
    await dialog.get_by_label("Not older than, in days").fill("30")
    await dialog.get_by_label("Only these media types").fill("text/*")
    await dialog.get_by_role("button", name="Try it").click()
    await expect(dialog.get_by_text("new.md")).to_be_visible()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    saved = (await ana.get(path)).json()
    assert saved["settings"]["path"] == str(top / "new")
    filters = {
        "max_size_mb": 2.5,
        "max_age_days": 30,
        "media_types": ["text/*"],
        "include": [],
        "exclude": [],
    }
    assert saved["filters"] == filters
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Show what would change").click()
    await expect(page.get_by_text("Rehearsed")).to_have_count(1)
    assert (await ana.get(path)).json()["last_run"]["is_dry"] is False
    await page.get_by_role("link", name="Details").click()
    await expect(page.get_by_role("definition").filter(has_text="Folder on the server")).to_be_visible()
    await expect(page.get_by_role("definition").filter(has_text="2.5")).to_be_visible()


async def unmapped(owner: Actor, path: str, offset: int) -> set[tuple[str, str]]:
    """The people and groups without a counterpart on a page of the list."""
    reply = await owner.get(f"{path}/principals", params={"mapped": "false", "limit": 50, "offset": offset})
    return {(one["kind"], one["name"]) for one in reply.json()["items"]}


async def test_people_at_a_source_get_counterparts(site: Running, visitor: Visitor) -> None:
    """Who has none is listed, the owner says who it is, and what nobody may read is a number."""
    ana = await site.user()
    base = await knowledge_base(ana)
    folder = Path(site.platform.settings_of(SourceFolderSettings).source_folders) / f"guarded-{base['id']}"
    folder.mkdir()
    (folder / "secret.md").write_text("# A secret\n\nOnly for some.")
    (folder / "secret.md").chmod(0o600)
    body = {"kind": "folder", "name": "Secrets", "settings": {"path": str(folder), "rights": "posix"}}
    made = await ana.post(f"/v1/rag/knowledge-bases/{base['id']}/sources", json=body)
    assert made.status == 201, made.body
    path = f"/v1/rag/sources/{made.json()['id']}"

    async def is_done() -> bool:
        return bool((await ana.get(path)).json()["last_run"]["state"] == "done")

    await eventually(is_done)
    page = await visitor.arrive(ana, f"/documents/{base['id']}/sources/{made.json()['id']}?tab=rights")
    await expect(page.get_by_text("Documents that nobody may read")).to_be_visible()
    await visitor.go(f"/documents/{base['id']}/sources/{made.json()['id']}")
    await expect(page.get_by_text("Some of its permissions could not be mapped")).to_be_visible()
    await page.get_by_role("link", name="Permissions").first.click()
    root = (
        page.get_by_role("listitem")
        .filter(has_text="rootPerson")
        .or_(page.get_by_role("listitem").filter(has_text="root Person"))
    )
    offset = 0
    while not (here := await unmapped(ana, path, offset)) & {("person", "root")}:
        assert here
        offset += 50
        await page.get_by_role("button", name="Next").click()
        await expect(page.get_by_role("button", name="Previous")).to_be_enabled()
    await root.get_by_role("button", name="Say who it is").click()
    await page.get_by_label("An account").check()
    await page.get_by_label("Account", exact=True).select_option(ana.user["username"])
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("button", name="Save")).to_have_count(0)
    await page.get_by_role("button", name="With a counterpart").click()
    await expect(page.get_by_text("An account", exact=True).first).to_be_visible()
    listed = (await ana.get(f"/v1/rag/knowledge-bases/{base['id']}/documents")).json()["items"]
    assert "secret.md" in {one["filename"] for one in listed}
    await page.get_by_label("Groups of the sign-in").select_option("name")

    async def is_chosen() -> bool:
        return bool((await ana.get(path)).json()["sign_in_groups"] == "name")

    await eventually(is_chosen)
    await expect(page.get_by_label("Groups of the sign-in")).to_be_enabled()
    await root.get_by_role("button", name="Say who it is").click()
    await page.get_by_label("A group of the sign-in").check()
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()
    await page.get_by_label("Name of the group").fill("hr")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("button", name="Save")).to_have_count(0)
    [said] = (await ana.get(f"{path}/counterparts")).json()["items"]
    assert (said["target"], said["target_name"], said["target_id"]) == ("sign_in_group", "hr", None)
