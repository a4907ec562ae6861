"""Files attached to a question: asked alone or beside a source, waited for, refused, removed, private."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import FilePayload, Locator, Page, Route, expect

from kernel.testing import Actor, Running
from tests.builtin_plugins.web_client.gated_model import GATED, GatedModel
from tests.builtin_plugins.web_client.language_files import STATIC
from tests.builtin_plugins.web_client.visits import Visitor, colleagues, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"
NAME = "Files from questions"
TRANSLATED = [
    re.findall(f'"{NAME}": "([^"]+)"', file.read_text(encoding="utf-8"))[0]
    for file in sorted(STATIC.glob("languages/??.js"))
]
QUERY = re.compile(r"/query$")
INVOICE = "# Invoice 77\n\nHotel Lindholm, Oslo. The total of this invoice is 268 EUR for two nights.\n"
TOTAL = "What is the total of this invoice?"
HOTEL = "How much may a hotel in Oslo cost per night?"
LINES = "\n".join(f"Line {n} of a text that has many passages, all of them different." for n in range(400))
DROP = """(content) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([content], "dropped.md"));
  const init = { dataTransfer, bubbles: true, cancelable: true };
  document.body.dispatchEvent(new DragEvent("drop", init));
}"""
PASTE = """(box, content) => {
  const clipboardData = new DataTransfer();
  clipboardData.items.add(new File([content], "pasted.md"));
  const init = { clipboardData, bubbles: true, cancelable: true };
  box.dispatchEvent(new ClipboardEvent("paste", init));
}"""


def _file(name: str, content: str | bytes) -> FilePayload:
    data = content.encode() if isinstance(content, str) else content
    return {"name": name, "mimeType": "", "buffer": data}


async def _attach(page: Page, *files: FilePayload) -> None:
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Attach files").click()
    await (await chooser.value).set_files(list(files))


def _attached(page: Page) -> Locator:
    return page.get_by_role("list", name="Attached files").get_by_role("listitem")


async def _files_of(actor: Actor) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The knowledge base of attached files, and its documents."""
    items = (await actor.get(f"{BASES}?owner_id={actor.user['id']}")).json()["items"]
    (base,) = [one for one in items if one["name"] == NAME]
    return base, (await actor.get(f"{BASES}/{base['id']}/documents")).json()["items"]


async def test_a_file_is_asked(site: Running, visitor: Visitor) -> None:
    """Alone, or beside the source; also by later questions and after a reload, until it is removed."""
    ana, bob, _ = await colleagues(site)
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await page.get_by_label("Your question").fill("What is")
    await _attach(page, _file("invoice-77.md", INVOICE))
    await expect(_attached(page)).to_contain_text("Has been read")
    await expect(page.get_by_label("Your question")).to_have_value("What is")
    source = page.get_by_label("What to ask")
    await expect(source.locator("option:checked")).to_have_text("Only the attached file")
    async with page.expect_request(QUERY) as sent:
        await visitor.ask(TOTAL)
    base, (invoice,) = await _files_of(ana)
    body = (await sent.value).post_data_json
    assert (body["attachments"], body["only_attachments"]) == ([invoice["document_id"]], True)
    turns = page.locator(".turn")
    await expect(turns).to_contain_text("268 EUR")
    await expect(turns.locator(".sources")).to_contain_text("invoice-77.md")

    await visitor.ask(HOTEL)
    await expect(turns).to_have_count(2)
    await expect(turns.last).not_to_contain_text("185 euro")
    await page.reload()
    await expect(_attached(page)).to_contain_text("invoice-77.md")
    await source.select_option(label="Handbook")
    await expect(page.get_by_text("Answers come from this file and from the source below.")).to_be_visible()
    async with page.expect_request(QUERY) as sent:
        await visitor.ask(HOTEL)
    assert (await sent.value).post_data_json["only_attachments"] is False
    await expect(turns.last).to_contain_text("185 euro")

    await page.get_by_role("button", name="Remove invoice-77.md").click()
    await expect(_attached(page)).to_have_count(0)
    await expect(page.get_by_label("Your question")).to_be_focused()
    await expect(page.get_by_role("status").filter(has_text="Answers no longer use")).to_be_visible()
    async with page.expect_request(QUERY) as sent:
        await visitor.ask(HOTEL)
    assert "attachments" not in (await sent.value).post_data_json
    await page.reload()
    await expect(turns.first).to_contain_text("268 EUR")
    await expect(_attached(page)).to_have_count(0)

    assert base["visibility"] == "private"
    for path in (base["id"], f"{base['id']}/documents", f"{base['id']}/documents/{invoice['document_id']}"):
        assert (await bob.get(f"{BASES}/{path}")).status == 404


async def test_a_shared_knowledge_base_takes_none(site: Running, visitor: Visitor) -> None:
    """Files go into a new one if others see the one there; each conversation has its own."""
    ana = await site.user(role="admin")
    await knowledge_base(ana)
    shared = await knowledge_base(ana, NAME, visibility="shared")
    page = await visitor.arrive(ana)
    await expect(page.get_by_role("button", name="Attach files")).to_be_visible()
    await page.evaluate(DROP, INVOICE)
    await expect(_attached(page)).to_contain_text("dropped.md")
    await expect(_attached(page)).to_contain_text("Has been read")
    await visitor.ask(TOTAL)
    await expect(page.locator(".turn")).to_contain_text("268 EUR")
    assert [
        one["filename"] for one in (await ana.get(f"{BASES}/{shared['id']}/documents")).json()["items"]
    ] == ["handbook.md"]
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    await expect(_attached(page)).to_have_count(0)
    await page.get_by_label("Your question").evaluate(PASTE, INVOICE)  # the same bytes
    await expect(_attached(page)).to_have_count(1)
    await expect(_attached(page)).to_contain_text("Has been read")
    items = (await ana.get(f"{BASES}?owner_id={ana.user['id']}")).json()["items"]
    (base,) = [one for one in items if one["name"] == NAME and one["id"] != shared["id"]]
    (document,) = (await ana.get(f"{BASES}/{base['id']}/documents")).json()["items"]
    assert base["visibility"] == "private" and len(document["metadata"]["tags"]) == 2
    # The other conversation has it still.
    await page.get_by_role("button", name="Remove pasted.md").click()
    await expect(_attached(page)).to_have_count(0)
    await page.go_back()
    await expect(_attached(page)).to_contain_text("dropped.md")


@pytest.mark.parametrize("name", TRANSLATED)
async def test_a_device_in_another_language_has_made_the_knowledge_base(
    site: Running, visitor: Visitor, name: str
) -> None:
    ana, _, _ = await colleagues(site)
    base = (await ana.post(BASES, json={"name": name})).json()["id"]
    page = await visitor.arrive(ana)
    await _attach(page, _file("invoice-77.md", INVOICE))
    await expect(_attached(page)).to_contain_text("Has been read")
    assert (await ana.get(f"{BASES}/{base}/documents")).json()["total"] == 1
    assert (await ana.get(f"{BASES}?owner_id={ana.user['id']}")).json()["total"] == 1


async def test_two_first_uploads_at_once_make_one_knowledge_base(site: Running, visitor: Visitor) -> None:
    ana, _, _ = await colleagues(site)
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    again = asyncio.Event()

    async def slowly(route: Route) -> None:
        if route.request.method == "POST":
            await again.wait()
        await route.continue_()

    await page.route(f"**{BASES}", slowly)
    async with page.expect_request(lambda request: request.method == "POST" and request.url.endswith(BASES)):
        await _attach(page, _file("invoice-77.md", INVOICE))
    await _attach(page, _file("lines.txt", LINES[:200]))
    await expect(_attached(page)).to_have_count(2)
    again.set()
    await expect(_attached(page).get_by_text("Has been read")).to_have_count(2)
    _, documents = await _files_of(ana)
    assert len(documents) == 2


async def test_a_question_waits(site: Running, visitor: Visitor, gate: GatedModel) -> None:
    """Until the file has been read, unless what has been read so far is enough."""
    gate.stop()
    ana = await site.user()
    await knowledge_base(ana)
    body = {"name": NAME, "embedding_model": GATED, "chunk_size": 100, "chunk_overlap": 0}
    assert (await ana.post(BASES, json=body)).status == 200
    page = await visitor.arrive(ana)
    await _attach(page, _file("short.md", INVOICE))
    await expect(_attached(page)).to_contain_text("Reading …")
    await visitor.ask(TOTAL)
    waiting = page.get_by_role("status").filter(has_text="Your question waits until the file has been read.")
    await expect(waiting).to_be_visible()
    await expect(waiting.get_by_role("button", name="Ask now")).to_have_count(0)
    await waiting.get_by_role("button", name="Cancel").click()
    await expect(waiting).to_have_count(0)
    await expect(page.get_by_label("Your question")).to_have_value(TOTAL)
    await page.get_by_role("button", name="Ask", exact=True).click()
    await expect(waiting).to_be_visible()
    gate.let(1)
    await expect(page.locator(".turn")).to_contain_text("268 EUR")
    await expect(page.get_by_label("Your question")).to_have_value("")

    await _attach(page, _file("long.txt", f"{LINES}\nThe walrus in Tromsø eats 25 kilos of mussels a day.\n"))
    await expect(_attached(page).last).to_contain_text("passages can be asked")
    await visitor.ask("How many kilos of mussels does the walrus in Tromsø eat?")
    async with page.expect_request(QUERY):
        await page.get_by_role("button", name="Ask now").click()
    await expect(_attached(page).last).to_contain_text("passages can be asked")
    gate.let(1000)
    await expect(page.locator(".turn").last).to_contain_text("25 kilos")
    await expect(_attached(page).last).to_contain_text("Has been read")
    gate.stop()


async def test_a_file_that_can_not_be_read(site: Running, visitor: Visitor) -> None:
    """What is wrong and how to mend it is said beside the file; the question stays until it is removed."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await _attach(
        page,
        _file("cut.docx", b"\x00\x01\x02\xff"),
        _file("empty.txt", b""),
        _file("cut.pdf", b"%PDF-1.7\nnothing\n"),
    )
    alerts = _attached(page).get_by_role("alert")
    await expect(alerts).to_have_count(3)
    await expect(_attached(page).filter(has_text="cut.docx")).to_contain_text("The file is damaged")
    await expect(_attached(page).filter(has_text="empty.txt")).to_contain_text("The file is empty.")
    await expect(_attached(page).filter(has_text="cut.pdf")).to_contain_text("damaged")
    await visitor.ask(HOTEL)
    await expect(page.get_by_text("A file could not be attached. Remove it, then ask.")).to_be_visible()
    await expect(page.locator(".turn")).to_have_count(0)
    await expect(page.get_by_label("Your question")).to_have_value(HOTEL)
    for name in ("cut.docx", "empty.txt", "cut.pdf"):
        await page.get_by_role("button", name=f"Remove {name}").click()
    await expect(_attached(page)).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(page.locator(".turn")).to_contain_text("185 euro")
    # Nothing is left of files that no answer can have quoted.
    assert (await _files_of(ana))[1] == []


async def test_on_a_phone_by_keyboard(site: Running, visitor: Visitor) -> None:
    """A long name widens nothing, and every button is reached and named."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await page.set_viewport_size({"width": 360, "height": 740})
    name = f"{'a-very-long-name-' * 12}.md"
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Attach files").focus()
        await page.keyboard.press("Enter")
    await (await chooser.value).set_files(_file(name, INVOICE))
    await expect(_attached(page)).to_contain_text("Has been read")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360
    await page.get_by_role("button", name=f"Remove {name}").focus()
    await page.keyboard.press("Enter")
    await expect(_attached(page)).to_have_count(0)
    await expect(page.get_by_label("Your question")).to_be_focused()


async def test_removed_in_one_of_two_tabs(site: Running, visitor: Visitor) -> None:
    """The conversation in the other tab keeps the file, as does one whose answers quote it."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await _attach(page, _file("invoice-77.md", INVOICE))
    await expect(_attached(page)).to_contain_text("Has been read")
    other = await visitor.new_tab()
    await other.goto(f"{site.url}/app/")
    await _attach(other, _file("invoice-77.md", INVOICE))
    await expect(_attached(other)).to_contain_text("Has been read")
    await page.get_by_role("button", name="Remove invoice-77.md").click()
    await expect(page.get_by_role("status").filter(has_text="Answers no longer use")).to_be_visible()
    (invoice,) = (await _files_of(ana))[1]
    assert len(invoice["metadata"]["tags"]) == 1

    await other.get_by_label("Your question").fill(TOTAL)
    await other.keyboard.press("Enter")
    await expect(other.locator(".turn")).to_contain_text("268 EUR")
    await other.get_by_role("button", name="Remove invoice-77.md").click()
    await expect(other.get_by_role("status").filter(has_text="Answers no longer use")).to_be_visible()
    async with other.expect_request(QUERY) as sent:
        await other.get_by_role("button", name="Ask again").click()
    assert "attachments" not in (await sent.value).post_data_json
    await _attach(page, _file("invoice-77.md", INVOICE))
    await expect(_attached(page)).to_contain_text("Has been read")
    await page.get_by_role("button", name="Remove invoice-77.md").click()
    await expect(page.get_by_role("status").filter(has_text="Answers no longer use").last).to_be_visible()
    assert len((await _files_of(ana))[1]) == 1
    await other.close()


async def test_removed_before_it_has_been_read(site: Running, visitor: Visitor, gate: GatedModel) -> None:
    """A question that waits for it stays in its box; nothing of the file is left, wherever it was removed."""
    gate.stop()
    ana = await site.user()
    await knowledge_base(ana)
    body = {"name": NAME, "embedding_model": GATED, "chunk_size": 100, "chunk_overlap": 0}
    base = (await ana.post(BASES, json=body)).json()["id"]
    page = await visitor.arrive(ana)
    waiting = page.get_by_role("status").filter(has_text="Your question waits")
    for is_here in (True, False):
        await _attach(page, _file("short.md", INVOICE))
        await expect(_attached(page)).to_contain_text("Reading …")
        await visitor.ask(TOTAL)
        await expect(waiting).to_be_visible()
        if is_here:
            await page.get_by_role("button", name="Remove short.md").click()
        else:
            (document,) = (await ana.get(f"{BASES}/{base}/documents")).json()["items"]
            await ana.delete(f"{BASES}/{base}/documents/{document['document_id']}")
        await expect(_attached(page)).to_have_count(0)
        await expect(page.get_by_label("Your question")).to_have_value(TOTAL)
        await expect(page.locator(".turn")).to_have_count(0)
        gate.stop()

    sending = asyncio.Event()

    async def hold(route: Route) -> None:
        await sending.wait()
        await route.continue_()

    await page.route("**/upload", hold)
    await _attach(page, _file("short.md", INVOICE))
    await expect(_attached(page)).to_contain_text("Sending …")
    await page.get_by_role("button", name="Remove short.md").click()
    async with page.expect_response(lambda response: response.request.method == "DELETE"):
        sending.set()
    await expect(_attached(page)).to_have_count(0)
    assert (await ana.get(f"{BASES}/{base}/documents")).json()["items"] == []
    gate.stop()
