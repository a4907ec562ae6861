"""What files say about themselves: read in every format, cleaned, bounded, and no more than that."""

from __future__ import annotations

import unicodedata
import zipfile
from collections.abc import Callable
from contextvars import copy_context
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from PIL import Image
from reportlab.pdfgen import canvas

from builtin_plugins.documents.child import parse_into
from builtin_plugins.documents.images.exif import time_taken
from builtin_plugins.documents.images.ocr import OcrOptions
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.properties import NotedProperties
from builtin_plugins.documents.protocol import read_trailer
from tests.builtin_plugins.documents.sample_documents import (
    book,
    mail,
    open_document,
    outlook_message,
    rewrite,
)

MADE = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
WRITTEN = {"title": "Tides", "author": ["Ada", "Bo"], "keywords": ["sea", "moon"], "created": "2024-05-06"}
META = (
    '<office:document-meta xmlns:office="o" xmlns:meta="m" xmlns:dc="d"><office:meta>'
    "<dc:title>Tides</dc:title><meta:initial-creator>Ada</meta:initial-creator><dc:creator>Bo</dc:creator>"
    "<meta:keyword>sea</meta:keyword><meta:keyword>moon</meta:keyword><dc:language>de-DE</dc:language>"
    "<meta:creation-date>2024-05-06T07:08:09.123</meta:creation-date></office:meta></office:document-meta>"
)
PAGE = (
    '<html lang="de-AT"><head><title>Tides\n of &amp; </title><meta name="author" content="Ada">'
    '<meta name="keywords" content="sea, moon"><meta property="article:published_time" content="2024-05-06">'
    "</head><body><p>High water</p></body></html>"
)
FRONT = (
    "---\ntitle: Tides\nauthors: [Ada, Bo]\ntags: sea, moon\ndate: 2024-05-06\nlang: de\nx: {}\n---\nText.\n"
)
XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    b'<r:Description xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:p="http://ns.adobe.com/xap/1.0/"'
    b' p:CreateDate="2001-02-03"><dc:language><r:Bag><r:li>nb-NO</r:li></r:Bag></dc:language>'
    b"</r:Description></r:RDF></x:xmpmeta>"
)


def read(path: Path, parser: str) -> dict[str, Any]:
    """The properties of a file; a single value stands for itself."""
    target = next(known.target for known in BUILTIN_PARSERS if known.name == parser)
    sink = path.with_suffix(".sink")
    copy_context().run(parse_into, str(path), target, str(sink), 1_000_000, list(OcrOptions()))
    found = read_trailer(sink).properties
    return {name: values[0] if len(values) == 1 else list(values) for name, values in found.items()}


def _pdf(path: Path) -> None:
    document = canvas.Canvas(str(path))
    document.setTitle("Tides")
    document.setAuthor("Ada;Bo")
    document.setKeywords("sea; moon")
    document.drawString(50, 800, "High water")
    document.save()


def _with_xmp(path: Path) -> None:
    _pdf(path)
    path.write_bytes(path.read_bytes() + XMP)


def _word(path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("High water")
    _describe(document.core_properties)
    document.save(str(path))


def _slides(path: Path) -> None:
    show = pptx.Presentation()
    show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = "High water"
    _describe(show.core_properties)
    show.save(str(path))


def _describe(properties: Any) -> None:
    properties.title, properties.author, properties.keywords = "Tides", "Ada;Bo", "sea, moon"
    properties.created = MADE.replace(tzinfo=None)


def _sheet(path: Path) -> None:
    made = openpyxl.Workbook()
    made.active.append(["High", "water"])
    made.properties.title, made.properties.creator, made.properties.keywords = "Tides", "Ada;Bo", "sea;moon"
    made.properties.created = MADE.replace(tzinfo=None)
    with path.open("wb") as file:
        made.save(file)


def _open(path: Path) -> None:
    open_document(path, "<text:p>High water</text:p>")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("meta.xml", META)


def _book(path: Path) -> None:
    said = (
        b"<dc:creator>Ada</dc:creator><dc:creator>Bo</dc:creator><dc:subject>sea</dc:subject>"
        b"<dc:language>de</dc:language><dc:date>2024-05-06</dc:date></metadata>"
    )
    rewrite(book(path, ["<p>High water</p>"]), lambda _, data: data.replace(b"</metadata>", said))


def _mail(path: Path) -> None:
    sent = "Mon, 06 May 2024 07:08:09 +0200"
    path.write_bytes(
        mail("High water", Date=sent, To="Bo <bo@example.org>, cy@example.org", Cc="Dée <d@x.org>")
    )


OFFICE = {**WRITTEN, "created": "2024-05-06T07:08:09+00:00"}
MESSAGE = {"subject": "Tide tables", "from": "Ann <ann@example.org>", "sent": "2024-05-06T07:08:09+02:00"}


@pytest.mark.parametrize(
    ("parser", "make", "wanted"),
    [
        ("pdf", _pdf, {name: WRITTEN[name] for name in ("title", "author", "keywords")}),
        ("pdf", _with_xmp, {"language": "nb"}),
        ("docx", _word, OFFICE),
        ("pptx", _slides, OFFICE),
        ("xlsx", _sheet, OFFICE),
        ("odt", _open, {**WRITTEN, "author": "Ada", "language": "de"}),
        ("epub", _book, {**WRITTEN, "title": "The Keepers", "keywords": "sea", "language": "de"}),
        (
            "html",
            lambda path: path.write_text(PAGE),
            {"title": "Tides of &", "language": "de", "author": "Ada"},
        ),
        ("markdown", lambda path: path.write_text(FRONT), {"title": "Tides", "tags": ["sea", "moon"]}),
        ("email", _mail, {**MESSAGE, "to": ["Bo <bo@example.org>", "cy@example.org", "Dée <d@x.org>"]}),
        (
            "msg",
            lambda path: path.write_bytes(outlook_message("Tides", "High water", {})),
            {"subject": "Tides", "from": "Ada Lovelace <ada@example.org>", "to": "Bob"},
        ),
    ],
)
def test_each_format(
    tmp_path: Path, parser: str, make: Callable[[Path], Any], wanted: dict[str, Any]
) -> None:
    make(tmp_path / "file")
    found = read(tmp_path / "file", parser)
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("parser", "damage"),
    [
        ("docx", lambda data: data.replace(b"<dc:title>", b"<dc:title")),
        ("docx", lambda data: b"<!DOCTYPE x [<!ENTITY a 'b'>]>" + data),
        ("docx", lambda data: data.replace(b"Tides", b"x" * 400_000)),
    ],
)
def test_broken_properties_only_cost_themselves(
    tmp_path: Path, parser: str, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "file"
    _word(path)
    rewrite(path, lambda name, data: damage(data) if name == "docProps/core.xml" else data)
    assert "title" not in read(path, parser)


_STEPS = list(pairwise("abcdefghij"))
_NESTED = "".join(f"{name}: &{name} [{','.join([f'*{one}'] * 10)}]\n" for one, name in _STEPS)
_MERGED = "".join(f"{name}: &{name} {{<<: [{','.join([f'*{one}'] * 10)}]}}\n" for one, name in _STEPS)


@pytest.mark.parametrize(
    "fields",
    [
        "x: !!bool maybe",
        "x: !!int ''",
        "x: !!timestamp soon",
        "tags: &tags [*tags]",
        f"a: &a [x]\n{_NESTED}tags: *j",
        f"a: &a {{x: y}}\n{_MERGED}",
    ],
)
def test_front_matter_of_any_kind_costs_neither_the_text_nor_time(tmp_path: Path, fields: str) -> None:
    (path := tmp_path / "a.md").write_text(f"---\n{fields}\n---\nText.\n")
    assert read(path, "markdown") == {}


def test_addresses_that_no_mail_can_have_only_cost_themselves(tmp_path: Path) -> None:
    (path := tmp_path / "a.eml").write_text(f"Subject: Tides\nTo: {'(' * 3000}\n\nText.\n")
    assert read(path, "email") == {"subject": "Tides"}


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("2024-05-06", "2024-05-06"),
        ("2024-05-06T07:08:09Z", "2024-05-06T07:08:09+00:00"),
        ("2024-05-06T07:08:09", "2024-05-06"),
        ("D:20240506070809+02'00'", "2024-05-06T07:08:09+02:00"),
        ("D:20240506", "2024-05-06"),
        ("2024:05:06 07:08:09", "2024-05-06"),
        ("Mon, 06 May 2024 07:08:09 +0000", "2024-05-06T07:08:09+00:00"),
        ("1601-01-01T00:00:00Z", None),
        ("2024", None),
        ("yesterday", None),
        ("2024-13-45", None),
    ],
)
def test_dates(written: str, date: str | None) -> None:
    """One without a zone is a day; one that nobody can mean is left out."""
    noted = NotedProperties()
    noted.note("created", [written])
    assert noted.values_by_name.get("created", [None]) == [date]


def test_values_are_cleaned_and_bounded() -> None:
    noted = NotedProperties()
    noted.note("title", ["Cafe\u0301\x00\n bar\u2028" + "x" * 2_000])
    noted.note("keywords", [str(number) * 300 for number in range(1_000)])
    title = noted.values_by_name["title"][0]
    assert (title[:9], len(title)) == ("Caf\u00e9 bar ", 512)
    assert unicodedata.is_normalized("NFC", title)
    assert sum(map(len, noted.values_by_name["keywords"])) < 8_000
    noted.note("title", ["Another"])
    assert noted.values_by_name["title"] == [title]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_only_the_time_of_a_picture(tmp_path: Path, kind: str) -> None:
    """With its zone if that is known; never the place or the camera, which are in the same part."""
    path = tmp_path / "picture"
    exif = Image.Exif()
    exif[0x010F], exif[0xA431] = "Camera", "Serial 1"
    exif.get_ifd(0x8825)[2] = (60.0, 23.0, 0.0)
    inner = exif.get_ifd(0x8769)
    inner[0x9003], inner[0x9011] = "2024:05:06 07:08:09", "+02:00"
    Image.new("L", (8, 8)).save(path, kind, exif=exif)
    assert time_taken(path.read_bytes()) == "2024-05-06T07:08:09+02:00"
    data = path.read_bytes()
    for end in range(0, len(data), 3):
        time_taken(data[:end])  # one that is cut off anywhere raises nothing


def test_the_time_of_a_scan(tmp_path: Path) -> None:
    path = tmp_path / "scan"
    Image.new("L", (8, 8)).save(path, "TIFF", tiffinfo={306: "2024:05:06 07:08:09", 271: "Camera"})
    assert time_taken(path.read_bytes()) == "2024:05:06 07:08:09"
