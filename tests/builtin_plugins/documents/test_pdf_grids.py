"""Tables in PDFs, with and without borders: merged cells, long cells, and what only looks like a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.pdfmetrics import registerFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Table

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.chunking import chunk
from builtin_plugins.documents.cleaning import clean
from builtin_plugins.documents.pdf import from_pdf

STYLE = getSampleStyleSheet()["Normal"]
GRID = ("GRID", (0, 0), (-1, -1), 0.5, colors.black)


def table(rows: Sequence[Sequence[Any]], *styles: Any, widths: Sequence[int] | None = None) -> Table:
    """A table with borders around all cells."""
    return Table(rows, colWidths=widths, style=[GRID, ("VALIGN", (0, 0), (-1, -1), "MIDDLE"), *styles])


def pages(path: Path, *flowables: Flowable) -> list[str]:
    SimpleDocTemplate(str(path)).build(list(flowables))
    return [clean(block.text) for block in from_pdf.parse(path)]


def test_cells_of_several_lines(tmp_path: Path) -> None:
    note = Paragraph("Replace the rubber seal every two years, or earlier when it is cracked", STYLE)
    rows = [["Part", "Note", "Price"], ["A-17", note, "3.20"], ["B-22", "None", "18.75"]]
    before, after = Paragraph("Spare parts.", STYLE), Paragraph("Ask the harbour master.", STYLE)
    (text,) = pages(tmp_path / "a.pdf", before, table(rows, widths=[60, 120, 60]), after)
    assert text.splitlines() == [
        "Spare parts.",
        "Part\tNote\tPrice",
        "A-17\tReplace the rubber seal every two years, or earlier when it is cracked\t3.20",
        "B-22\tNone\t18.75",
        "Ask the harbour master.",
    ]


def test_japanese_cells_of_several_lines(tmp_path: Path) -> None:
    registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    style = ParagraphStyle("japanese", fontName="HeiseiMin-W3", wordWrap="CJK")
    words = "海水で使用するための接続部品を含む。二年ごとに交換します。"
    rows = [[Paragraph(cell, style) for cell in row] for row in [("項目", "説明"), ("ポンプ", words)]]
    (text,) = pages(tmp_path / "a.pdf", table(rows, widths=[80, 100]))
    assert text.splitlines() == ["項目\t説明", f"ポンプ\t{words}"]


def test_names_over_two_rows(tmp_path: Path) -> None:
    """Below a name that spans columns, each column has a name of its own, repeated above each portion."""
    rows = [["Port", "2023", "", "2024", ""], ["", "Ships", "Dues", "Ships", "Dues"]]
    rows += [[f"Port {number}", *map(str, range(number, number + 4))] for number in range(30)]
    spans = [("SPAN", (0, 0), (0, 1)), ("SPAN", (1, 0), (2, 0)), ("SPAN", (3, 0), (4, 0))]
    (text,) = pages(tmp_path / "a.pdf", table(rows, *spans))
    names = "Port\t2023 Ships\t2023 Dues\t2024 Ships\t2024 Dues"
    assert text.startswith(f"{names}\nPort 0\t0\t1\t2\t3\n") and text.count(names) == 2


def test_cells_that_span_rows(tmp_path: Path) -> None:
    """A cell that spans rows, wherever its text is drawn, belongs to each of them."""
    rows = [
        ["Country", "Port", "Ships"],
        ["Norway", "Bergen", "412"],
        ["", "Oslo", "1,530"],
        ["", "Narvik", "77"],
    ]
    (text,) = pages(tmp_path / "a.pdf", table(rows, ("SPAN", (0, 1), (0, 3))))
    assert text.splitlines() == [
        "Country\tPort\tShips",
        "Norway\tBergen\t412",
        "Norway\tOslo\t1,530",
        "Norway\tNarvik\t77",
    ]


def test_title_and_total(tmp_path: Path) -> None:
    """A title across the table stands above it; a wide cell of another row leaves the next ones empty."""
    rows = [["Dues", "", ""], ["Port", "Ships", "Euro"], ["Kiel", "3", "9"], ["Total", "", "9"]]
    spans = [("SPAN", (0, 0), (-1, 0)), ("SPAN", (0, 3), (1, 3))]
    (text,) = pages(tmp_path / "a.pdf", table(rows, *spans))
    assert text.splitlines() == ["Dues", "Port\tShips\tEuro", "Kiel\t3\t9", "Total\t\t9"]


def test_lines_within_a_cell(tmp_path: Path) -> None:
    """An underlined word doesn't divide its cell, not even a title across the table."""
    title, ships = Paragraph("<u>Dues in 2024</u>", STYLE), Paragraph("<u>3</u>", STYLE)
    rows = [[title, "", ""], ["Port", "Ships", "Euro"], ["Kiel", ships, "9"]]
    (text,) = pages(tmp_path / "a.pdf", table(rows, ("SPAN", (0, 0), (-1, 0)), widths=[60, 60, 60]))
    assert text.splitlines() == ["Dues in 2024", "Port\tShips\tEuro", "Kiel\t3\t9"]


def test_over_several_pages(tmp_path: Path) -> None:
    """Every passage with rows has the names of their columns, also on pages that don't repeat them."""
    note = "The depth is measured at mean low water"
    rows: list[list[Any]] = [["Port", "Note", "Depth"]]
    rows += [[f"Port {number}", Paragraph(f"{note} {number}", STYLE), f"{number} m"] for number in range(90)]
    found = pages(tmp_path / "a.pdf", table(rows, widths=[80, 120, 60]))
    assert len(found) > 2
    passages = [passage.text for passage in chunk([Block(text) for text in found], 1500, 150)]
    assert all("Port\tNote\tDepth" in text for text in passages)
    assert f"Port 77\t{note} 77\t77 m" in "\n".join(found)


def test_rows_without_lines_between(tmp_path: Path) -> None:
    """A table with lines only around it and between its columns, as in LaTeX, is read by its columns."""
    rows = [["Key", "Meaning"], *([f"^{key}", f"move {key.lower()}"] for key in "ABCDEFGH")]
    lines = [("GRID", (0, 0), (-1, 0), 0.5, colors.black), ("BOX", (0, 1), (0, -1), 0.5, colors.black)]
    styles = [*lines, ("BOX", (1, 1), (1, -1), 0.5, colors.black)]
    (text,) = pages(tmp_path / "a.pdf", Table(rows, style=styles, colWidths=[90, 200]))
    assert text.splitlines() == ["\t".join(row) for row in rows]


@pytest.mark.parametrize(("shown", "drawn"), [(90, 90), (180, 180), (270, 270)])
def test_pages_that_are_shown_turned(tmp_path: Path, shown: int, drawn: int) -> None:
    """Wide tables are often on pages in landscape format, which are portrait pages shown turned."""
    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=(600, 600))
    canvas.setPageRotation(shown)
    canvas.translate(300, 300)
    canvas.rotate(drawn)
    note = Paragraph("Replace the rubber seal every two years, or earlier when it is cracked", STYLE)
    rows = [["Part", "Note", "Price"], ["A-17", note, "3.20"], ["B-22", "None", "18.75"]]
    drawing = table(rows, widths=[60, 120, 60])
    drawing.wrapOn(canvas, 500, 500)
    drawing.drawOn(canvas, -200, 0)
    canvas.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert clean(block.text).splitlines() == [
        "Part\tNote\tPrice",
        "A-17\tReplace the rubber seal every two years, or earlier when it is cracked\t3.20",
        "B-22\tNone\t18.75",
    ]


@pytest.mark.parametrize("bottom", [-8, -6, -4, -2])
def test_a_table_at_the_edge_of_a_page(tmp_path: Path, bottom: int) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=(600, 600))
    canvas.drawString(50, 500, "Spare parts.")
    drawing = table([["Part", "Price"], ["A-17", "3.20"], ["B-22", "18.75"]], widths=[60, 60])
    drawing.wrapOn(canvas, 500, 500)
    drawing.drawOn(canvas, 50, bottom - 5)
    canvas.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert "Part\tPrice\nA-17\t3.20" in clean(block.text)


def test_more_letters_than_any_page_has(tmp_path: Path) -> None:
    """A page designed to take very long is read by the positions of its words, as if it had no borders."""
    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=(6000, 2000))
    canvas.grid([0, 5000, 6000], [0, 1000, 2000])
    canvas.setFont("Helvetica", 2)
    for at in range(110):
        canvas.drawString(5, 1990 - 3 * at, "Harbour " * 125)
    canvas.drawString(5100, 900, "Kiel")
    canvas.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert len(clean(block.text).splitlines()) == 111


@pytest.mark.parametrize("kind", ["frame", "chart", "boxes", "margins"])
def test_what_is_no_table(tmp_path: Path, kind: str) -> None:
    """A frame around a page, the lines of a chart and boxes around paragraphs leave the text as it is."""
    path = tmp_path / "a.pdf"
    canvas = Canvas(str(path))
    lines = ["The harbour was built in 1872.", "It has forty berths.", "Dues are paid at noon."]
    for at, line in enumerate(lines):
        canvas.drawString(100, 700 - 40 * at, line)
    if kind == "frame":
        canvas.rect(50, 50, 500, 740)
        canvas.line(50, 640, 550, 640)
    elif kind == "chart":
        canvas.grid(list(range(80, 500, 20)), list(range(100, 500, 20)))
    elif kind == "margins":
        for margin in (0, 4, 8):
            canvas.rect(90 - margin, 590 - margin, 300 + 2 * margin, 150 + 2 * margin)
    else:
        for at in range(len(lines)):
            canvas.rect(90, 690 - 40 * at, 300, 30)
    canvas.save()
    assert [clean(block.text).splitlines() for block in from_pdf.parse(path)] == [lines]


def test_numbers_below_names_that_are_aligned_otherwise(tmp_path: Path) -> None:
    """Spreadsheets align names left and numbers right; neighbors that nearly touch are two cells."""
    canvas = Canvas(str(tmp_path / "t.pdf"))
    for x, name in zip((50, 150, 190, 300), ("Harbour", "Ships", "Tonnage", "Dues"), strict=True):
        canvas.drawString(x, 800, name)
    for at, (harbour, *numbers) in enumerate(
        [("Kiel", "977", "9943", "512"), ("Bergen", "1518", "7954298", "62")]
    ):
        canvas.drawString(50, 785 - 15 * at, harbour)
        for x, number in zip((187, 240, 380), numbers, strict=True):
            canvas.drawRightString(x, 785 - 15 * at, number)
    canvas.save()
    (block,) = from_pdf.parse(tmp_path / "t.pdf")
    assert clean(block.text).splitlines() == [
        "Harbour\tShips\tTonnage\tDues",
        "Kiel\t977\t9943\t512",
        "Bergen\t1518\t7954298\t62",
    ]
