"""Pages of a PDF that are turned, forms that were filled in, and pictures that lie on their side."""

from __future__ import annotations

import io
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from reportlab.pdfgen import canvas

from builtin_plugins.documents.blocks import UnparsableDocument
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.extraction import extract_into
from builtin_plugins.documents.images import from_image, ocr
from builtin_plugins.documents.images.ocr import OcrText, likelier
from builtin_plugins.documents.pdf import from_pdf
from tests.builtin_plugins.documents import sample_documents as made
from tests.builtin_plugins.documents.sample_documents import SENTENCE, picture

needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
PDF_FILES = "builtin_plugins.documents.pdf.attachments:extract"
LINES = ["The harbour master counted all", "ships that were there in", "the year of the great storm."]
ROWS = [
    ("Name", "Town", "Trade"),
    ("Ann", "Oslo", "baker"),
    ("Bob", "Rome", "smith"),
    ("Cid", "Bern", "cook"),
]


def turned_pdf(path: Path, shown: int, drawn: int) -> Path:
    """A page that is shown turned by `shown` degrees, with text that is drawn turned by `drawn`."""
    page = canvas.Canvas(str(path), pagesize=(600, 600))
    page.setPageRotation(shown)
    page.translate(300, 300)
    page.rotate(drawn)
    for number, line in enumerate(LINES):
        page.drawString(-250, 250 - 14 * number, line)
    for number, row in enumerate(ROWS):
        for column, cell in enumerate(row):
            page.drawString(-250 + 150 * column, 100 - 20 * number, cell)
    page.showPage()
    page.save()
    return path


@pytest.mark.parametrize(("shown", "drawn"), [(0, 0), (90, 90), (180, 180), (270, 270)])
def test_pages_that_are_shown_turned(tmp_path: Path, shown: int, drawn: int) -> None:
    """A page that stands upright when it is shown is read in lines, and its tables in rows."""
    (block,) = from_pdf.parse(turned_pdf(tmp_path / "a.pdf", shown, drawn))
    assert block.text.split("\n") == [" ".join(LINES), *("\t".join(row) for row in ROWS)]


@pytest.mark.parametrize("drawn", [90, 270])
def test_text_that_lies_on_its_side(tmp_path: Path, drawn: int) -> None:
    (block,) = from_pdf.parse(turned_pdf(tmp_path / "a.pdf", 0, drawn))
    expected = " ".join([*LINES, *map(" ".join, ROWS)])
    assert sorted(block.text.split()) == sorted(expected.split())


def test_text_beyond_the_page_stays_there(tmp_path: Path) -> None:
    page = canvas.Canvas(str(tmp_path / "a.pdf"), pagesize=(600, 600))
    page.drawString(50, 900, "Beyond the page")
    page.rotate(90)
    for number, line in enumerate(LINES):
        page.drawString(50, -50 - 14 * number, line)
    page.showPage()
    page.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert "storm" in block.text and "Beyond" not in block.text


def form(path: Path, fill: Callable[[Any], None]) -> Path:
    page = canvas.Canvas(str(path))
    page.drawString(50, 780, "Name of applicant:")
    page.drawString(50, 740, "Country:")
    page.drawString(80, 700, "I agree to the terms")
    page.drawString(80, 660, "I want letters")
    fill(page.acroForm)
    page.showPage()
    page.save()
    return path


def test_a_form_that_was_filled_in(tmp_path: Path) -> None:
    """Values stand on a line with what they are for; boxes without a tick and empty fields say nothing."""

    def fill(fields: Any) -> None:
        fields.textfield(name="n", value="Eleonora Quist", x=200, y=775, width=200, height=20)
        fields.choice(name="c", value="Norway", options=["Norway", "Peru"], x=200, y=735, width=90, height=20)
        fields.checkbox(name="agree", checked=True, x=50, y=695)
        fields.checkbox(name="letters", checked=False, x=50, y=655)
        fields.textfield(name="empty", value="", x=200, y=600, width=200, height=20)

    (block,) = from_pdf.parse(form(tmp_path / "a.pdf", fill))
    assert block.text.split("\n")[4:] == [
        "Name of applicant: Eleonora Quist",
        "Country: Norway",
        "☒ I agree to the terms",
    ]


def test_a_long_value(tmp_path: Path) -> None:
    """A value of more than 64 KB is read to its end."""
    words = " ".join(f"word{number}" for number in range(20_000))

    def fill(fields: Any) -> None:
        fields.textfield(name="n", value=words, x=200, y=775, width=200, height=20, maxlen=1_000_000)

    (block,) = from_pdf.parse(form(tmp_path / "a.pdf", fill))
    assert len(words) > 2 * 65_536
    assert words in block.text


def packed_pdf(path: Path) -> Path:
    """A PDF of one page to which a file is pinned, all its objects in one compressed object stream."""
    objects = {
        1: "<</Type/Catalog/Pages 2 0 R>>",
        2: "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        3: "<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Annots[5 0 R]>>",
        5: "<</Type/Annot/Subtype/FileAttachment/Rect[9 9 19 19]/FS 6 0 R>>",
        6: "<</Type/Filespec/F(pin.csv)/UF(pin.csv)/EF<</F 7 0 R>>>>",
    }
    bodies = "\n".join(objects.values())
    starts = "".join(f"{number} {bodies.index(body)} " for number, body in objects.items())
    packed = zlib.compress((starts + bodies).encode())
    head = f"/Type/ObjStm/N {len(objects)}/First {len(starts)}/Filter/FlateDecode/Length {len(packed)}"
    content = bytearray(b"%PDF-1.5\n")
    places: dict[int, tuple[int, int, int]] = {number: (2, 4, at) for at, number in enumerate(objects)}

    def add(number: int, dictionary: str, stream: bytes) -> None:
        places[number] = (1, len(content), 0)
        content.extend(f"{number} 0 obj<<{dictionary}>>stream\n".encode() + stream + b"\nendstream endobj\n")

    add(4, head, packed)
    add(7, "/Type/EmbeddedFile/Length 3", b"a,b")
    end = len(content)
    places[8] = (1, end, 0)
    rows = b"".join(struct.pack(">BIB", *places.get(number, (0, 0, 0))) for number in range(9))
    add(8, f"/Type/XRef/Size 9/W[1 4 1]/Root 1 0 R/Length {len(rows)}", rows)
    path.write_bytes(bytes(content) + f"startxref\n{end}\n%%EOF".encode())
    return path


def test_a_file_inside_packed_objects(tmp_path: Path) -> None:
    """A file is found whose page mentions it in a compressed part of the PDF only, as most programs write."""
    assert b"FileAttachment" not in packed_pdf(tmp_path / "a.pdf").read_bytes()
    (_, names) = from_pdf.parse(tmp_path / "a.pdf")
    assert names.text == "Attachments: pin.csv"


def test_files_inside(tmp_path: Path) -> None:
    """A portfolio's files and those pinned to a page are named, and taken out; an empty one is damaged."""
    made.portfolio(tmp_path / "a.pdf", {"plan.txt": b"The plan", "empty.txt": b""}, {"pin.csv": b"a,b"})
    (page, names) = from_pdf.parse(tmp_path / "a.pdf")
    assert (page.text, names.text) == ("", "Attachments: empty.txt, plan.txt, pin.csv")
    bounds = [10, 1_000_000, 1_000_000]
    found = extract_into(str(tmp_path / "a.pdf"), PDF_FILES, str(tmp_path), bounds)
    assert found == [["empty.txt", None, "damaged"], ["plan.txt", 1, None], ["pin.csv", 2, None]]
    assert [(tmp_path / name).read_bytes() for name in "12"] == [b"The plan", b"a,b"]


def test_fields_on_one_line(tmp_path: Path) -> None:
    """Of "Yes" and "No", the ticked one is named alone; a name is not taken for the field after it."""
    page = canvas.Canvas(str(tmp_path / "a.pdf"))
    for x, word in ((50, "First name:"), (225, "Last name:")):
        page.drawString(x, 780, word)
    for x, word in ((70, "Yes"), (130, "No")):
        page.drawString(x, 740, word)
    fields = page.acroForm
    fields.textfield(name="a", value="Eleonora", x=115, y=775, width=100, height=20)
    fields.textfield(name="b", value="Quist", x=330, y=775, width=100, height=20)
    fields.checkbox(name="y", checked=True, x=45, y=735)
    fields.checkbox(name="n", checked=False, x=105, y=735)
    page.showPage()
    page.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    filled = block.text.split("\n")[2:]
    assert filled == ["First name: Eleonora", "Last name: Quist", "☒ Yes"]


def test_hidden_fields(tmp_path: Path) -> None:
    """What nobody sees in the form is not read."""

    def fill(fields: Any) -> None:
        place = {"x": 200, "y": 775, "width": 99, "height": 20}
        fields.textfield(name="n", value="internal", annotationFlags="hidden", **place)

    (block,) = from_pdf.parse(form(tmp_path / "a.pdf", fill))
    assert "terms" in block.text and "internal" not in block.text


def typed_on(path: Path, text: str, kind: str = "FreeText") -> Path:
    """A PDF without a form onto whose page text was typed, or put in a note ([ISO 32000] 12.5.6)."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Annots[4 0 R]>>",
        f"<</Type/Annot/Subtype/{kind}/Rect[20 20 200 60]/DA(/Helv 12 Tf)/Contents({text})>>".encode(),
    ]
    body = b"%PDF-1.7\n" + b"".join(b"%d 0 obj%s\nendobj\n" % (at, one) for at, one in enumerate(objects, 1))
    path.write_bytes(body + b"trailer<</Root 1 0 R/Size 5>>\n%%EOF\n")
    return path


def test_text_that_was_typed_onto_a_page(tmp_path: Path) -> None:
    (block,) = from_pdf.parse(typed_on(tmp_path / "a.pdf", "Paid on Friday"))
    assert block.text.strip() == "Paid on Friday"


@pytest.mark.parametrize(("kind", "expected"), [("Text", "Ask Bob"), ("Highlight", "Ask Bob"), ("Link", "")])
def test_comments(tmp_path: Path, kind: str, expected: str) -> None:
    """What reviewers wrote in notes and beside marks is read, as in Word; a link says nothing."""
    (block,) = from_pdf.parse(typed_on(tmp_path / "a.pdf", "Ask Bob", kind))
    assert block.text.strip() == expected


@needs_tesseract
def test_a_scan_that_was_filled_in(tmp_path: Path) -> None:
    page = canvas.Canvas(str(tmp_path / "a.pdf"))
    page.drawInlineImage(picture("The harbour master"), 0, 500, 595, 134)
    page.acroForm.textfield(name="n", value="Eleonora", x=50, y=100, width=200, height=20)
    page.showPage()
    page.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    lines = block.text.split("\n")
    assert block.recognized and "The harbour master" in lines and lines.count("Eleonora") == 1


WORDS = [SENTENCE.format(number)[:54] for number in range(8)]


@needs_tesseract
@pytest.mark.parametrize("angle", [90, 180, 270])
def test_pictures_that_lie_on_their_side(tmp_path: Path, angle: int) -> None:
    picture(*WORDS).rotate(angle, expand=True, fillcolor=255).save(tmp_path / "a.png")
    (block,) = from_image.parse(tmp_path / "a.png")
    assert [line for line in block.text.split("\n") if line.strip()] == WORDS


@needs_tesseract
def test_few_figures_stay_upright(tmp_path: Path) -> None:
    """Looking for a direction would turn what is upright and short."""
    rows = ["482 17.25 31", "905 88.10 64", "133 42.75 20"]
    picture(*rows).save(tmp_path / "a.png")
    (block,) = from_image.parse(tmp_path / "a.png")
    assert [line for line in block.text.split("\n") if line.strip()] == rows


def table_of(*words: tuple[str, int]) -> OcrText:
    """What tesseract writes of some words, with how sure it is of each."""
    rows = (f"5\t1\t1\t1\t1\t{n}\t0\t0\t9\t9\t{sure}\t{word}" for n, (word, sure) in enumerate(words))
    return OcrText.of_output("\n".join([*rows, " ".join(word for word, _ in words)]))


def test_a_sure_letter_does_not_stand_in_for_a_page() -> None:
    poor = table_of(("harbour", 60), ("master", 66), ("counted", 58))
    assert poor.is_doubtful
    assert likelier(poor, table_of(("l", 96))) is poor
    assert likelier(poor, turned := table_of(("retsam", 91), ("harbour", 92))) is turned


@pytest.mark.parametrize("fault", ["sleep 9", "exit 1"])
def test_what_was_read_first_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    row = "5\\t1\\t1\\t1\\t1\\t1\\t0\\t0\\t9\\t9\\t65\\tharbour"
    program = tmp_path / "tesseract"
    program.write_text(f'#!/bin/sh\ncase "$*" in *psm*) {fault};; esac\nprintf "{row}\\nharbour\\n"\n')
    program.chmod(0o755)
    monkeypatch.setattr(ocr, "_PAGE_SECONDS", 1)
    monkeypatch.setattr(shutil, "which", lambda _: str(program))
    assert ocr.Recognizer().read(b"").strip() == "harbour"


@needs_tesseract
@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
@pytest.mark.parametrize(("form", "kind"), [("BMP", "image/bmp"), ("PPM", "image/x-portable-anymap")])
def test_bitmaps(tmp_path: Path, mode: str, form: str, kind: str) -> None:
    """Bitmaps without compression are pictures, though their white is "ÿ" to who takes it for a text."""
    buffer = io.BytesIO()
    picture("The harbour master").convert(mode).save(buffer, form)
    (tmp_path / "a").write_bytes(buffer.getvalue())
    assert detect_media_type(tmp_path / "a", "a.txt") == kind
    (block,) = from_image.parse(tmp_path / "a")
    assert block.text.strip() == "The harbour master"


@needs_tesseract
@pytest.mark.parametrize("size", [(30_000, 30_000), (2_000_000, 10)])
def test_huge_bitmaps(tmp_path: Path, size: tuple[int, int]) -> None:
    """Whatever size a small file claims, who uploaded it hears that this is the reason."""
    head = struct.pack("<IiiHHIIiiII", 40, *size, 1, 24, *[0] * 6)
    (tmp_path / "a").write_bytes(b"BM" + struct.pack("<IHHI", 354, 0, 0, 54) + head + bytes(300))
    with pytest.raises(UnparsableDocument) as caught:
        list(from_image.parse(tmp_path / "a"))
    assert caught.value.code == "too_many_pixels"


@pytest.mark.parametrize(
    "text",
    [
        "BMW builds cars.",
        "BM 4000 0000 is a number",
        "P4 2 3 plums",
        "P6 650 480 255 francs",
        "P4 120 80 Plätze",
    ],
)
def test_texts_that_begin_like_bitmaps(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text, encoding="utf-8")
    assert detect_media_type(tmp_path / "a", "a.txt") == "text/plain"


def test_a_white_bitmap_has_no_text(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (400, 300), "white").save(buffer, "BMP")
    (tmp_path / "a").write_bytes(buffer.getvalue())
    assert detect_media_type(tmp_path / "a", "a.bmp") == "image/bmp"


def columns_pdf(path: Path, *columns: list[str]) -> Path:
    page = canvas.Canvas(str(path), pagesize=(600, 800))
    page.drawString(50, 780, "The harbour of Bergen")
    for number, line in enumerate(zip(*columns, strict=True)):
        for column, text in enumerate(line):
            page.drawString(50 + 270 * column, 750 - 14 * number, text)
    page.save()
    return path


LEFT = [
    "The committee met in Bergen to dis-",
    "cuss the new harbour. It was agreed",
    "that the breakwater costs 12 million",
    "crowns and takes three years.",
]
RIGHT = [
    "Meanwhile the ferry company wants",
    "a second pier. Its director said",
    "that 400 passengers a day can-",
    "not be served by one ship.",
]


def test_columns_drawn_across_the_page(tmp_path: Path) -> None:
    (block,) = from_pdf.parse(columns_pdf(tmp_path / "a.pdf", LEFT, RIGHT))
    assert block.text.split("\n") == [
        "The harbour of Bergen",
        "The committee met in Bergen to discuss the new harbour. It was agreed that the breakwater costs 12"
        " million crowns and takes three years.",
        "Meanwhile the ferry company wants a second pier. Its director said that 400 passengers a day cannot"
        " be served by one ship.",
    ]


def test_long_cells_are_no_columns(tmp_path: Path) -> None:
    left = [f"Requirement {number} of the harbour master" for number in range(5)]
    right = [f"Described in chapter {number} of the handbook" for number in range(5)]
    (block,) = from_pdf.parse(columns_pdf(tmp_path / "a.pdf", left, right))
    assert f"{left[3]}\t{right[3]}" in block.text.split("\n")


COMMANDS = [
    ("fetch-catch --all", "fetch what every boat has caught"),
    ("fetch-catch --boat name_of_the_boat", "one boat alone"),
    ("weigh file", "weigh the catch that a file lists, in kilograms"),
    ("weigh -o file --boxes", "count boxes"),
    ("sell-catch --to name_of_the_buyer", "offer it. The buyer is asked first"),
    ("clean", "forget what was sold"),
]
OPTIONS = [
    ("take from the harbour", "read what the harbour master wrote down"),
    ("take from the market", "read what the fish market wrote down"),
    ("send to the market", "write what was caught for the market"),
    ("send to the harbour", "write what was caught for the harbour"),
]


@pytest.mark.parametrize("rows", [COMMANDS, OPTIONS], ids=["widths", "points"])
def test_cells_of_small_letters_are_no_columns(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    """A list of commands and what they do stays a table: its lines end anywhere, or have no full stops."""
    left, right = map(list, zip(*rows, strict=True))
    (block,) = from_pdf.parse(columns_pdf(tmp_path / "a.pdf", left, right))
    assert block.text.split("\n")[1:] == ["\t".join(row) for row in rows]


def test_columns_that_begin_beyond_the_page(tmp_path: Path) -> None:
    page = canvas.Canvas(str(tmp_path / "a.pdf"), pagesize=(600, 800))
    for number, line in enumerate(zip(LEFT + RIGHT, RIGHT + LEFT, strict=True)):
        for column, text in enumerate(line):
            page.drawString(50 + 270 * column, 805 - 14 * number, text)
    page.drawString(50, 600, "The harbour of Bergen")
    page.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert all(line.rstrip("-") in block.text for line in ["The harbour of Bergen", *LEFT, *RIGHT])


def test_lines_that_come_twice_in_columns(tmp_path: Path) -> None:
    (block,) = from_pdf.parse(columns_pdf(tmp_path / "a.pdf", LEFT + LEFT, RIGHT + RIGHT))
    assert [block.text.count(line.rstrip("-")) for line in [*LEFT, *RIGHT]] == [2] * 8
