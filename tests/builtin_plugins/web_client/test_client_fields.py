"""Fields of documents: declared in a knowledge base, filled by hand and by a rule, and read on a document."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.test_client_upkeep import choose
from tests.builtin_plugins.web_client.visits import Visitor, knowledge_base
from tests.fakes.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def declare(page: Page, name: str, kind: str) -> None:
    """Add a field in the open dialog."""
    await page.get_by_label("Name", exact=True).fill(name)
    await page.get_by_label("Kind").select_option(label=kind)
    await page.get_by_role("button", name="Add the field").click()
    await expect(page.get_by_role("button", name=f"Remove {name}")).to_be_visible()


async def test_fields_from_declaring_to_reading(site: Running, visitor: Visitor) -> None:
    ana = await site.user()
    base = (await knowledge_base(ana))["id"]
    page = await visitor.arrive(ana, f"/documents/{base}")
    await choose(page, "Fields of documents")
    dialog = page.get_by_role("dialog", name="Fields of documents")
    await declare(page, "year", "Number")
    await declare(page, "signed", "Yes or no")
    await dialog.get_by_label("Path").fill("*.md")
    await dialog.get_by_label("Value optional").fill("handbook")
    await dialog.get_by_role("button", name="Add the rule").click()
    await expect(dialog.get_by_role("button", name="Remove the rule *.md")).to_be_visible()
    await dialog.get_by_role("button", name="Close").click()
    (document,) = (await ana.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    path = f"/v1/rag/knowledge-bases/{base}/documents/{document['document_id']}"

    async def values() -> dict[str, object]:
        return dict((await ana.get(path)).json()["metadata"])

    async def is_tagged() -> bool:
        return "tags" in await values()

    await eventually(is_tagged)
    await page.goto(f"{site.url}/app/documents/{base}/{document['document_id']}?tab=details")
    await expect(page.get_by_text("by a rule")).to_be_visible()
    await page.get_by_role("button", name="Edit fields").click()
    edit = page.get_by_role("dialog", name="Fields of this document")
    await edit.get_by_label("year").fill("never")
    await edit.get_by_role("button", name="Save").click()
    await expect(edit.get_by_role("alert")).to_contain_text("number")
    await edit.get_by_label("year").fill("2026")
    await edit.get_by_label("signed").select_option(label="Yes")
    await edit.get_by_label("Author").fill("Ada\nBo")
    await edit.get_by_label("Another field").select_option(label="Subject")
    await edit.get_by_label("Subject").fill("Travel")
    await edit.get_by_role("button", name="Save").click()
    await expect(edit).to_have_count(0)
    for shown in ("2026", "Ada", "Bo", "Travel"):
        await expect(page.locator(".facts").get_by_text(shown, exact=True).first).to_be_visible()
    found = await values()
    language = {"language": found["language"]} if "language" in found else {}
    assert found == {
        "year": 2026,
        "signed": True,
        "author": ["Ada", "Bo"],
        "subject": "Travel",
        "tags": ["handbook"],
        **language,
    }
    await page.get_by_role("button", name="Edit fields").click()
    await edit.get_by_label("Author").fill("")
    await edit.get_by_role("button", name="Save").click()
    await expect(edit).to_have_count(0)
    assert "author" not in await values()
    await page.goto(f"{site.url}/app/documents/{base}")
    await choose(page, "Fields of documents")
    async with page.expect_download() as table:
        await page.get_by_role("button", name="Download the table").click()
    written = (await (await table.value).path()).read_text(encoding="utf-8")
    assert "2026" in written
    sent = {
        "name": "metadata.csv",
        "mimeType": "text/csv",
        "buffer": written.replace("2026", "2027").encode(),
    }
    await page.get_by_label("Send the table back").set_input_files(sent)
    await expect(page.get_by_text("One document has changed.")).to_be_visible()
    assert (await values())["year"] == 2027
    await page.get_by_label("A model proposes values of “year”").check()
    await expect(page.get_by_label("A model proposes values of “year”")).to_be_checked()
    await page.get_by_role("button", name="Remove year").click()
    await page.get_by_role("button", name="Remove", exact=True).click()
    await expect(page.get_by_role("button", name="Remove year")).to_have_count(0)
    assert "year" not in await values()
