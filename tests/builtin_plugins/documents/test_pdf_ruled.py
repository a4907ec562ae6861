"""Tables in PDFs with lines or shades between rows only: invoices, reports and papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from builtin_plugins.documents.pdf import from_pdf

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


@pytest.mark.parametrize("style", STYLES)
def test_cells_of_as_many_lines(tmp_path: Path, style: str) -> None:
    told = [
        "The tenant keeps the flat clean and tells the owner of each damage at once by letter.",
        "The tenant keeps the flat clean and tells the owner of damage within a week by e-mail.",
    ]
    rows: list[Any] = [
        ["Old wording", "New wording"],
        [Paragraph(cell, STYLE) for cell in told],
        ["None", "New"],
    ]
    table = Table(rows, colWidths=[180, 180], style=STYLES[style])
    assert lines(tmp_path / "a.pdf", table) == ["Old wording\tNew wording", "\t".join(told), "None\tNew"]


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
    canvas = Canvas(str(tmp_path / "a.pdf"))
    told = ["The harbour is open until the end of May.", "It is closed in June, as every year."] * 3
    for at, text in enumerate(told):
        canvas.line(70, 695 - 20 * at, 470, 695 - 20 * at)
        canvas.drawString(72, 700 - 20 * at, text)
    canvas.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert block.text.splitlines() == told


def test_more_lines_than_any_table_has(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"))
    for at in range(4_000):
        canvas.line(10, at / 5, 100 + at / 10, at / 5)
        canvas.drawString(10 + at % 50 * 10, at / 5, "x") if at % 4 == 0 else None
    canvas.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert block.text.count("x") == 1_000


def test_names_above_the_first_line(tmp_path: Path) -> None:
    """An invoice may have lines below the names, the items and the total only, and totals in few columns."""
    rows = [
        ["Pos", "Article", "Quantity", "Price", "Total"],
        ["1", "Crane, type B", "2", "1,000.00", "2,000.00"],
        ["2", Paragraph("Rope of steel, 100 m, galvanized, with two hooks", STYLE), "10", "12.00", "120.00"],
        ["", "", "", "Net", "2,120.00"],
        ["", "", "", "Gross", "2,522.80"],
    ]
    rules = [("LINEBELOW", (0, at), (-1, at), 1, colors.black) for at in (0, 2, 4)]
    more = [("ALIGN", (2, 0), (-1, -1), "RIGHT"), ("VALIGN", (0, 0), (-1, -1), "TOP")]
    assert lines(tmp_path / "a.pdf", Table(rows, colWidths=[40, 190, 60, 70, 70], style=rules + more)) == [
        "Pos\tArticle\tQuantity\tPrice\tTotal",
        "1\tCrane, type B\t2\t1,000.00\t2,000.00",
        "2\tRope of steel, 100 m, galvanized, with two hooks\t10\t12.00\t120.00",
        "\t\t\tNet\t2,120.00",
        "\t\t\tGross\t2,522.80",
    ]


@pytest.mark.parametrize("style", STYLES)
def test_a_total_across_columns(tmp_path: Path, style: str) -> None:
    """Text of one row that goes across two columns of the others doesn't make them one."""
    rows = [
        ["Pos", "Article", "Quantity", "Price"],
        ["1", "Crane", "2", "100.00"],
        ["2", "Rope", "3", "30.00"],
        ["Subtotal of all items so far", "", "", "130.00"],
        ["3", "Hook", "1", "5.00"],
        ["Total with the tax of nineteen percent", "", "", "160.00"],
    ]
    right = [("ALIGN", (2, 0), (-1, -1), "RIGHT")]
    table = Table(rows, colWidths=[40, 200, 50, 80], style=STYLES[style] + right)
    assert lines(tmp_path / "a.pdf", table) == [
        *map("\t".join, rows[:3]),
        "Subtotal of all items so far\t\t\t130.00",
        "3\tHook\t1\t5.00",
        "Total with the tax of nineteen percent\t\t\t160.00",
    ]


def test_columns_of_prose_between_lines_are_no_table(tmp_path: Path) -> None:
    """A paper's lines may go across both of its columns, whose text is read one after the other."""
    canvas = Canvas(str(tmp_path / "a.pdf"))
    told = [
        ["The port of the town is one of the oldest,", "and has been used by the traders of all"],
        ["A storm in winter is no danger for ships,", "as the quay is behind a wall of large"],
    ]
    for top in (780, 450):
        canvas.line(60, top, 535, top)
        for at in range(1, 25):
            for left, column in zip((60, 305), told, strict=True):
                canvas.drawString(left, top - 12 * at, column[at % 2])
    canvas.line(60, 120, 535, 120)
    canvas.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert "\t" not in block.text
    assert block.text.rindex(told[0][0]) < block.text.index(told[1][1])
