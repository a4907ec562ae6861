"""Tables in PDF and DOCX: rows stay rows below the names of their columns, and are found by a cell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

from builtin_plugins.rag.chunking import chunk
from builtin_plugins.rag.parsing import from_docx, from_pdf, from_xlsx
from builtin_plugins.rag.parsing.blocks import Block
from kernel.testing import Running
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, somebody

ROWS = [
    ["Model", "Weight", "Price"],
    ["Aurora 2", "2.5 kg", "1,200 EUR"],
    ["Aurora 3", "3.1 kg", "1,950 EUR"],
    ["polar max", "12 kg", "4,000 EUR"],
]
BEFORE = "The price list of the season follows below, with all models that are sold in the shops. " * 3
AFTER = "every price includes taxes and the journey, and holds until the end of the year."
STYLES: dict[str, list[tuple[Any, ...]]] = {
    "plain": [],
    "grid": [("GRID", (0, 0), (-1, -1), 0.5, colors.black)],
    "right": [("ALIGN", (0, 0), (-1, -1), "RIGHT")],
    "centred": [("ALIGN", (0, 0), (-1, -1), "CENTER")],
}


def pdf(path: Path, rows: Sequence[Sequence[str]], style: str = "grid") -> Path:
    table, text = Table(rows), getSampleStyleSheet()["Normal"]
    if STYLES[style]:
        table.setStyle(TableStyle(STYLES[style]))
    SimpleDocTemplate(str(path)).build([Paragraph(BEFORE, text), table, Paragraph(AFTER, text)])
    return path


def word(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    document = docx.Document()
    document.add_paragraph(BEFORE)
    table = document.add_table(len(rows), len(rows[0]))
    for row, cells in zip(table.rows, rows, strict=True):
        for cell, value in zip(row.cells, cells, strict=True):
            cell.text = value
    document.add_paragraph(AFTER)
    document.save(str(path))
    return path


def workbook(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("style", STYLES)
def test_rows_of_a_pdf(tmp_path: Path, style: str) -> None:
    """However the cells are aligned; the text around them stays prose."""
    (block,) = from_pdf.parse(pdf(tmp_path / "t.pdf", ROWS, style))
    lines = block.text.splitlines()
    assert ["\t".join(row) for row in ROWS] == lines[1:-1]
    assert lines[0] == BEFORE.strip() and lines[-1] == AFTER


def test_a_long_table_of_a_pdf(tmp_path: Path) -> None:
    """The names of its columns come again after some rows."""
    rows = [ROWS[0], *([f"pump {number}", f"{number} kg", f"{number}0 EUR"] for number in range(1, 61))]
    text = "\n".join(block.text for block in from_pdf.parse(pdf(tmp_path / "t.pdf", rows)))
    lines = [line for line in text.splitlines() if "\t" in line]
    assert [line for line in lines if line.startswith("pump")] == ["\t".join(row) for row in rows[1:]]
    heads = [at for at, line in enumerate(lines) if line.startswith("Model")]
    assert len(heads) >= 2 and max(b - a for a, b in pairwise(heads)) <= 41


@pytest.mark.parametrize("kind", ["pdf", "docx", "xlsx"])
def test_no_passage_has_rows_without_the_names_of_their_columns(tmp_path: Path, kind: str) -> None:
    """Rows as long as sentences: a passage holds few of them, and begins with the names."""
    make = {"pdf": pdf, "docx": word, "xlsx": workbook}[kind]
    parse = {"pdf": from_pdf.parse, "docx": from_docx.parse, "xlsx": from_xlsx.parse}[kind]
    name = f"pump {{}} for {'wide ' * 6}wells"
    pumps = [[name.format(number), f"{number} kg", f"{number}0 EUR"] for number in range(1, 61)]
    found = parse(make(tmp_path / f"t.{kind}", [ROWS[0], *pumps]))
    blocks = [one if isinstance(one, Block) else Block(str(one)) for one in found]
    passages = [one.text.splitlines() for one in chunk(blocks, 1500, 150)]
    tables = [[line for line in lines if "\t" in line] for lines in passages]
    assert sum(line.startswith("pump") for lines in tables for line in lines) == 60
    assert len(tables) > 2 and all(lines[0].startswith("Model") for lines in tables if lines)


def test_prose_in_two_columns_is_no_table(tmp_path: Path) -> None:
    """A list of words with wide gaps in one line alone, and lines of prose, stay as they are."""
    (block,) = from_pdf.parse(pdf(tmp_path / "t.pdf", [["One line alone", "with a gap"]]))
    assert "\t" not in block.text


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("kind", ["pdf", "docx"])
async def test_a_question_about_a_cell_is_answered_by_its_row(
    running: Running, tmp_path: Path, kind: str
) -> None:
    """Not by the whole table."""
    rows = [*ROWS, *([f"Boreas {number}", f"{number} kg", f"{number},500 EUR"] for number in range(5, 60))]
    path = pdf(tmp_path / "a.pdf", rows) if kind == "pdf" else word(tmp_path / "a.docx", rows)
    ann = await somebody(running)
    base = await make_base(ann)
    assert (await ingest(running, ann, base, path.name, path.read_bytes()))["status"] == "completed"
    pipeline = await make_pipeline(ann, base)
    for question, right, wrong in (
        ("What is the weight of the Aurora 3?", "3.1 kg", "2.5 kg"),
        ("What does the Boreas 47 weigh?", "47 kg", "46 kg"),
    ):
        answer = (await ask(ann, pipeline, question))["answer"]
        assert right in answer and "Weight" in answer and wrong not in answer
