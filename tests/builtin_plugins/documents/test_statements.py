"""Tables of financial reports: years as names, signs in columns of their own, units and captions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Table

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.chunking import chunk
from builtin_plugins.documents.cleaning import clean
from builtin_plugins.documents.markup import from_html
from builtin_plugins.documents.office import from_docx, from_xlsx
from builtin_plugins.documents.pdf import from_pdf
from builtin_plugins.documents.pdf.runs import LinePart, runs_of

NORMAL = getSampleStyleSheet()["Normal"]
CENTERED = ParagraphStyle("centered", NORMAL, alignment=1)
CAPTION = ["CONSOLIDATED STATEMENTS OF OPERATIONS", "(Dollars in millions, except per share data)"]
ENDED = "Years ended December 31,"
NAMES = ["", *(f"{ENDED} {year}" for year in (2022, 2021, 2020))]
LABELS = ("Sales of products", "Sales of services", "Cost of products", "General expense", "Net loss")
STYLES: dict[str, list[Any]] = {
    "plain": [],
    "shades": [("ROWBACKGROUNDS", (0, 2), (-1, -1), [colors.lightgrey, colors.white])],
    "rules": [("LINEABOVE", (1, at), (-1, at), 0.5, colors.black) for at in range(4, 60, 6)],
    "grid": [("GRID", (0, 0), (-1, -1), 0.5, colors.black)],
}


def statement(
    style: Sequence[Any], years: Sequence[str] = ("2022", "2021", "2020"), count: int = 60
) -> Table:
    """A statement as in annual reports: labels, and a column with "$" before each year's amounts."""
    rows: list[list[str]] = [
        ["", "", ENDED, "", "", "", ""],
        ["", *(cell for year in years for cell in ("", year))],
    ]
    for at in range(60):
        label = f"{LABELS[at % 5]} {at}"
        amounts = [f"{1000 * (at + 1) + number:,}" for number in range(3)]
        shown = [f"({amount})" if "loss" in label else amount for amount in amounts]
        sign = "$" if at % 5 == 0 else ""
        rows.append([label, *(cell for amount in shown for cell in (sign, amount))])
        if at % 10 == 4:
            rows.append(["Costs and expenses:", *[""] * 6])
    spans = [
        ("SPAN", (2, 0), (6, 0)),
        ("ALIGN", (2, 0), (6, 0), "CENTER"),
        ("ALIGN", (1, 1), (-1, -1), "RIGHT"),
    ]
    narrow = [("TOPPADDING", (0, 0), (-1, -1), 1), ("BOTTOMPADDING", (0, 0), (-1, -1), 1)]
    return Table(rows, colWidths=[220, 12, 60, 12, 60, 12, 60], style=[*spans, *narrow, *style])


def passages(path: Path, *flowables: Flowable) -> list[str]:
    SimpleDocTemplate(str(path)).build(list(flowables))
    blocks = [Block(clean(block.text), block.page) for block in from_pdf.parse(path)]
    return [one.text for one in chunk(blocks, 1500, 150)]


def rows_of(texts: Sequence[str]) -> Iterator[str]:
    return (line for text in texts for line in text.splitlines() if line.startswith(LABELS))


@pytest.mark.parametrize("style", STYLES)
def test_every_passage_of_a_statement(tmp_path: Path, style: str) -> None:
    """It has the years and the unit, on the next page, too; each row has as many cells as there are names."""
    above = [Paragraph(line, CENTERED) for line in CAPTION]
    prose = Paragraph(
        "The statements were audited by a firm whose report is at the end. It has no reserve.", NORMAL
    )
    found = passages(tmp_path / "a.pdf", prose, *above, statement(STYLES[style]), prose)
    assert len(found) > 2
    for text in found:
        if any(rows_of([text])):
            assert "\t".join(NAMES) in text
            assert CAPTION[1] in text.splitlines() and CAPTION[0] in text.splitlines()
    rows = dict.fromkeys(rows_of(found))
    assert len(rows) == 60
    assert all(len(row.split("\t")) == 4 for row in rows)
    assert "Sales of products 5\t$6,000\t$6,001\t$6,002" in rows
    assert "Net loss 4\t(5,000)\t(5,001)\t(5,002)" in rows


@pytest.mark.parametrize("years", [("FY 2022", "FY 2021", "FY 2020"), ("Q3 2023", "Q2 2023", "Q1 2023")])
def test_names_with_years(tmp_path: Path, years: tuple[str, ...]) -> None:
    found = passages(tmp_path / "a.pdf", statement([], years))
    for text in found:
        assert not any(rows_of([text])) or all(f"{ENDED} {year}" in text for year in years)


def test_signs_after_numbers(tmp_path: Path) -> None:
    rows = [["(in thousands of euros)", "2022", "", "2021", "", "Change", ""]]
    rows += [[f"Umsatz {at}", f"{at}.100", "€", f"{at}.050", "€", f"{at},5", "%"] for at in range(10, 90)]
    right = [("ALIGN", (1, 0), (-1, -1), "RIGHT")]
    found = passages(tmp_path / "a.pdf", Table(rows, colWidths=[160, 60, 14, 60, 14, 60, 16], style=right))
    assert len(found) > 1
    for text in found:
        assert "(in thousands of euros)\t2022\t2021\tChange" in text
    assert "\nUmsatz 12\t12.100 €\t12.050 €\t12,5%\n" in found[0]


def test_groups_above_years(tmp_path: Path) -> None:
    """Names of several columns are joined to those of each."""
    groups = ["", "Three months ended June 30,", "", "Six months ended June 30,", ""]
    rows = [groups, ["(in millions)", "2023", "2022", "2023", "2022"]]
    rows += [[f"Revenue {at}", *(f"{at}{number}.5" for number in range(4))] for at in range(30)]
    style = [("SPAN", (at, 0), (at + 1, 0)) for at in (1, 3)]
    style += [("ALIGN", (1, 0), (-1, 0), "CENTER"), ("ALIGN", (1, 1), (-1, -1), "RIGHT")]
    found = passages(tmp_path / "a.pdf", Table(rows, colWidths=[120, 70, 70, 70, 70], style=style))
    names = [f"{part} months ended June 30, {year}" for part in ("Three", "Six") for year in (2023, 2022)]
    for text in found:
        assert "\t".join(["(in millions)", *names]) in text


def test_years_in_other_formats(tmp_path: Path) -> None:
    """Long tables of web pages and Word files repeat the years and the caption, too."""
    rows = [
        ["", "2022", "2021"],
        *([f"Net sales of region {at}", f"{at},100", f"{at},050"] for at in range(60)),
    ]
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    (tmp_path / "a.html").write_text(
        f"<table><caption>Sales (in millions)</caption><tr>{'</tr><tr>'.join(cells)}</tr></table>"
    )
    document = docx.Document()
    table = document.add_table(len(rows), 3)
    for row, texts in zip(table.rows, rows, strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    document.save(str(tmp_path / "a.docx"))
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    for one in (["Sales (in millions)"], *rows):
        sheet.append(one)
    workbook.save(tmp_path / "a.xlsx")
    html = [block.text for block in from_html.parse(tmp_path / "a.html")][1:]
    word = [block.text for block in from_docx.parse(tmp_path / "a.docx")]
    excel = [block.text for block in from_xlsx.parse(tmp_path / "a.xlsx")][2:]
    for portions in (html, word, excel):
        assert len(portions) > 2 and all("\t2022\t2021\n" in portion for portion in portions)
    for portions in (html[1:], excel[1:]):
        assert all(portion.startswith("Sales (in millions)\n\t2022") for portion in portions)


def test_numbers_are_no_names(tmp_path: Path) -> None:
    """Rows without names don't become names because they are the first."""
    rows = [[f"Pump {at}", f"{at}2.50", f"1{at}"] for at in range(60)]
    found = passages(tmp_path / "a.pdf", Table(rows, colWidths=[120, 70, 70]))
    assert "\n".join(found).count("Pump 0\t") == 1


def test_other_years_further_down(tmp_path: Path) -> None:
    """Below a label, the columns may be named anew."""
    rows = [["", "2022", "2021"], *([f"Net sales {at}", f"{at},100", f"{at},050"] for at in range(30))]
    rows += [["As of December 31", "", ""], ["", "2020", "2019"]]
    rows += [[f"Total assets {at}", f"{at},100", f"{at},050"] for at in range(30)]
    style = [("ALIGN", (1, 0), (-1, -1), "RIGHT")]
    narrow = [("TOPPADDING", (0, 0), (-1, -1), 0), ("BOTTOMPADDING", (0, 0), (-1, -1), 0)]
    SimpleDocTemplate(str(tmp_path / "a.pdf")).build(
        [Table(rows, colWidths=[160, 60, 60], style=style + narrow)]
    )
    text = "\n".join(clean(block.text) for block in from_pdf.parse(tmp_path / "a.pdf"))
    years = list[str]()  # above each row
    for line in text.splitlines():
        years.append(line if line.startswith("\t") else (years or [""])[-1])
    told = {
        line.split()[0]: {years[at] for at, other in enumerate(text.splitlines()) if other[:5] == line[:5]}
        for line in ("Net sales", "Total assets")
    }
    assert told == {"Net": {"\t2022\t2021"}, "Total": {"\t2020\t2019"}}
    assert "As of December 31\n\t2020\t2019\nTotal assets 0\t" in text
    assert text.count("\t2020\t2019\n") > 1


@pytest.mark.parametrize("style", ["plain", "grid"])
def test_shares_beside_years(tmp_path: Path, style: str) -> None:
    """ "%" after a year is the name of a column, and the numbers below it keep their places."""
    rows = [["", "2022", "%", "2021", "%"]]
    rows += [[f"Sales {at}", f"{at + 3},210", "61.5", f"{at + 2},140", "58.3"] for at in range(8)]
    table = Table(rows, colWidths=[200, 60, 60, 60, 60], style=STYLES[style])
    lines = "\n".join(passages(tmp_path / "a.pdf", table)).splitlines()
    assert "2022%" not in "".join(lines)
    assert next(line for line in lines if "2022" in line).split() == ["2022", "%", "2021", "%"]
    assert "Sales 7\t10,210\t61.5\t9,140\t58.3" in lines


def test_hostile_places_take_no_time() -> None:
    """Rows that only fit the nearest columns."""
    places = [(0, 50), (0, 50), *[(20, 35), (0, 50)] * 950]
    lines = [
        [LinePart(left, -12 * at, left + 10, 10 - 12 * at) for left in lefts]
        for at, lefts in enumerate(places)
    ]
    start = time.process_time()
    assert [len(run.rows) for run in runs_of(lines)] == [len(lines)]
    assert time.process_time() - start < 0.5


def test_dashes_for_nothing(tmp_path: Path) -> None:
    """A dash is lower than the numbers beside it, and on their line."""
    rows = [
        ["", "2022", "", "2021", "", "2020"],
        ["Services", "18.1%", "", "—", "$", "751,473"],
        ["Rents", "222", "$", "333", "$", "444"],
        ["Grants", "—", "", "(3)", "", "5"],
    ]
    table = Table(rows, colWidths=[120, 55, 12, 55, 12, 55], style=[("ALIGN", (1, 0), (-1, -1), "RIGHT")])
    (text,) = passages(tmp_path / "a.pdf", table)
    assert text.strip() == (
        "2022\t2021\t2020\nServices\t18.1%\t—\t$751,473\nRents\t222\t$333\t$444\nGrants\t—\t(3)\t5"
    )


def test_names_with_little_space_between(tmp_path: Path) -> None:
    """Two years that look like one cell, above two numbers."""
    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=(600, 800))
    canvas.setFont("Helvetica", 10)
    rows = [("Item", "2022", "2021"), *((f"Sales {at}", str(at + 12), str(at + 13)) for at in range(5))]
    for at, row in enumerate(rows):
        for right, cell in zip((90, 322, 349), row, strict=True):
            canvas.drawRightString(right, 700 - 14 * at, cell)
    canvas.save()
    (block,) = from_pdf.parse(tmp_path / "a.pdf")
    assert block.text.splitlines()[:2] == ["Item\t2022\t2021", "Sales 0\t12\t13"]


def test_names_as_wide_as_a_narrow_table(tmp_path: Path) -> None:
    """Years above the amounts, as wide as the whole table, are not lost."""
    amounts = ["—", "919,300", "838,300", "757,300", "—", "595,300", "514,300", "433,300", "683,279"]
    rows = [["", ENDED, ""], ["Item", "", "2021"]]
    rows += [[f"Sales {at}", "$" if at > 3 else "", amount] for at, amount in enumerate(amounts)]
    style = [("SPAN", (1, 0), (2, 0)), ("ALIGN", (1, 0), (-1, -1), "RIGHT")]
    (text,) = passages(tmp_path / "a.pdf", Table(rows, colWidths=[140, 12, 55], style=style))
    assert text.startswith(f"Item\t{ENDED} 2021\nSales 0\t—\nSales 1\t919,300")


SIGNED = (
    (("(In millions)", 1), ("2022", 2), ("2021", 2)),
    (("Services", 1), ("$", 1), ("18.1", 1), ("$", 1), ("751,473", 1)),
    (("Net loss", 1), ("", 1), ("(4,935)", 1), ("", 1), ("—", 1)),
)


def as_html(path: Path) -> Iterator[Block]:
    rows = ("".join(f"<td colspan={wide}>{cell}</td>" for cell, wide in row) for row in SIGNED)
    path.write_text("<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>")
    return from_html.parse(path)


def as_docx(path: Path) -> Iterator[Block]:
    made = docx.Document()
    table = made.add_table(3, 5)
    for cells, row in zip(SIGNED, table.rows, strict=True):
        at = 0
        for text, wide in cells:
            row.cells[at].merge(row.cells[at + wide - 1]).text = text
            at += wide
    made.save(str(path))
    return from_docx.parse(path)


@pytest.mark.parametrize("parse", [as_html, as_docx])
def test_signs_in_cells_of_their_own(tmp_path: Path, parse: Callable[[Path], Iterator[Block]]) -> None:
    """In web pages and Word documents, too: as many cells in each row as there are names."""
    (block,) = [one for one in parse(tmp_path / "a") if one.text]
    lines = ["(In millions)\t2022\t2021", "Services\t$18.1\t$751,473", "Net loss\t(4,935)\t—"]
    assert block.text.splitlines() == lines
