"""EPUB, OpenDocument, RTF and e-mail: told apart by content, what is kept, and how broken ones end."""

from __future__ import annotations

from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest

from builtin_plugins.documents.archives.archive import MAX_UNPACKED_BYTES
from builtin_plugins.documents.blocks import Block, UnparsableDocument
from builtin_plugins.documents.cleaning import clean
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.mail import from_eml
from builtin_plugins.documents.markup import from_epub
from builtin_plugins.documents.office import from_odt, from_rtf
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from kernel.testing import Running
from tests.builtin_plugins.documents.sample_documents import (
    add_member,
    book,
    mail,
    open_document,
    package,
    prose,
    rich_text,
)
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, path_of, somebody

ODT = "application/vnd.oasis.opendocument.text"
LAUGHS = (
    '<!DOCTYPE bomb [<!ENTITY l0 "lol">'
    + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    + "]>"
)


def texts(blocks: object) -> list[str]:
    assert isinstance(blocks, list)
    return [text for block in blocks if isinstance(block, Block) and (text := clean(block.text))]


def write(folder: Path, data: bytes) -> Path:
    path = folder / "blob"
    path.write_bytes(data)
    return path


def refusal(parse: Callable[[], object]) -> str:
    """The code that a document ends with."""
    with pytest.raises(UnparsableDocument) as caught:
        parse()
    return caught.value.code


class TestDetection:
    def test_by_content(self, tmp_path: Path) -> None:
        """Whatever they are called, each is recognized, and exactly one parser reads it."""
        found = {
            detect_media_type(book(tmp_path / "a", ["<p>x</p>"]), "a.zip"),
            detect_media_type(open_document(tmp_path / "b", "<text:p>x</text:p>"), "b.docx"),
            detect_media_type(write(tmp_path, rich_text("x")), "c.txt"),
            detect_media_type(write(tmp_path, mail("x")), "d.txt"),
        }
        assert found == {"application/epub+zip", ODT, "application/rtf", "message/rfc822"}
        for kind in found:
            assert sum(kind in parser.media_types for parser in BUILTIN_PARSERS) == 1

    def test_a_promise_is_not_enough(self, tmp_path: Path) -> None:
        for kind in ("application/epub+zip", ODT, "application/zip"):
            assert detect_media_type(package(tmp_path / "z", {"mimetype": kind, "a.txt": "x"})) is None

    @pytest.mark.parametrize(
        ("text", "name", "expected"),
        [
            ("From: Ann\nTo: Bob\nSubject: Tea\n\nAt four?\n", "note.txt", "text/plain"),
            ("From: Ann\nTo: Bob\nSubject: Tea\n\nAt four?\n", "note.eml", "message/rfc822"),
            ("Received: from a\n\tby b; now\r\nFrom: Ann\r\nSubject: Tea\r\n\r\nx", None, "message/rfc822"),
            ("Dear Ann,\nfrom: me\nmime-version: none", "letter.eml", "text/plain"),
        ],
    )
    def test_letters_and_messages(self, tmp_path: Path, text: str, name: str, expected: str) -> None:
        """A message has headers that mail programs write; prose with a colon has not."""
        assert detect_media_type(write(tmp_path, text.encode()), name) == expected

    @pytest.mark.parametrize("name", ["tool.py", "main.go", "query.sql", "deploy.yaml", "run.sh"])
    def test_source_code_is_text(self, tmp_path: Path, name: str) -> None:
        """Comments that look like Markdown and data that looks like a table stay text."""
        code = "# Title\n\n- one\n- two\n\na,b\n1,2\n3,4\n<!-- kept -->\n"
        assert detect_media_type(write(tmp_path, code.encode()), name) == "text/plain"
        assert detect_media_type(write(tmp_path, code.encode())) == "text/markdown"


class TestEpub:
    def test_chapters_in_the_order_of_the_spine(self, tmp_path: Path) -> None:
        """The title first, then chapters as they are read; empty elements of XHTML swallow nothing."""
        chapters = [
            '<h1>One</h1><p>The lamp &amp; the <a id="x"/>lens.&nbsp;&#8212;</p>',
            "<p>Two<br/>lines</p><ul><li>oil</li><li>wick</li></ul>",
        ]
        found = texts(list(from_epub.parse(book(tmp_path / "e", chapters))))
        assert found == ["The Keepers", "One", "The lamp & the lens. —", "Two\nlines", "oil\nwick"]

    def test_heads_that_repeat_the_book(self, tmp_path: Path) -> None:
        """The book's title, or a file's name, in the head of each chapter is not read as a part of it."""
        heads = {
            f"OEBPS/chapter {at}.xhtml": f"<html><head><title>{title}</title></head><body>{at}</body></html>"
            for at, title in enumerate(["The Keepers", "chapter 1.xhtml", "Night"])
        }
        found = texts(list(from_epub.parse(book(tmp_path / "e", ["", "", ""], dict(heads)))))
        assert found == ["The Keepers", "0", "1", "Night", "2"]

    def test_locked_chapters(self, tmp_path: Path) -> None:
        """Scrambled fonts don't matter, a scrambled chapter ends as `encrypted`."""

        def locked(what: str) -> Path:
            uri = f'<x xmlns="urn:e"><CipherReference URI="{what}"/></x>'
            return book(tmp_path / "e", ["<p>x</p>"], {"META-INF/encryption.xml": uri})

        assert texts(list(from_epub.parse(locked("OEBPS/font.otf")))) == ["The Keepers", "x"]
        assert refusal(lambda: list(from_epub.parse(locked("OEBPS/chapter%200.xhtml")))) == "encrypted"

    def test_bombs(self, tmp_path: Path) -> None:
        """Contents that unpack to too much are refused, and entities are not expanded."""
        big = add_member(book(tmp_path / "e", ["<p>x</p>"]), "OEBPS/a.css", MAX_UNPACKED_BYTES)
        assert refusal(lambda: list(from_epub.parse(big))) == "too_large"
        laughing = book(tmp_path / "l", ["<p>x</p>"], {"OEBPS/chapter 0.xhtml": LAUGHS + "<p>&l9; x</p>"})
        assert sum(len(text) for text in texts(list(from_epub.parse(laughing)))) < 1000

    @pytest.mark.parametrize("lost", ["META-INF/container.xml", "OEBPS/book.opf", "OEBPS/chapter 0.xhtml"])
    def test_broken(self, tmp_path: Path, lost: str) -> None:
        """A book without its container, its package or any chapter ends as `corrupt`."""
        path = book(tmp_path / "e", ["<p>x</p>"])
        data = path.read_bytes().replace(lost.encode(), b"x" * len(lost))
        assert refusal(lambda: list(from_epub.parse(write(tmp_path, data)))) == "corrupt"

    def test_without_chapters(self, tmp_path: Path) -> None:
        """A spine of nothing ends as `corrupt`."""
        assert refusal(lambda: list(from_epub.parse(book(tmp_path / "e", [])))) == "corrupt"


class TestOpenDocument:
    def test_in_document_order(self, tmp_path: Path) -> None:
        """Headings, spaces, lists, notes, tables; what was deleted is left out, remarks follow at the end."""
        body = (
            "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
            "<text:h>Report</text:h>"
            '<text:p>The<text:s text:c="2"/>lamp<office:annotation><text:p>why?</text:p></office:annotation>'
            "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>of brass</text:p>"
            "</text:note-body></text:note> burns.</text:p>"
            "<text:list><text:list-item><text:p>oil</text:p></text:list-item></text:list>"
            "<table:table><table:table-row><table:table-cell><text:p>Name</text:p></table:table-cell>"
            "<table:table-cell><text:p>Age</text:p></table:table-cell></table:table-row><table:table-row>"
            "<table:table-cell><text:p>Ann</text:p><text:p>Berg</text:p></table:table-cell>"
            "<table:table-cell><text:p>31</text:p></table:table-cell></table:table-row></table:table>"
            "<text:p>After.</text:p>"
        )
        found = texts(list(from_odt.parse(open_document(tmp_path / "o", body))))
        read = ["Report", "The lamp (of brass) burns.", "oil", "Name\tAge\nAnn Berg\t31", "After."]
        assert found == [*read, "why?"]

    def test_password(self, tmp_path: Path) -> None:
        """The manifest tells that the parts are encrypted."""
        path = open_document(tmp_path / "o", "<text:p>x</text:p>", "<m><manifest:encryption-data/></m>")
        assert refusal(lambda: list(from_odt.parse(path))) == "encrypted"

    def test_bombs_and_damage(self, tmp_path: Path) -> None:
        """Entities and torn XML end as `corrupt`, contents that unpack to too much as `too_large`."""
        laughing = open_document(tmp_path / "l", "<text:p>&l9;</text:p>", doctype=LAUGHS)
        assert refusal(lambda: list(from_odt.parse(laughing))) == "corrupt"
        torn = open_document(tmp_path / "t", "<text:p>x")
        assert refusal(lambda: list(from_odt.parse(torn))) == "corrupt"
        big = add_member(open_document(tmp_path / "b", "<text:p/>"), "Pictures/a", MAX_UNPACKED_BYTES)
        assert refusal(lambda: list(from_odt.parse(big))) == "too_large"


class TestRichText:
    def test_text_without_formatting(self, tmp_path: Path) -> None:
        """Paragraphs and letters of any script stay, fonts and megabytes of a picture do not."""
        data = rich_text("The lamp is {\\b bright}.", "Маяк на Сенье.", picture=2_000_000)
        (block,) = from_rtf.parse(write(tmp_path, data))
        assert clean(block.text) == "The lamp is bright.\nМаяк на Сенье."

    def test_long_text_comes_in_pieces(self, tmp_path: Path) -> None:
        lines = prose(1000)
        blocks = list(from_rtf.parse(write(tmp_path, rich_text(*lines))))
        assert len(blocks) > 1 and "".join(block.text for block in blocks).split() == " ".join(lines).split()

    def test_torn(self, tmp_path: Path) -> None:
        """A file that ends in the middle ends as `corrupt`."""
        data = rich_text(*prose(10))
        assert refusal(lambda: list(from_rtf.parse(write(tmp_path, data[: len(data) // 2])))) == "corrupt"


class TestMail:
    def test_text_goes_before_html(self, tmp_path: Path) -> None:
        """The headers, one version of the text, the attachments by name and not by content."""
        data = mail("High water at four.", "<p>High <b>water</b></p>", ["tides.pdf", "plan å.pdf"])
        found = texts(list(from_eml.parse(write(tmp_path, data))))
        headers = "Subject: Tide tables\nFrom: Ann <ann@example.org>\nTo: bob@example.org"
        assert found == [headers, "High water at four.", "Attachments: tides.pdf, plan å.pdf"]

    def test_html_alone(self, tmp_path: Path) -> None:
        """A message that is only HTML is read as a page is."""
        data = mail(html="<style>p{}</style><p>High <b>water</b></p><p>at four</p>")
        assert texts(list(from_eml.parse(write(tmp_path, data))))[1:] == ["High water", "at four"]

    def test_forwarded_message_is_named(self, tmp_path: Path) -> None:
        outer, inner = EmailMessage(), EmailMessage()
        inner["Subject"] = "Storm warning"
        inner.set_content("secret")
        outer["From"] = "ann@example.org"
        outer.set_content("See below.")
        outer.add_attachment(inner)
        found = texts(list(from_eml.parse(write(tmp_path, outer.as_bytes()))))
        assert found[1:] == ["See below.", "Attachments: Storm warning"]

    @pytest.mark.parametrize("charset", ["utf-8", "x-unknown", "us-ascii"])
    def test_wrong_character_sets(self, tmp_path: Path, charset: str) -> None:
        """Bytes decide where the declared character set is unknown or wrong."""
        head = f"From: a@b.c\nMIME-Version: 1.0\nContent-Type: text/plain; charset={charset}\n\n"
        data = head.encode() + "Fyret på Senja".encode()
        assert texts(list(from_eml.parse(write(tmp_path, data))))[1:] == ["Fyret på Senja"]


@pytest.mark.parametrize("kind", ["epub", "odt", "rtf", "eml"])
@pytest.mark.asyncio(loop_scope="session")
async def test_from_upload_to_answer(running: Running, tmp_path: Path, kind: str) -> None:
    """Over HTTP, through the limited process: a file of each kind is found and cited; a torn one fails."""
    fact = "The lighthouse of Senja was painted yellow in 1931."
    made = {
        "epub": lambda: book(tmp_path / "f", [f"<p>{fact}</p>"]).read_bytes(),
        "odt": lambda: open_document(tmp_path / "f", f"<text:p>{fact}</text:p>").read_bytes(),
        "rtf": lambda: rich_text(fact),
        "eml": lambda: mail(fact),
    }[kind]()
    ann = await somebody(running)
    base = await make_base(ann)
    document = await ingest(running, ann, base, f"file.{kind}", made)
    assert document["status"] == "completed", document
    answer = await ask(ann, await make_pipeline(ann, base), "When was the lighthouse of Senja painted?")
    assert fact in answer["sources"][0]["text"] and answer["sources"][0]["source"] == f"file.{kind}"
    torn = {
        "epub": lambda: book(tmp_path / "t", []).read_bytes(),
        "odt": lambda: open_document(tmp_path / "t", "<text:p>").read_bytes(),
        "rtf": lambda: rich_text(fact)[:-1],
        "eml": lambda: b"From:\nReceived:\n\n",
    }[kind]()
    failed = await ingest(running, ann, base, f"torn.{kind}", torn)
    assert failed["status"] == "failed" and failed["error"] and failed["chunk_count"] == 0


@pytest.mark.parametrize("lost", ["missing", "damaged"])
@pytest.mark.asyncio(loop_scope="session")
async def test_lost_chapters_of_a_book(running: Running, tmp_path: Path, lost: str) -> None:
    data = book(tmp_path / "e", ["<p>The lamp.</p>", "<p>Lost.</p>", "<p>The lens.</p>"]).read_bytes()
    name = b"OEBPS/chapter 1.xhtml"
    if lost == "missing":
        data = data.replace(name, b"x" * len(name))
    else:
        start = data.index(name) + len(name)
        data = data[:start] + bytes(byte ^ 0xFF for byte in data[start : start + 40]) + data[start + 40 :]
    ann = await somebody(running)
    base = await make_base(ann)
    document = await ingest(running, ann, base, "keepers.epub", data)
    assert document["status"] == "completed"
    assert document["notice"].startswith("One part ")
    chunks = (await ann.get(path_of(base, document["document_id"], "/chunks"))).json()["items"]
    assert [chunk["text"] for chunk in chunks] == ["The Keepers\n\nThe lamp.\n\nThe lens."]
