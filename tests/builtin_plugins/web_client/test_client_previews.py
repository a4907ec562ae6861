"""Documents as they look: the place that is marked, hostile files, files that can't be shown."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from email.message import EmailMessage

import docx
import openpyxl
import pytest
from playwright.async_api import FrameLocator, Page, Request, expect
from pptx import Presentation

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ingest
from tests.builtin_plugins.web_client.visits import Visitor, completed, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILLER = " ".join(f"Boat {n} leaves harbour {n * 7} at {n} o'clock with {n * 13} crates." for n in range(30))
ANSWER = "A hotel in Bergen may cost up to 215 euro per night."
QUESTION = "How much may a hotel in Bergen cost per night?"
OUTSIDE = "http://outside.example"
TAKEN = "parent.document.title = 'taken'"
HOSTILE = f"""<!doctype html><html><head><title>Hotels</title>
<meta http-equiv="refresh" content="0;url={OUTSIDE}/">
<style>h1 {{ color: teal }} @import url({OUTSIDE}/a.css); p {{ background: url({OUTSIDE}/b) }}</style>
<script>{TAKEN}</script></head><body onload="{TAKEN}"><h1>Hotels</h1>
<p style="position: fixed; color: red; background-image: url({OUTSIDE}/c)">{ANSWER}</p>
<iframe src="{OUTSIDE}/d"></iframe><a href="javascript:{TAKEN}">more</a><svg><script>{TAKEN}</script></svg>
<form action="{OUTSIDE}/e"><button>Go</button></form><img src="{OUTSIDE}/f.png"></body></html>"""


def _word() -> bytes:
    document = docx.Document()
    document.add_heading("Travel", 1)
    document.add_paragraph(FILLER)
    document.add_paragraph(ANSWER)
    return _saved(document)


def _slides() -> bytes:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Hotels"
    slide.placeholders[1].text = ANSWER
    return _saved(deck)


def _workbook() -> bytes:
    book = openpyxl.Workbook()
    for row in (("City", "Limit of a hotel per night"), ("Oslo", 185), ("Bergen", 215)):
        book.active.append(row)
    return _saved(book)


def _mail() -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Hotels", "ana@example.org", "ben@example.org"
    mail.set_content(ANSWER)
    return bytes(mail)


def _markdown() -> bytes:
    return f"# Travel\n\n{FILLER}\n\n- **{ANSWER}**\n".encode()


def _rich_text() -> bytes:
    return rf"{{\rtf1\ansi {FILLER}\par {ANSWER}\par}}".encode()


def _saved(document: object) -> bytes:
    file = io.BytesIO()
    document.save(file)  # type: ignore[attr-defined]
    return file.getvalue()


MAKERS = {"docx": _word, "pptx": _slides, "eml": _mail, "md": _markdown, "rtf": _rich_text}


async def _documents(actor: Actor, *files: tuple[str, bytes]) -> tuple[str, list[str]]:
    """A knowledge base, and the ids of these files in it."""
    base = (await knowledge_base(actor, text="Boats moor in the harbour of Senja.\n"))["id"]
    path = f"/v1/rag/knowledge-bases/{base}"
    ids = []
    for name, content in files:
        sent = await actor.upload(f"{path}/upload", name, content, "application/octet-stream")
        ids.append(sent.json()["document_id"])
        await completed(actor, f"{path}/documents/{ids[-1]}")
    return base, ids


def _shown(page: Page, name: str) -> FrameLocator:
    return page.frame_locator(f'iframe[title="{name}"]')


@pytest.mark.parametrize("kind", ["docx", "pptx", "eml", "md", "rtf"])
async def test_the_cited_sentence_in_its_place(site: Running, visitor: Visitor, kind: str) -> None:
    """A citation opens the file as it looks, with the sentence marked and in sight; so does its own page."""
    ana = await site.user()
    name = f"travel.{kind}"
    await _documents(ana, (name, MAKERS[kind]()))
    page = await visitor.arrive(ana)
    await visitor.ask(QUESTION)
    await page.get_by_role("button", name=re.compile(rf"^Source \d+: {name}")).first.click()
    marked = _shown(page, name).locator("mark")
    await expect(marked.first).to_be_in_viewport()
    text = " ".join(await marked.all_text_contents())
    assert ANSWER.rstrip(".") in text and "Boat 0" not in text
    await page.get_by_role("link", name="Open").last.click()
    await expect(_shown(page, name).locator("mark").first).to_be_in_viewport()


async def test_a_row_of_a_workbook(site: Running, visitor: Visitor) -> None:
    """A row is marked cell by cell, with the letters and numbers of the sheet around it."""
    ana = await site.user()
    base, (document,) = await _documents(ana, ("hotels.xlsx", _workbook()))
    path = f"/v1/rag/knowledge-bases/{base}/documents/{document}/chunks"
    (passage,) = [one for one in (await ana.get(path)).json()["items"] if "Bergen" in one["text"]]
    row = passage["text"].index("Bergen") + passage["char_start"]
    page = await visitor.arrive(ana, f"/documents/{base}/{document}?from={row}&to={row + len('Bergen 215')}")
    await expect(_shown(page, "hotels.xlsx").locator("mark")).to_have_text(["Bergen", "215"])
    await page.get_by_role("button", name="Text").click()
    await expect(page.locator(".document-text mark")).to_have_text(re.compile(r"Bergen\s+215"))


ODD_LETTERS = [
    unicodedata.normalize("NFD", "Die Größe des Cafés in Łódź"),  # accents as characters of their own
    unicodedata.normalize("NFD", "한국어 문서의 첫 문장"),
    "Ο ΔΡΟΜΟΣ ΤΗΣ ΘΑΛΑΣΣΑΣ",  # its last letter is another one in lower case
    "İstanbul’da ﬁyat ½ 𝐁𝐞𝐫𝐠𝐞𝐧",  # letters that are several, or of another plane
]


@pytest.mark.parametrize("text", ODD_LETTERS)
async def test_letters_of_many_kinds(site: Running, visitor: Visitor, text: str) -> None:
    """They are marked with their accents, and nothing else is."""
    ana = await site.user()
    base, (document,) = await _documents(
        ana, ("odd.html", f"<p>🚢🚢 {FILLER}</p><p>{text}</p><p>End</p>".encode())
    )
    chunks = (await ana.get(f"/v1/rag/knowledge-bases/{base}/documents/{document}/chunks")).json()["items"]
    (begin,) = {one["char_start"] + one["text"].index(text) for one in chunks if text in one["text"]}
    page = await visitor.arrive(ana, f"/documents/{base}/{document}?from={begin}&to={begin + len(text)}")
    await expect(_shown(page, "odd.html").locator("mark")).to_have_text([text])
    assert await _shown(page, "odd.html").locator("mark").text_content() == text
    await page.get_by_role("button", name="Text").click()
    await expect(page.locator(".document-text mark")).to_have_text(text)


async def test_a_hostile_web_page(site: Running, visitor: Visitor) -> None:
    """Of a page with scripts, forms and addresses, only what it shows is left, and nothing is requested."""
    ana = await site.user()
    base, (document,) = await _documents(ana, ("hotels.html", HOSTILE.encode()))
    page = await visitor.arrive(ana)
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("request", note)
    await visitor.go(f"/documents/{base}/{document}")
    shown = _shown(page, "hotels.html")
    await expect(shown.get_by_role("heading", name="Hotels")).to_have_css("color", "rgb(0, 128, 128)")
    await expect(shown.get_by_text(ANSWER)).to_have_css("position", "static")
    await expect(shown.locator("script, iframe, form, a[href], svg, meta[http-equiv]")).to_have_count(0)
    assert not [url for url in asked if OUTSIDE in url]
    assert "taken" not in await page.title()


async def test_what_cannot_be_shown(site: Running, visitor: Visitor) -> None:
    """A file that can't be shown says so, and its text is there."""
    ana = await site.user()
    base, (document,) = await _documents(ana, ("travel.docx", _word()))
    page = await visitor.arrive(ana)
    said = "This file can’t be shown as it looks: it is too large. Its text can be read."
    refusal = json.dumps({"detail": said, "code": "no_preview"})
    await page.route(
        "**/preview", lambda route: route.fulfill(status=422, content_type="application/json", body=refusal)
    )
    await visitor.go(f"/documents/{base}/{document}")
    await expect(page.get_by_text("it is too large")).to_be_visible()
    await expect(page.locator(".document-text")).to_contain_text(ANSWER)


async def test_tables_have_sheets(site: Running, visitor: Visitor) -> None:
    """A workbook's length and the places in it are sheets: in lists, on its page, and beside an answer."""
    ana = await site.user()
    base = await knowledge_base(ana)
    document = await ingest(site, ana, base["id"], "limits.xlsx", _workbook())
    page = await visitor.arrive(ana, f"/documents/{base['id']}")
    await expect(page.locator(".document", has_text="limits.xlsx")).to_contain_text("one sheet")
    await visitor.go(f"/documents/{base['id']}/{document['document_id']}?tab=passages")
    await expect(page.locator(".head, header").filter(has_text="limits.xlsx").first).to_contain_text(
        "one sheet"
    )
    await expect(page.locator("li.panel").first).to_contain_text("sheet 1")
    await visitor.go("/")
    await visitor.ask("What is the limit of a hotel per night in Bergen?")
    await expect(page.get_by_text(re.compile(r"limits\.xlsx.*sheet 1")).first).to_be_visible()
    await expect(page.get_by_text(re.compile(r"limits\.xlsx.*page 1"))).to_have_count(0)
