"""Tables in PDF, DOCX and HTML: rows stay rows below the names of their columns, and are found by a cell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.chunking import chunk
from builtin_plugins.documents.markup import from_html
from builtin_plugins.documents.office import from_docx, from_odt, from_xlsx, ooxml
from builtin_plugins.documents.pdf import from_pdf
from builtin_plugins.documents.tables import portions
from builtin_plugins.documents.text import from_csv
from builtin_plugins.rag.answering.sentences import split_sentences
from kernel.testing import Running
from tests.builtin_plugins.documents.sample_documents import open_document
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


def page(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """A web page whose cells hold paragraphs, as Word and documentation tools write them."""
    head, *below = rows
    lines = ["".join(f"<th><p>{name}</p></th>" for name in head)]
    lines += ["".join(f"<td><p>{cell}</p></td>" for cell in row) for row in below]
    table = "".join(f"<tr>{line}</tr>\n" for line in lines)
    path.write_text(f"<p>{BEFORE}</p><table><caption>Prices</caption>{table}</table><p>{AFTER}</p>")
    return path


def text(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    lines = ("".join(map(cell.format, row)) for row in rows)
    table = "".join(f"<table:table-row>{line}</table:table-row>" for line in lines)
    body = f"<text:p>{BEFORE}</text:p><table:table>{table}</table:table><text:p>{AFTER}</text:p>"
    return open_document(path, body)


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
    rows = [ROWS[0], *([f"pump {number}", f"{number} kg", f"{number}0 EUR"] for number in range(1, 61))]
    text = "\n".join(block.text for block in from_pdf.parse(pdf(tmp_path / "t.pdf", rows)))
    lines = [line for line in text.splitlines() if "\t" in line]
    assert [line for line in lines if line.startswith("pump")] == ["\t".join(row) for row in rows[1:]]
    heads = [at for at, line in enumerate(lines) if line.startswith("Model")]
    assert len(heads) >= 2 and max(b - a for a, b in pairwise(heads)) <= 41


@pytest.mark.parametrize("kind", ["pdf", "docx", "xlsx", "html", "odt"])
def test_no_passage_has_rows_without_the_names_of_their_columns(tmp_path: Path, kind: str) -> None:
    make = {"pdf": pdf, "docx": word, "xlsx": workbook, "html": page, "odt": text}[kind]
    parsers = (from_pdf, from_docx, from_xlsx, from_html, from_odt)
    parse = {parser.__name__.rpartition("_")[2]: parser.parse for parser in parsers}[kind]
    name = f"pump {{}} for {'wide ' * 6}wells"
    pumps = [[name.format(number), f"{number} kg", f"{number}0 EUR"] for number in range(1, 61)]
    found = parse(make(tmp_path / f"t.{kind}", [ROWS[0], *pumps]))
    blocks = [one if isinstance(one, Block) else Block(str(one)) for one in found]
    passages = [one.text.splitlines() for one in chunk(blocks, 1500, 150)]
    tables = [[line for line in lines if "\t" in line] for lines in passages]
    assert sum(line.startswith("pump") for lines in tables for line in lines) == 60
    assert len(tables) > 2 and all(lines[0].startswith("Model") for lines in tables if lines)


def test_merged_cells_of_a_word_document(tmp_path: Path) -> None:
    """Values stay below the names of their columns, and each row has the name that several of them share."""
    document = docx.Document()
    table = document.add_table(4, 4)
    rows = [
        ["Team", "Price", "", "Tax"],
        ["Red", "1", "2", "3"],
        ["", "4", "5", "6"],
        ["Blue", "7", "8", "9"],
    ]
    for row, cells in zip(table.rows, rows, strict=True):
        for cell, value in zip(row.cells, cells, strict=True):
            cell.text = value
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(1, 0).merge(table.cell(2, 0))
    document.save(str(tmp_path / "t"))
    (block,) = from_docx.parse(tmp_path / "t")
    assert block.text.splitlines() == ["Team\tPrice\t\tTax", "Red\t1\t2\t3", "Red\t4\t5\t6", "Blue\t7\t8\t9"]


def test_cells_of_a_word_document_as_they_are_now(tmp_path: Path) -> None:
    """Columns that a tracked change took from a cell move no other one, nor do more than anybody can see."""
    document = docx.Document()
    table = document.add_table(1, 3)
    for cell, value in zip(table.rows[0].cells, "abc", strict=True):
        cell.text = value
    for cell, number in zip(table.rows[0].cells, (3, 100_000), strict=False):
        cell._tc.get_or_add_tcPr().append(parse_xml(f'<w:gridSpan {nsdecls("w")} w:val="{number}"/>'))
    before = '<w:tcPr><w:gridSpan w:val="9"/></w:tcPr>'
    change = parse_xml(f'<w:tcPrChange {nsdecls("w")} w:id="1" w:author="A">{before}</w:tcPrChange>')
    table.rows[0].cells[0]._tc.get_or_add_tcPr().append(change)
    document.save(str(tmp_path / "t"))
    (block,) = from_docx.parse(tmp_path / "t")
    assert block.text == "a\t\t\tb" + "\t" * 197 + "c"


def test_rows_of_a_word_document_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a long row of names, a portion has many: measured with each row, they would take their square."""
    measured = []

    def counted(row: Sequence[str]) -> int:
        measured.append(row)
        return portions.size_of(row)

    monkeypatch.setattr(ooxml, "size_of", counted)
    rows = [["n" * 9_000, "m"], *[["x", "1"]] * 60]
    (block,) = (one for one in from_docx.parse(word(tmp_path / "t", rows)) if "\t" in one.text)
    assert block.text.count("x\t1") == 60 and len(measured) <= 2 * len(rows)


def test_a_page_repeats_little_of_what_spans_its_rows() -> None:
    names = "".join(f"<td rowspan=1000>{n:190}</td>".replace("  ", " x") for n in range(100))
    found = list(from_html.blocks_of([f"<table><tr>{names}</tr>{'<tr><td>value</tr>' * 500}</table>"]))
    assert sum(block.text.count("value") for block in found) == 500
    assert sum(len(block.text) for block in found) < 500 * 600


def test_prose_in_two_columns_is_no_table(tmp_path: Path) -> None:
    """A list of words with wide gaps in one line alone, and lines of prose, stay as they are."""
    (block,) = from_pdf.parse(pdf(tmp_path / "t.pdf", [["One line alone", "with a gap"]]))
    assert "\t" not in block.text


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("kind", ["pdf", "docx", "html"])
async def test_a_question_about_a_cell_is_answered_by_its_row(
    running: Running, tmp_path: Path, kind: str
) -> None:
    rows = [*ROWS, *([f"Boreas {number}", f"{number} kg", f"{number},500 EUR"] for number in range(5, 60))]
    path = {"pdf": pdf, "docx": word, "html": page}[kind](tmp_path / f"a.{kind}", rows)
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


def test_rows_with_empty_cells(tmp_path: Path) -> None:
    """A cell that is empty moves no other one, and the names of the columns stay above all rows."""
    rows = [["Model", "Weight", "Price", "Remark"]]
    rows += [
        [f"Model {n}", "" if n % 4 == 1 else f"{n} kg", f"{n}.50 EUR", "" if n % 3 else "sold out"]
        for n in range(100, 180)
    ]
    texts = [block.text for block in from_pdf.parse(pdf(tmp_path / "a.pdf", rows))]
    lines = [line for text in texts for line in text.split("\n") if "\t" in line]
    names = "\t".join(rows[0])
    assert [line for line in lines if line != names] == ["\t".join(row).rstrip() for row in rows[1:]]
    for passage in chunk([Block(text, page) for page, text in enumerate(texts, 1)], 1500, 150):
        if "EUR" in passage.text:
            assert names in passage.text


CSV_NAMES = [
    ("Country,2019,2020\nPeru,1,2\nChad,3,4\n", ["Country: Peru\n2019: 1\n2020: 2"]),
    ("id,,name\n1,x,Ann\n2,,Bob\n", ["id: 1\ncolumn 2: x\nname: Ann"]),
    ("name,sum,sum\nAnn,1,2\nBob,3,4\n", ["name: Ann\nsum: 1\nsum: 2"]),
    ("sep=;\nName;Town\nAnn;Oslo\nBob;Rome\n", ["Name: Ann\nTown: Oslo"]),
    ("Report 2024;;\n;;\nName;Town;Age\nAnn;Oslo;3\n", ["Report 2024", "Name: Ann\nTown: Oslo\nAge: 3"]),
    ("Ann,2019,2020\nBob,2018,2021\n", ["column 1: Ann\ncolumn 2: 2019\ncolumn 3: 2020"]),
    ("1,2\n3,4\n", ["column 1: 1\ncolumn 2: 2"]),
    (",size\n0,12\n1,13\n", ["column 1: 0\nsize: 12"]),
    ("note\nfine\nnice, too\nbad\ngone\n", ["note: fine", "note: nice\ncolumn 2: too", "note: bad"]),
    ("Stock of 2024\nName;Town\nAnn;Oslo\nBob;Rome\n", ["Stock of 2024", "Name: Ann\nTown: Oslo"]),
    ("T\n" * 11 + "a,b\n1,2\n", [*"T" * 11, "a: 1\nb: 2"]),
    ('sep="\na,b\n1,2\n', ['sep="', "a: 1\nb: 2"]),
]


@pytest.mark.parametrize(("source", "expected"), CSV_NAMES)
def test_names_of_columns_in_csv(tmp_path: Path, source: str, expected: list[str]) -> None:
    """Years, gaps and repetitions among the names, titles above them, and Excel's line on the delimiter; what
    is no title, though it stands alone.
    """
    (tmp_path / "a.csv").write_text(source)
    assert [block.text for block in from_csv.parse(tmp_path / "a.csv")][: len(expected)] == expected


def test_title_above_the_names_of_a_sheet(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [["Stock of 2024"], [], ["Name", "Town"]])
    book = openpyxl.load_workbook(path)
    for number in range(200):
        book.active.append([f"Keeper {number}", "Oslo"])
    book.save(path)
    texts = [block.text for block in from_xlsx.parse(path)]
    assert texts[1] == "Stock of 2024" and len(texts) > 4
    assert texts[2].startswith("Name\tTown\nKeeper")
    assert all(text.startswith("Stock of 2024\nName\tTown\nKeeper") for text in texts[3:])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<tr><td>a<br>b</td><td><ul><li>c<li>d</ul></td></tr>", ["a b\tc d"]),
        ("<tr><th></th><th>2023</th></tr><tr><td>Rent</td><td>5</td></tr>", ["2023\nRent\t5"]),
        ("<tr><td></td><td>2023</td><td>2024</td></tr><tr><td>Rent<td>5<td>6", ["\t2023\t2024\nRent\t5\t6"]),
        ("<tr><td><h2>News</h2><p>One.</p><p>Two.</p></td></tr>", ["News", "One.", "Two."]),
        (f"<tr><td><p>{BEFORE}</p><p>{AFTER}</p></td><td>menu</td></tr>", [BEFORE.strip(), AFTER, "menu"]),
        ("<tr><td><pre>1\n2</pre></td><td><pre>a = 1\nb = 2</pre></td></tr>", ["1\n2", "a = 1\nb = 2"]),
        ("<tr><td><table><tr><td>in<td>ner</table></td><td>out</td></tr>", ["in\tner", "out"]),
        (
            "<tr><td rowspan=2>Red<td>Ann<td>31<tr><td>Bob<td>32<tr><td>Blue",
            ["Red\tAnn\t31\nRed\tBob\t32\nBlue"],
        ),
        (
            "<tr><th>Model<th colspan=2>Price<th>Tax<tr><td>A<td>1<td>2<td>3",
            ["Model\tPrice\t\tTax\nA\t1\t2\t3"],
        ),
        ("<tr><td rowspan='-9' colspan='x'>a<td colspan=''>b<tr><td>c", ["a\tb\nc"]),
        ("<tr><td>One<br>line,<br>another</td></tr>", ["One\nline,\nanother"]),
        ("<tr><td rowspan=2>a<td rowspan=2>b</tr><tr></tr><tr><td>c<td>d", ["a\tb\nc\td"]),
        (
            "<thead><tr><th rowspan=2>Team<th>Age</thead><tbody><tr><td>Red<td>3<tr><td>Blue<td>4",
            ["Team\tAge\nRed\t3\nBlue\t4"],
        ),
        (
            "<tbody><tr><td rowspan=0>a<td>b<tr><td>c<tr><td>d<tbody><tr><td>e<td>f",
            ["a\tb\na\tc\na\td\ne\tf"],
        ),
        ("<tr><td>x<td><table><tr><td rowspan=9>in<td>ner</table><tr><td>y<td>z", ["x", "in\tner", "y\tz"]),
        (
            f"<tr><td rowspan=2>{'long ' * 50}<td>a<td>1<tr><td>b<td>2",
            [f"{('long ' * 50).strip()}\ta\t1\n\tb\t2"],
        ),
        (
            "<tr><td rowspan=9 colspan=999999999>a<td>b<tr><td>c",
            ["a" + "\t" * 200 + "b\na" + "\t" * 200 + "c"],
        ),
    ],
)
def test_cells_of_a_page(source: str, expected: list[str]) -> None:
    """What parts the text of a cell doesn't part its row, unless the table only arranges paragraphs."""
    assert [block.text for block in from_html.blocks_of([f"<table>{source}</table>"])] == expected


@pytest.mark.parametrize(
    "table", ["\t2023\t2024\nRent\t5\t6", "|  | 2023 | 2024 |\n|--|--|--|\n| Rent | 5 | 6 |"]
)
def test_years_above_an_empty_corner_name_columns(table: str) -> None:
    assert split_sentences(table)[-1].text == "Rent 2023: 5; 2024: 6"


def test_text_between_the_cells_of_a_page_is_kept() -> None:
    (block,) = from_html.blocks_of(["stray<td rowspan=2>a<td>b</td> more"])
    assert block.text.split() == ["stray", "a", "b", "more"]


def test_names_over_several_rows_are_one(tmp_path: Path) -> None:
    """Below a head of two rows, each portion begins with names that say both; a title stands above them."""
    years = "<th colspan=2>2023</th><th colspan=2>2024</th>"
    kinds = "<th>Wind</th><th>Solar</th>" * 2
    rows = "".join(
        f"<tr><td>R{n}</td><td>{n}</td><td>{n}1</td><td>{n}2</td><td>{n}3</td></tr>" for n in range(60)
    )
    head = f"<tr><th colspan=5>Energy</th></tr><tr><th rowspan=2>Region</th>{years}</tr><tr>{kinds}</tr>"
    title, *portions_found = (
        block.text for block in from_html.blocks_of([f"<table><thead>{head}</thead>{rows}</table>"])
    )
    assert title == "Energy" and len(portions_found) > 1
    names = "Region\t2023 Wind\t2023 Solar\t2024 Wind\t2024 Solar"
    assert portions_found[0].startswith(f"{names}\n")
    assert all(text.startswith(f"Energy\n{names}\n") for text in portions_found[1:])
    assert portions_found[0].split("\n")[1] == "R0\t0\t01\t02\t03"


def test_a_table_of_names_alone_keeps_its_rows() -> None:
    """Rows that are all heads, with nothing below them, are not joined; nor are names beside values."""
    for rows in ("<tr><th>X</th><th>Y</th></tr>" * 2, "<tr><th>X</th><td>Y</td></tr>" * 2):
        (block,) = from_html.blocks_of([f"<table>{rows}</table>"])
        assert block.text == "X\tY\nX\tY"


def test_titles_above_a_single_column() -> None:
    found = from_html.blocks_of(["<table><tr><th>A</th></tr><tr><th>B</th></tr><tr><td>c</td></tr></table>"])
    assert [block.text for block in found] == ["A\nB", "c"]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("10<sup>6</sup> cells", "10^6 cells"),
        ("10<sup>-3</sup> m", "10^-3 m"),
        ("85<sup><a href=#n>2</a></sup> euro", "85^2 euro"),
        ("5 m<sup>2</sup>, the 1<sup>st</sup>", "5 m2, the 1st"),
    ],
)
def test_superscript_is_no_digit_of_the_number_before(tmp_path: Path, raised: str, expected: str) -> None:
    """A power or the mark of a footnote does not make another number of it, in a page and in Word."""
    (block,) = from_html.blocks_of([f"<p>{raised}</p>"])
    assert block.text == expected

    def build(document: Any) -> None:
        paragraph = document.add_paragraph()
        for part in raised.replace("<a href=#n>", "").replace("</a>", "").split("<sup>"):
            inside, mark, after = part.partition("</sup>")
            paragraph.add_run(inside).font.superscript = True if mark else None
            paragraph.add_run(after)

    document = docx.Document()
    build(document)
    document.save(str(tmp_path / "a.docx"))
    assert expected in [block.text for block in from_docx.parse(tmp_path / "a.docx")]
