"""Uploads that add nothing, documents on a phone, and texts that run from right to left."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import FilePayload, Route, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import HANDBOOK, SETTLED, Visitor, knowledge_base
from tests.fakes.browser import ARABIC, FROM_THE_RIGHT

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOX = "input[type=file]"


def _file(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "", "buffer": content}


async def test_files_that_are_here_already(site: Running, visitor: Visitor) -> None:
    """The same bytes are the same document: its name is said, and the word goes when it is dismissed."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    again = [_file("handbook.md", HANDBOOK.encode()), _file("copy.md", HANDBOOK.encode())]
    await page.locator(BOX).set_input_files(again)
    notice = page.get_by_role("status").filter(has_text="2 files are here already")
    await expect(notice).to_contain_text("copy.md (as handbook.md)")
    await expect(page.get_by_text("One document", exact=True)).to_be_visible()
    await notice.get_by_role("button", name="Dismiss").click()
    await expect(notice).to_have_count(0)
    # The server gives it another name, without the blanks around it.
    await page.locator(BOX).set_input_files(_file(" news .md ", b"# News\n\nThe ferry sails at nine.\n"))
    await expect(page.get_by_role("link", name="news .md")).to_be_visible()
    await expect(page.get_by_text("here already")).to_have_count(0)


async def test_a_file_whose_name_is_taken(site: Running, visitor: Visitor) -> None:
    """People say whether it replaces the document; what was replaced can be opened and restored."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    newer = _file("handbook.md", b"# Travel handbook\n\nA hotel may cost up to 190 EUR a night.\n")
    await page.locator(BOX).set_input_files(newer)
    notice = page.get_by_role("status").filter(has_text="A document with this name is already here")
    await notice.wait_for()
    async with page.expect_response("**/upload") as sent:
        await notice.get_by_role("button", name="Replace").click()
    made = (await (await sent.value).json())["document_id"]
    await expect(notice).to_have_count(0)
    link = page.get_by_role("link", name="handbook.md")
    await expect(link).to_have_count(1)
    await expect(link).to_have_attribute("href", re.compile(made))
    await link.click()
    preview = page.frame_locator("iframe")
    await expect(preview.get_by_text("190 EUR")).to_be_visible()
    await page.get_by_role("link", name="Versions").click()
    await page.get_by_role("button", name="Compare with version 1").click()
    await expect(page.get_by_role("insertion").filter(has_text="190 EUR")).to_be_visible()
    await page.get_by_role("link", name="handbook.md").nth(1).click()
    earlier = page.get_by_role("status").filter(has_text="This is an earlier version (1)")
    await expect(preview.get_by_text("185 euro")).to_be_visible()
    await earlier.get_by_role("button", name="Restore this version").click()
    await expect(preview.get_by_text("185 euro")).to_be_visible()
    await expect(earlier).to_have_count(0)
    await page.goto(f"{site.url}/app/documents/{base['id']}")
    await page.locator(BOX).set_input_files(newer)
    await notice.get_by_role("button", name="Keep both").click()
    await expect(page.get_by_text("2 documents", exact=True)).to_be_visible()


async def test_files_that_are_never_taken(site: Running, visitor: Visitor) -> None:
    """What the server would refuse again can't be tried again."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.locator(BOX).set_input_files([_file("empty.txt", b""), _file("cut.docx", b"\x00\x01\x02\xff")])
    cards = page.get_by_role("region", name="Uploads").get_by_role("alert")
    await expect(cards.filter(has_text="empty.txt")).to_contain_text("The file is empty.")
    await expect(cards.filter(has_text="cut.docx")).to_contain_text("The file is damaged, or its type")
    await expect(cards.get_by_role("button", name="Try again")).to_have_count(0)


async def _holding_uploads(visitor: Visitor) -> asyncio.Event:
    """Hold every upload back until the event is set."""
    go_on = asyncio.Event()

    async def wait(route: Route) -> None:
        await go_on.wait()
        await route.continue_()

    await visitor.context.route("**/upload", wait)
    return go_on


async def test_a_file_that_goes_away(site: Running, visitor: Visitor, tmp_path: Path) -> None:
    """A file that is deleted while it waits to be sent is said to be gone, not tried for ever."""
    ana = await site.user()
    base = await knowledge_base(ana)
    files = [tmp_path / f"{n}.md" for n in range(5)]
    for file in files:
        file.write_text(f"# Note {file.stem}\n", encoding="utf-8")
    go_on = await _holding_uploads(visitor)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    async with page.expect_request("**/upload"):
        await page.locator(BOX).set_input_files(files)
    files[-1].unlink()
    go_on.set()
    card = page.get_by_role("region", name="Uploads").get_by_role("alert")
    await expect(card).to_contain_text("changed, moved or deleted after it was chosen")
    await expect(card.get_by_role("button", name="Try again")).to_have_count(0)
    await expect(page.get_by_role("link", name="3.md")).to_be_visible()


async def test_files_of_the_account_before(site: Running, visitor: Visitor) -> None:
    """Whoever signs in next in this tab neither sees nor sends what another account chose."""
    ana, bob = await site.user(), await site.user(role="admin")
    base = await knowledge_base(ana)
    await visitor.context.route("**/upload", lambda route: route.fulfill(status=500, json={"detail": "Full"}))
    page = await visitor.sign_in(ana, f"/documents/{base['id']}")
    uploads = page.get_by_role("region", name="Uploads")
    await page.locator(BOX).set_input_files(_file("salaries.md", b"# Salaries\n"))
    await expect(uploads.get_by_role("alert")).to_contain_text("salaries.md")
    await page.get_by_role("button", name=ana.user["username"]).click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await page.get_by_label("Username").fill(bob.user["username"])
    await page.get_by_label("Password").fill(bob.password)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await visitor.go(f"/documents/{base['id']}")
    await expect(page.get_by_role("link", name="handbook.md")).to_be_visible()
    await expect(uploads).to_have_count(0)


@pytest.mark.long
async def test_a_file_of_the_account_before_in_an_outage(site: Running, visitor: Visitor) -> None:
    """What waits for the server when somebody else signs in is not sent in their name once it is back."""
    ana, bob = await site.user(), await site.user(role="admin")
    base = await knowledge_base(ana)
    is_back = asyncio.Event()
    sent = []

    async def lose(route: Route) -> None:
        sent.append(route.request.url)
        await route.abort()

    async def wait(route: Route) -> None:
        await is_back.wait()
        await route.continue_()

    await visitor.context.route("**/upload", lose)
    await visitor.context.route("**/livez", wait)
    page = await visitor.sign_in(ana, f"/documents/{base['id']}")
    async with page.expect_request("**/livez"):
        await page.locator(BOX).set_input_files(_file("salaries.md", b"# Salaries\n"))
    await page.get_by_role("button", name=ana.user["username"]).click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await page.get_by_label("Username").fill(bob.user["username"])
    await page.get_by_label("Password").fill(bob.password)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.locator(".frame").wait_for()
    async with page.expect_event("requestfinished", lambda request: request.url.endswith("/livez")):
        is_back.set()
    await page.evaluate(SETTLED)
    await visitor.go(f"/documents/{base['id']}")
    assert len(sent) == 1


async def test_a_long_error_on_a_phone(site: Running, visitor: Visitor) -> None:
    """Its text is not squeezed beside its buttons, and its lines stay lines."""
    ana = await site.user()
    base = await knowledge_base(ana)
    reason = "The disk of the server is full.\n" + "Ask an administrator to free some space. " * 4
    await visitor.context.route(
        "**/upload", lambda route: route.fulfill(status=507, json={"detail": reason, "code": "full"})
    )
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.locator(BOX).set_input_files(_file("news.md", b"# News\n"))
    card = page.get_by_role("region", name="Uploads").get_by_role("alert")
    await expect(card.get_by_role("button", name="Try again")).to_be_visible()
    text, whole = await card.locator(".notice-text").bounding_box(), await card.bounding_box()
    assert text and whole and text["width"] > 0.8 * whole["width"]
    assert (await card.inner_text()).splitlines()[1] == "The disk of the server is full."


async def test_a_document_that_failed_on_a_phone(site: Running, visitor: Visitor) -> None:
    """Its name can be read beside what can be done."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.locator(BOX).set_input_files(_file("harbour.json", b'{"a": [1,2'))
    row = page.locator(".document", has_text="harbour.json")
    await expect(row.get_by_role("button", name="Try again")).to_be_visible()
    name = row.get_by_role("link", name="harbour.json")
    assert await name.evaluate("(link) => link.scrollWidth <= link.clientWidth")


async def test_deleting_on_a_phone(site: Running, visitor: Visitor) -> None:
    """The menu is on the screen; the buttons of the question whether to delete say what they do."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.set_viewport_size({"width": 360, "height": 740})
    await page.get_by_role("button", name="More", exact=True).click()
    menu = await page.get_by_role("menu").bounding_box()
    assert menu and menu["x"] >= 0 and menu["x"] + menu["width"] <= 360
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="More on handbook.md").click()
    await page.get_by_role("menuitem", name="Delete").click()
    for name in ("Cancel", "Delete"):
        text = page.get_by_role("dialog").get_by_role("button", name=name).get_by_text(name)
        box = await text.bounding_box()
        assert box and box["width"] > 20


async def test_texts_from_right_to_left(site: Running, visitor: Visitor) -> None:
    """A paragraph runs as its first letter does, in a document as in a question; so does a name."""
    ana = await site.user()
    base = await knowledge_base(ana, ARABIC, ARABIC, description=ARABIC)
    [document] = (await ana.get(f"/v1/rag/knowledge-bases/{base['id']}/documents")).json()["items"]
    page = await visitor.arrive(ana, f"/documents/{base['id']}/{document['document_id']}")
    assert await page.frame_locator("iframe").locator("body").evaluate(FROM_THE_RIGHT)
    await page.get_by_role("button", name="Text").click()
    assert await page.locator(".document-text").evaluate(FROM_THE_RIGHT)
    await visitor.go(f"/documents/{base['id']}")
    for name in ("h1", ".head p"):
        assert await page.locator(f"main {name}").evaluate(FROM_THE_RIGHT)
    await visitor.open(f"/?base={base['id']}")
    await visitor.ask(ARABIC)
    assert await page.locator(".question").evaluate(FROM_THE_RIGHT)


# An event of the browser with a file, as programs hand it over; some put a text beside it.
HAND_OVER = """(box, [kind, name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([`# ${name}`], name));
  if (text) data.setData("text/plain", text);
  const options = { bubbles: true, cancelable: true, dataTransfer: data, clipboardData: data };
  const Kind = kind === "drop" ? DragEvent : ClipboardEvent;
  return box.dispatchEvent(new Kind(kind, options));
}"""


# A dropped folder, with what the system left in it, an empty file and one that can't be read.
FOLDER = """(names) => {
  const content = (name) => (name.startsWith("empty") ? [] : [name]);
  const take = (name, give, fail) => (name === "locked.md" ? fail : give)(new File(content(name), name));
  const file = (name) => {
    const fullPath = `/notes/${name}`;
    return { isFile: true, name, fullPath, file: (give, fail) => take(name, give, fail) };
  };
  const batches = [names.map(file), []];
  const folder = { name: "notes", createReader: () => ({ readEntries: (give) => give(batches.shift()) }) };
  const transfer = { types: ["Files"], items: [{ webkitGetAsEntry: () => folder }] };
  const event = new Event("drop", { cancelable: true });
  Object.defineProperty(event, "dataTransfer", { value: transfer });
  dispatchEvent(event);
}"""


@pytest.mark.long
async def test_a_folder_with_all_sorts(site: Running, visitor: Visitor, tmp_path: Path) -> None:
    """Readable files are sent, the others are named, each reason once; hidden system files are not sent.
    A folder can be chosen, too, with the keyboard alone.
    """
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await page.get_by_role("link", name="handbook.md").wait_for()
    names = ["fine.md", "locked.md", "empty.md", "empty.txt", ".DS_Store", "Thumbs.db", "~$fine.docx"]
    await page.evaluate(FOLDER, names)
    await expect(page.get_by_text("Could not be read: locked.md")).to_be_visible()
    card = page.get_by_role("region", name="Uploads").get_by_role("alert")
    await expect(card).to_contain_text("2 files were not added")
    await expect(card).to_contain_text("empty.md, empty.txt")
    await card.get_by_role("button", name="Dismiss").click()
    await expect(page.get_by_role("link", name="fine.md")).to_be_visible()
    await expect(page.get_by_role("region", name="Uploads")).to_have_count(0)
    await expect(page.get_by_text("2 documents", exact=True)).to_be_visible()
    inner = tmp_path / "more" / "inner"
    for path in (inner / "chosen.md", inner / ".git" / "config.md", inner / "Thumbs.db"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    async with page.expect_file_chooser() as opened:
        await page.get_by_role("button", name="Upload a folder").press("Enter")
    await (await opened.value).set_files(tmp_path / "more")
    await expect(page.get_by_role("link", name="chosen.md")).to_be_visible()
    await expect(page.get_by_text("3 documents", exact=True)).to_be_visible()


async def test_files_for_a_question(site: Running, visitor: Visitor) -> None:
    """A file dropped or pasted where one asks is attached; the browser does not open it."""
    ana = await site.user()
    base = await knowledge_base(ana)
    page = await visitor.arrive(ana, f"/?base={base['id']}")
    box = page.get_by_label("Your question")
    await box.fill("What is in it?")
    for kind, name, text in (
        ("drop", "dropped.md", ""),
        ("paste", "pasted.md", ""),
        ("paste", "from a Mac.md", "from a Mac.md"),
        ("paste", "from a folder.md", "/home/ana/from a folder.md\n"),
    ):
        assert not await box.evaluate(HAND_OVER, [kind, name, text])
        await expect(page.get_by_role("button", name=f"Remove {name}")).to_be_visible()
        await expect(box).to_have_value("What is in it?")
    assert await box.evaluate(HAND_OVER, ["paste", "picture of a text.md", "text"])  # the browser's to insert
    await expect(box).to_be_visible()


@pytest.mark.long
async def test_first_files_in_two_drops(site: Running, visitor: Visitor) -> None:
    """What is dropped while the first knowledge base is being made goes into it: no second one is made."""
    go_on = asyncio.Event()
    made = []

    async def answer(route: Route) -> None:
        if route.request.method == "GET":
            await route.fulfill(json={"items": [], "total": 0, "limit": 500, "offset": 0})
            return
        made.append(route.request.url)
        await go_on.wait()
        await route.continue_()

    await visitor.context.route(re.compile(r"/v1/rag/knowledge-bases(\?.*)?$"), answer)
    page = await visitor.arrive(await site.user())
    title = page.get_by_role("heading", name="Ask your own documents")
    for name in ("first.md", "second.md"):
        await title.evaluate(HAND_OVER, ["drop", name, ""])
        await page.evaluate(SETTLED)
    go_on.set()
    for name in ("first.md", "second.md"):
        await expect(page.get_by_role("link", name=name)).to_be_visible()
    assert len(made) == 1


async def test_a_session_that_ends_during_an_upload(site: Running, visitor: Visitor) -> None:
    """Whoever signs in again over the page sends the same files; none is lost or sent twice."""
    ana = await site.user()
    base = await knowledge_base(ana)
    go_on = await _holding_uploads(visitor)
    page = await visitor.sign_in(ana, f"/documents/{base['id']}")
    async with page.expect_request("**/upload"):
        await page.locator(BOX).set_input_files(
            [_file(f"{n}.md", f"# Note {n}\n".encode()) for n in range(5)]
        )
    await ana.post("/v1/auth/logout")
    go_on.set()
    again = page.get_by_role("dialog", name="Your session has ended")
    await again.get_by_label("Password").fill(ana.password)
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("6 documents", exact=True)).to_be_visible()
    await expect(page.get_by_role("region", name="Uploads")).to_have_count(0)


async def test_reading_is_done(site: Running, visitor: Visitor) -> None:
    """A hidden tab says in its title that what was added has been read, and later on the page."""
    ana = await site.user()
    base = (await knowledge_base(ana))["id"]
    page = await visitor.arrive(ana, f"/documents/{base}")
    hide = "(is) => { Object.defineProperty(document, 'hidden', { value: is, configurable: true }); "
    hide += "document.dispatchEvent(new Event('visibilitychange')); }"
    await page.evaluate(hide, True)
    await page.locator(BOX).set_input_files(_file("ferry.md", b"# Ferry\n\nThe ferry sails at nine.\n"))
    await expect(page).to_have_title(re.compile("^✓ Has been read"))
    await page.evaluate(hide, False)
    await expect(page.get_by_text("“ferry.md” has been read")).to_be_visible()
    await expect(page).not_to_have_title(re.compile("Has been read"))
