"""Tables in PDFs with lines or shades between rows only: invoices, reports and papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from builtin_plugins.rag.parsing import from_pdf

STYLE = getSampleStyleSheet()["Normal"]
PAPER: list[Any] = [
    *((kind, (0, 0), (-1, 0), 1, colors.black) for kind in ("LINEABOVE", "LINEBELOW")),
    ("LINEBELOW", (0, -1), (-1, -1), 1, colors.black),
]
STYLES: dict[str, list[Any]] = {
    "paper": PAPER,
    "below each row": [("LINEBELOW", (0, 0), (-1, -1), 0.5, colors.grey)],
    "shades": [("ROWBACKGROUNDS", (0, 0), (-1, -1), [colors.lightgrey, colors.white])],
}
PUMP = "Heat pump with outdoor unit, including mounting material and a first inspection after a year"


def lines(path: Path, *flowables: Any) -> list[str]:
    """The lines of a PDF of one page with these contents."""
    SimpleDocTemplate(str(path)).build(list(flowables))
    (block,) = from_pdf.parse(path)
    return block.text.strip().splitlines()


@pytest.mark.parametrize("style", STYLES)
def test_cells_of_several_lines(tmp_path: Path, style: str) -> None:
    """A wrapped cell stays in its row, with the numbers beside it; the total is a row of its own."""
    rows = [
        ["Item", "Description", "Quantity", "Price"],
        ["A-100", Paragraph(PUMP, STYLE), "2", "4,300.00"],
        ["B-7", "Pipes", "30", "12.50"],
        ["", "", "Total", "8,975.00"],
    ]
    top = [("VALIGN", (0, 0), (-1, -1), "TOP")]
    table = Table(rows, colWidths=[60, 230, 60, 80], style=STYLES[style] + top)
    found = lines(tmp_path / "a.pdf", Paragraph("Invoice", STYLE), table, Paragraph("Due in May.", STYLE))
    expected = [
        "Item\tDescription\tQuantity\tPrice",
        f"A-100\t{PUMP}\t2\t4,300.00",
        "B-7\tPipes\t30\t12.50",
        "\t\tTotal\t8,975.00",
    ]
    assert found == ["Invoice", *expected, "Due in May."]


@pytest.mark.parametrize("style", STYLES)
def test_every_cell_of_several_lines(tmp_path: Path, style: str) -> None:
    """Also the first cell of a row may be wrapped."""
    told = [
        (
            "Dr. Anna Berger, head of research",
            "Writes the yearly report to the ministry",
            "On leave in March",
        ),
        ("Paul Klein", "Runs the laboratory in Graz", "By phone only, between nine and eleven"),
        ("Maria Huber, administration", "Bookkeeping", "none"),
    ]
    rows: list[Any] = [["Person", "Task", "Remarks"]]
    rows += [[Paragraph(cell, STYLE) for cell in row] for row in told]
    top = [("VALIGN", (0, 0), (-1, -1), "TOP")]
    table = Table(rows, colWidths=[110, 120, 100], style=STYLES[style] + top)
    assert lines(tmp_path / "a.pdf", table) == ["Person\tTask\tRemarks", *map("\t".join, told)]


def test_names_that_span_columns(tmp_path: Path) -> None:
    """Below a name that spans columns, each column has a name of its own."""
    rows = [
        ["", "Winter", "", "Summer", ""],
        ["Port", "Ships", "Dues", "Ships", "Dues"],
        ["Kiel", "1", "2", "3", "4"],
        ["Oslo", "5", "6", "7", "8"],
    ]
    rules = [(kind, (0, at), (-1, at), 1, colors.black) for kind, at in (("LINEABOVE", 0), ("LINEBELOW", 1))]
    spans = [("SPAN", (1, 0), (2, 0)), ("SPAN", (3, 0), (4, 0)), ("ALIGN", (1, 0), (-1, -1), "CENTER")]
    table = Table(rows, style=[*rules, PAPER[-1], *spans])
    assert lines(tmp_path / "a.pdf", table) == [
        "Port\tWinter Ships\tWinter Dues\tSummer Ships\tSummer Dues",
        "Kiel\t1\t2\t3\t4",
        "Oslo\t5\t6\t7\t8",
    ]


def test_prose_between_lines_is_no_table(tmp_path: Path) -> None:
    """Paragraphs may be parted by lines."""
    canvas = Canvas(str(tmp_path / "a.pdf"))
    told = ["The harbour is open until the end of May.", "It is closed in June, as every year."] * 3
    for at, text in enumerate(told):
        canvas.line(70, 695 - 20 * at, 470, 695 - 20 * at)
        canvas.drawString(72, 700 - 20 * at, text)
    canvas.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert block.text.splitlines() == told


def test_more_lines_than_any_table_has(tmp_path: Path) -> None:
    """A page of thousands of lines, all of different widths, is read like any other."""
    canvas = Canvas(str(tmp_path / "a.pdf"))
    for at in range(4_000):
        canvas.line(10, at / 5, 100 + at / 10, at / 5)
        canvas.drawString(10 + at % 50 * 10, at / 5, "x") if at % 4 == 0 else None
    canvas.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert block.text.count("x") == 1_000
