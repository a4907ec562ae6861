"""Long work on a knowledge base: progress, cancelling, a reload in between; and very many files at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from kernel.testing import Actor, Running
from tests.builtin_plugins.web_client.gated_model import GATED, GatedModel
from tests.builtin_plugins.web_client.visits import Visitor, completed, knowledge_base
from tests.fakes.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

PART = 96  # passages that are embedded in one call when the model changes
LONG = "\n\n".join(
    f"# Part {n}\n\nThe harbour of Senja has {n} piers. " + "Boats moor there. " * 60 for n in range(1, 12)
)
FILES = 200
LINES = 10_000  # lines of a document that is read by itself, and not together with others
DROP = """(count) => {
  const transfer = new DataTransfer();
  for (let n = 0; n < count; n += 1) transfer.items.add(new File([`Note ${n} of Senja.`], `note-${n}.txt`));
  const drop = new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
  document.body.dispatchEvent(drop);
}"""


async def model_of(ana: Actor, base: str) -> str:
    return str((await ana.get(f"/v1/rag/knowledge-bases/{base}")).json()["embedding_model"])


async def own_bases(ana: Actor) -> list[str]:
    """The knowledge bases of this account; those that others share with everyone are left out."""
    items = (await ana.get("/v1/rag/knowledge-bases")).json()["items"]
    return [one["id"] for one in items if one["owner_id"] == ana.user["id"]]


async def choose(page: Page, command: str) -> None:
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name=command).click()


async def change_model(page: Page) -> None:
    await choose(page, "Change the embedding model")
    await page.get_by_label("New model").fill(GATED)
    await page.get_by_role("button", name="Change the model").click()


async def import_file(page: Page, path: Path) -> Locator:
    """Choose a file to import and send it; the dialog."""
    dialog = page.get_by_role("dialog", name="Import a knowledge base")
    await dialog.get_by_label("Exported file").set_input_files(path)
    await dialog.get_by_role("button", name="Import", exact=True).click()
    return dialog


@pytest.mark.long
async def test_carrying_a_knowledge_base_elsewhere(site: Running, visitor: Visitor, tmp_path: Path) -> None:
    """It is exported as one file, of which another is made; a damaged file is refused, with what to do."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await choose(page, "Export")
    dialog = page.get_by_role("dialog", name="Export “Handbook”")
    async with page.expect_download() as download:
        await dialog.get_by_role("button", name="Export", exact=True).click()
    assert (await download.value).suggested_filename == "Handbook.kb.zip"
    kept = tmp_path / "whole.kb.zip"
    await (await download.value).save_as(kept)
    await expect(dialog).to_have_count(0)
    content = kept.read_bytes()
    cut, spoiled = tmp_path / "cut.kb.zip", tmp_path / "spoiled.kb.zip"
    cut.write_bytes(content[: len(content) // 2])
    spoiled.write_bytes(content[:100] + bytes(200) + content[300:])
    await page.get_by_role("link", name="Documents").first.click()
    await page.get_by_role("button", name="Import", exact=True).click()
    refused = (await import_file(page, cut)).get_by_role("alert")
    await expect(refused).to_contain_text("Export the knowledge base once more")
    dialog = await import_file(page, spoiled)
    await expect(refused).to_contain_text("can't be read")
    await dialog.get_by_role("button", name="Choose another file").click()
    await import_file(page, kept)
    await expect(page).to_have_url(re.compile("/documents/.+"))
    assert base["id"] not in page.url
    await expect(page.get_by_role("link", name="handbook.md")).to_be_visible()
    assert len(await own_bases(ana)) == 2


async def test_an_export_that_ends_early(site: Running, visitor: Visitor) -> None:
    """Half a file is not saved as if it were whole."""
    ana = await site.user()
    base = await knowledge_base(ana)
    await visitor.context.route("**/export", lambda route: route.fulfill(body=b"PK" + bytes(5000)))
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await choose(page, "Export")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Export", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("before the file was complete")


@pytest.mark.long
async def test_cancelling_an_import(
    site: Running, visitor: Visitor, gate: GatedModel, tmp_path: Path
) -> None:
    """It goes on without its dialog and is shown in the knowledge base; cancelled, it leaves nothing."""
    ana = await site.user()
    gate.stop()
    gate.let(10)
    base = (await knowledge_base(ana, "Gated", embedding_model=GATED))["id"]
    kept = tmp_path / "gated.kb.zip"
    kept.write_bytes((await ana.get(f"/v1/rag/knowledge-bases/{base}/export")).body)
    gate.stop()
    page = await visitor.arrive(ana, "/documents")
    await page.get_by_role("button", name="Import", exact=True).click()
    dialog = await import_file(page, kept)
    await expect(dialog.get_by_role("progressbar")).to_be_visible()
    await dialog.get_by_role("button", name="Close").last.click()
    await page.reload()
    await page.locator(f".tile:not([href$='{base}'])", has_text="Gated").click()
    await expect(page.get_by_role("progressbar", name="The knowledge base is being imported")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_text("The import was cancelled")).to_be_visible()
    await page.get_by_role("link", name="Documents").first.click()
    await expect(page.locator(".tile", has_text="Gated")).to_have_count(1)

    async def is_removed() -> bool:  # by a job that follows
        return len(await own_bases(ana)) == 1

    await eventually(is_removed, 60)


@pytest.mark.long
async def test_changing_the_embedding_model(site: Running, visitor: Visitor, gate: GatedModel) -> None:
    """How far it is, is shown and survives a reload; cancelled it leaves the old model, done the new one."""
    gate.stop()
    ana = await site.user()
    lamps = "\n\n".join(f"Lamp {number} stands at the harbour, on pier {number}." for number in range(500))
    base = (await knowledge_base(ana, text=lamps, chunk_size=100, chunk_overlap=0))["id"]
    passages = (await ana.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"][0]["chunk_count"]
    assert passages > 2 * PART
    before = await model_of(ana, base)
    page = await visitor.arrive(ana, f"/documents/{base}")
    await change_model(page)
    meter = page.get_by_role("progressbar", name="The embedding model is being changed")
    await expect(meter).to_have_attribute("aria-valuemax", str(passages))
    gate.let(1)
    await expect(meter).to_have_attribute("aria-valuenow", str(PART))
    await page.reload()
    await expect(meter).to_have_attribute("aria-valuenow", str(PART))
    await page.locator(".notice").get_by_role("button", name="Cancel").click()
    await expect(meter).to_have_count(0)
    assert await model_of(ana, base) == before
    await change_model(page)
    await expect(meter).to_be_visible()
    gate.let(10)
    await expect(meter).to_have_count(0)
    assert await model_of(ana, base) == GATED


async def test_whoever_may_not_cancel_sees_the_work_alone(
    site: Running, visitor: Visitor, gate: GatedModel
) -> None:
    """Other readers of a knowledge base see that it is worked on, and no button that would be refused."""
    gate.stop()
    ana, bob = await site.user(), await site.user()
    team = (await ana.post("/v1/teams", json={"name": "Crew"})).json()["id"]
    await ana.post(f"/v1/teams/{team}/members", json={"user_id": bob.user["id"]})
    base = (await knowledge_base(ana, visibility="team", team_id=team))["id"]
    path = f"/v1/rag/knowledge-bases/{base}/reembed"
    assert (await ana.post(path, json={"embedding_model": GATED})).status == 202
    page = await visitor.arrive(bob, f"/documents/{base}")
    await expect(page.get_by_text("The embedding model is being changed")).to_be_visible()
    await expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    await visitor.go("/operations")
    await expect(page.get_by_role("cell", name="Change the embedding model")).to_be_visible()
    await expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    gate.let(10)


@pytest.mark.long
async def test_building_trees(site: Running, visitor: Visitor, gate: GatedModel) -> None:
    """The same for trees of summaries: progress, a cancel, and nothing left of it."""
    gate.stop()
    gate.let(10)
    ana = await site.user()
    base = (await knowledge_base(ana, text=LONG, embedding_model=GATED))["id"]
    gate.stop()
    page = await visitor.arrive(ana, f"/documents/{base}")
    await choose(page, "Build trees")
    await page.get_by_role("dialog").get_by_role("button", name="Build").click()
    meter = page.get_by_role("progressbar", name="Trees are being built")
    await expect(meter).to_have_attribute("aria-valuemax", "1")
    await expect(meter).to_have_attribute("aria-valuenow", "0")
    await page.locator(".notice").get_by_role("button", name="Cancel").click()
    await expect(meter).to_have_count(0)
    await choose(page, "Build trees")
    await page.get_by_role("dialog").get_by_role("button", name="Build").click()
    await expect(meter).to_be_visible()
    gate.let(100)
    await expect(meter).to_have_count(0)
    path = f"/v1/rag/knowledge-bases/{base}/documents"
    document = (await ana.get(path)).json()["items"][0]["document_id"]
    assert (await ana.get(f"{path}/{document}")).json()["tree_nodes_created"] > 0


@pytest.mark.long
async def test_cancelling_one_document(site: Running, visitor: Visitor, gate: GatedModel) -> None:
    """One of two documents is cancelled, says so and can be read again; the other is read meanwhile."""
    gate.stop()
    ana = await site.user()
    made = await ana.post("/v1/rag/knowledge-bases", json={"name": "Notes", "embedding_model": GATED})
    path = f"/v1/rag/knowledge-bases/{made.json()['id']}"
    sent = {
        name: (
            await ana.upload(f"{path}/upload", name, f"The boat {name} of Senja.\n".encode() * LINES)
        ).json()
        for name in ("one.txt", "two.txt")
    }
    page = await visitor.arrive(ana, f"/documents/{made.json()['id']}")
    cancel = page.get_by_role("button", name="Cancel reading one.txt")
    await cancel.click()
    await expect(cancel).to_be_disabled()
    gate.let(1000)
    await expect(page.get_by_text("Processing was cancelled")).to_be_visible()
    await completed(ana, f"{path}/documents/{sent['two.txt']['document_id']}")
    await page.get_by_role("button", name="Try again").click()
    await completed(ana, f"{path}/documents/{sent['one.txt']['document_id']}")
    await expect(page.get_by_role("button", name="Failed 0")).to_be_visible()


@pytest.mark.long
async def test_very_many_files_at_once(site: Running, visitor: Visitor, gate: GatedModel) -> None:
    """200 files dropped on the page are all sent and read; none is lost or sent twice."""
    gate.stop()
    gate.let(10 * FILES)
    ana = await site.user()
    base = (
        await ana.post("/v1/rag/knowledge-bases", json={"name": "Notes", "embedding_model": GATED})
    ).json()
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("heading", name="Nothing in here yet").wait_for()
    await page.evaluate(DROP, FILES)
    await expect(page.get_by_text(re.compile("^Sending [0-9]+ files"))).to_be_visible()
    await expect(page.get_by_text(f"{FILES} documents")).to_be_visible(timeout=240_000)
    await expect(page.get_by_role("button", name="Being read 0")).to_be_visible(timeout=240_000)
    await expect(page.get_by_role("button", name="Failed 0")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)
    query = {"limit": "500", "status": "completed"}
    found = (await ana.get(f"/v1/rag/knowledge-bases/{base['id']}/documents", params=query)).json()
    assert {item["filename"] for item in found["items"]} == {f"note-{n}.txt" for n in range(FILES)}
    assert found["total"] == FILES
