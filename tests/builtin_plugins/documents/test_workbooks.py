"""Cells of a workbook say what they show: shares in per cent, sums with their currency, days as days."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import openpyxl
import pytest
from openpyxl.comments import Comment
from openpyxl.worksheet.worksheet import Worksheet

from builtin_plugins.documents.office import from_xlsx
from tests.builtin_plugins.documents.sample_documents import rewrite


def book(path: Path, value: object, number_format: str | None = None) -> Path:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.append(["Name"])
    sheet.append([value])
    if number_format:
        sheet.cell(2, 1).number_format = number_format
    buffer = io.BytesIO()
    workbook.save(buffer)
    path.write_bytes(buffer.getvalue())
    return path


def shown(path: Path) -> str:
    return [block.text for block in from_xlsx.parse(path)][1].split("\n")[1]


@pytest.mark.parametrize(
    ("value", "number_format", "expected"),
    [
        (0.125, "0%", "12.5%"),
        (0.07, "0.00%", "7%"),
        (1200.5, "#,##0.00 €", "1200.5 €"),
        (99, '"$"#,##0', "99 $"),
        (99, "$#,##0_);($#,##0)", "99 $"),
        (99, "[$€-407] #,##0", "99 €"),
        (99, "[$CHF-807] #,##0", "99 CHF"),
        (99, "[$-409]#,##0", "99"),
        (99, '0 "% of all"', "99 % of all"),
        (99.5, '0.0" kg"', "99.5 kg"),
        (1234, "00000", "01234"),
        (1_234_000, "#,##0,", "1234"),
        (5_600_000, '0.0,,"M"', "5.6 M"),
        (-5, '0;"loss "0', "-5"),
        (1, '"yes";"yes";"no"', "yes"),
        (0, '"yes";"yes";"no"', "no"),
        (-3, "#,##0_);(#,##0)", "-3"),
        (7, '[<5]"few";0', "7"),
        (3, '[<5]"few";0', "few"),
        (2500, '[>=1000]0.0,"K";[<0]"owed";0', "2.5 K"),
        (-4, '[>=1000]0.0,"K";[<0]"owed";0', "owed"),
        (12, '[>=1000]0.0,"K";[<0]"owed";0', "12"),
        (-4, '[>100]"many";"below";0', "below"),
        (1, '[=1]"yes";[=0]"no"', "yes"),
        (0, '[Red][=1]"yes";[=0]"no"', "no"),
        (2, '[=1]"yes";[=0]"no"', "2"),
        (1.5, "# ?/?", "1 1/2"),
        (0.75, "# ?/?", "3/4"),
        (-2.25, "# ??/??", "-2 1/4"),
        (2, "# ?/?", "2"),
        (1.5, "?/?", "3/2"),
        (0.5, "# ?/8", "4/8"),
        (3.14159265, "# ???/???", "3 16/113"),
        (2.5, '# ?/?" in"', "2 1/2 in"),
        (5551234567, "(000) 000-0000", "(555) 123-4567"),
        (5551234, "[<=9999999]###\\-####;\\(###\\)\\ ###\\-####", "555-1234"),
        (5551234567, "[<=9999999]###\\-####;\\(###\\)\\ ###\\-####", "(555) 123-4567"),
        (123456789, "000-00-0000", "123-45-6789"),
        (21045678, "00000\\-0000", "02104-5678"),
        (1234567, "# ##0", "1234567"),
        (99, None, "99"),
        (date(2024, 5, 1), None, "2024-05-01"),
        (datetime(2024, 5, 1, 13, 30), None, "2024-05-01 13:30:00"),
        (datetime(2024, 5, 1, 7, 59, 59, 999_000), None, "2024-05-01 08:00:00"),
        (timedelta(hours=26, minutes=5), None, "26:05:00"),
        (timedelta(minutes=-90), None, "-1:30:00"),
        (True, None, "True"),
        (0.1 + 0.2, None, "0.3"),
        (1200.0, None, "1200"),
        (3.14159265, "0.00", "3.14"),
        (19.9899999, "#,##0.00 [$€-407]", "19.99 €"),
        (0.23456, "0.0%", "23.5%"),
        (0.00004, "0.00", "4e-05"),
        (123456.789, "0.00E+00", "123456.789"),
        ("one_x000D_\ntwo", None, "one two"),
        ("file_x0041_", None, "fileA"),
    ],
)
def test_values_as_they_are_shown(
    tmp_path: Path, value: object, number_format: str | None, expected: str
) -> None:
    assert shown(book(tmp_path / "a.xlsx", value, number_format)) == expected


def test_style_that_is_not_there(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", 7, "0%")
    rewrite(path, lambda name, data: data.replace(b' s="1"', b' s="77"'))
    assert shown(path) == "7"


def test_faulty_styles(tmp_path: Path) -> None:
    """A font or a name that the standard forbids costs nothing: programs open such files, too."""
    path = book(tmp_path / "a.xlsx", 0.125, "0%")

    def spoil(name: str, data: bytes) -> bytes:
        if name == "docProps/core.xml":
            return data.replace(b"T", b" ")
        return data.replace(b"<xf ", b'<xf own="1" ').replace(b' name="Normal"', b"")

    rewrite(path, spoil)
    assert shown(path) == "12.5%"


def test_strict_workbook(tmp_path: Path) -> None:
    """Excel can save with the names of ISO/IEC 29500 Strict."""
    path = book(tmp_path / "a.xlsx", date(2024, 5, 1))
    names = {
        b"http://schemas.openxmlformats.org/spreadsheetml/2006/main": (
            b"http://purl.oclc.org/ooxml/spreadsheetml/main"
        ),
        b"http://schemas.openxmlformats.org/officeDocument/2006/relationships": (
            b"http://purl.oclc.org/ooxml/officeDocument/relationships"
        ),
    }

    def strict(_: str, data: bytes) -> bytes:
        for usual, own in names.items():
            data = data.replace(usual, own)
        return data

    rewrite(path, strict)
    assert shown(path) == "2024-05-01"


def sheets(path: Path, build: Callable[[Worksheet], object]) -> list[str]:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert isinstance(sheet, Worksheet)
    build(sheet)
    workbook.save(path)
    return [block.text for block in from_xlsx.parse(path)][1:]


def test_names_below_a_merged_cell(tmp_path: Path) -> None:
    def build(sheet: Worksheet) -> None:
        sheet.append(["Region", "2023", None, "2024", None])
        sheet.append([None, "Wind", "Sun", "Wind", "Sun"])
        for one in ("A1:A2", "B1:C1", "D1:E1"):
            sheet.merge_cells(one)
        for number in range(40):
            sheet.append([f"Region {number}", number, number + 1, number + 2, number + 3])

    portions = sheets(tmp_path / "a.xlsx", build)
    assert len(portions) > 1
    names = "Region\t2023 Wind\t2023 Sun\t2024 Wind\t2024 Sun"
    assert {portion.split("\n")[0] for portion in portions} == {names}
    assert sum(portion.count("Region 7\t7\t8\t9\t10") for portion in portions) == 1


def test_tables_below_each_other(tmp_path: Path) -> None:
    """Rows of a second table are not below the names of the first; a gap within a table changes nothing."""

    def build(sheet: Worksheet) -> None:
        sheet.append(["Harbours"])
        sheet.append([])
        sheet.append(["Harbour", "Berths"])
        sheet.append(["Lund", 12])
        sheet.append([])
        sheet.append(["Malmo", 40])
        sheet.append([])
        sheet.append(["Ferries"])
        sheet.append([])
        sheet.append(["Ferry", "Seats"])
        for number in range(60):
            sheet.append([f"Ferry {number}", 100 + number])

    titles, harbours, *ferries = sheets(tmp_path / "a.xlsx", build)
    assert titles == "Harbours"
    assert harbours == "Harbour\tBerths\nLund\t12\nMalmo\t40"
    assert ferries[0] == "Ferries"
    assert len(ferries) > 2
    assert ferries[1].startswith("Ferry\tSeats\n")
    assert all(portion.startswith("Ferries\nFerry\tSeats\n") for portion in ferries[2:])


@pytest.mark.parametrize(
    "row", [["Total", 52], ["Norway", 1960, 1961], ["A-12", "closed"], ["", "closed"], ["Malmo", ""]]
)
def test_rows_below_a_gap(tmp_path: Path, row: list[object]) -> None:
    """A row with a total, years, a number in a name, or empty cells is not taken for names."""

    def build(sheet: Worksheet) -> None:
        for one in (["Harbour", "From", "To"], ["Lund", 1912, 1930], [], row, ["A-13", 1940, 1951]):
            sheet.append(one)

    assert len(sheets(tmp_path / "a.xlsx", build)) == 1


def test_huge_number_format(tmp_path: Path) -> None:
    """A format beyond Excel's limit of 255 characters is ignored."""
    assert shown(book(tmp_path / "a.xlsx", 7.5, "[" * 1_000_000)) == "7.5"


def test_unclosed_merged_cells(tmp_path: Path) -> None:
    """A megabyte of them is searched once."""
    path = book(tmp_path / "a.xlsx", 7)
    unclosed = b"<!--" + b"<mergeCell " * 100_000 + b"--></sheetData>"
    rewrite(path, lambda _, data: data.replace(b"</sheetData>", unclosed))
    assert shown(path) == "7"


def test_comments(tmp_path: Path) -> None:
    """A comment is read below its sheet, with the name of its cell."""

    def build(sheet: Worksheet) -> None:
        sheet.append(["Berths", 12])
        sheet["B1"].comment = Comment("Without the\ntwo that are closed.", "Ann")

    assert sheets(tmp_path / "a.xlsx", build)[1:] == ["B1: Without the two that are closed."]


def test_threads_of_comments(tmp_path: Path) -> None:
    """Excel repeats each thread as a comment for old programs, below a hint; a part is read once."""

    def build(sheet: Worksheet) -> None:
        sheet.append(["Berths", 12])
        sheet["A1"].comment = Comment("As of May.", "Ann")
        sheet["B1"].comment = Comment("[Threaded comment] Your version of Excel ... Comment: Closed?", "Ann")

    path = tmp_path / "a.xlsx"
    sheets(path, build)
    kind = b"http://schemas.microsoft.com/office/2017/10/relationships/threadedComment"
    relation = b'<Relationship Id="rId9" Type="%b" Target="/xl/threads.xml"/></Relationships>' % kind

    def thread(name: str, data: bytes) -> bytes:
        if not name.endswith("sheet1.xml.rels"):
            return data
        return re.sub(rb"<Relationship [^>]*comments[^>]*/>", rb"\g<0>\g<0>", data).replace(
            b"</Relationships>", relation
        )

    rewrite(path, thread)
    names = "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"
    with zipfile.ZipFile(path, "a") as archive:
        replies = "".join(
            f'<threadedComment ref="B1"><text>{text}</text></threadedComment>' for text in ("Closed?", "Yes.")
        )
        archive.writestr("xl/threads.xml", f'<ThreadedComments xmlns="{names}">{replies}</ThreadedComments>')
    texts = [block.text for block in from_xlsx.parse(path)]
    assert texts[2:] == ["B1: Closed?", "B1: Yes.", "A1: As of May."]


def test_texts_that_cells_share(tmp_path: Path) -> None:
    """Texts with formatted runs are whole, without how Asian letters sound; escapes are decoded once."""
    path = book(tmp_path / "a.xlsx", "x")
    texts = (
        '<x:t xml:space="preserve">Two </x:t>',
        "<x:r><x:rPr><x:b/></x:rPr><x:t>wo</x:t></x:r><x:r><x:t>rds &amp; more</x:t></x:r>",
        '<x:t>\u6771\u4eac</x:t><x:rPh sb="0" eb="2"><x:t>\u30c8</x:t></x:rPh>',
        "",
        "<x:t>_x005F_x0041_ _x0041_</x:t>",
    )
    shared = "".join(f"<x:si>{text}</x:si>" for text in texts)
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    cells = "".join(f'<c t="s"><v>{number}</v></c>' for number in range(len(texts)))
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    part = f'<Override PartName="/xl/shared.xml" ContentType="{kind}"/></Types>'
    sheet = f'<worksheet xmlns="{space}"><sheetData><row>{cells}</row></sheetData></worksheet>'

    def change(name: str, data: bytes) -> bytes:
        if name.endswith("sheet1.xml"):
            return sheet.encode()
        return data.replace(b"</Types>", part.encode()) if name == "[Content_Types].xml" else data

    rewrite(path, change)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/shared.xml", f'<x:sst xmlns:x="{space}">{shared}</x:sst>')
    row = [block.text for block in from_xlsx.parse(path)][1]
    assert row == "Two\twords & more\t\u6771\u4eac\t\t_x0041_ A"


YEARS = ["Region\t2023 Wind\t2023 Sun\t2024 Wind\t2024 Sun\nLund\t12\t7\t14\t8"]
HARBOURS = [["Harbour", "Berths"], ["Lund", 12], []]
TABLES: dict[str, tuple[list[list[object]], str, list[str]]] = {
    "a row of values below a merged name": (
        [["Region", "Output", None], ["Lund", 12, 7.5], ["Malmo", 40, 8]],
        "B1:C1",
        ["Region\tOutput\tOutput\nLund\t12\t7.5\nMalmo\t40\t8"],
    ),
    "years that are written once": (
        [
            ["Region", "2023", None, "2024", None],
            [None, "Wind", "Sun", "Wind", "Sun"],
            ["Lund", 12, 7, 14, 8],
        ],
        "",
        YEARS,
    ),
    "a group above the names": (
        [
            [None, "2023", None, "2024", None],
            ["Region", "Wind", "Sun", "Wind", "Sun"],
            ["Lund", 12, 7, 14, 8],
        ],
        "",
        YEARS,
    ),
    "a merged group above the names": (
        [
            [None, "2023", None, "2024", None],
            ["Region", "Wind", "Sun", "Wind", "Sun"],
            ["Lund", 12, 7, 14, 8],
        ],
        "B1:C1 D1:E1",
        YEARS,
    ),
    "one group of some columns": (
        [[None, "Output", None], ["Region", "Wind", "Sun"], ["Lund", 12, 7.5]],
        "B1:C1",
        ["Region\tOutput Wind\tOutput Sun\nLund\t12\t7.5"],
    ),
    "values that repeat": (
        [["Task", "Done", "Checked"], [None, "yes", "yes"], ["Moor", "yes", "no"]],
        "",
        ["Task\tDone\tChecked\n\tyes\tyes\nMoor\tyes\tno"],
    ),
    "a cell merged over rows": (
        [["Region", "Harbour"], ["North", "Lund"], [None, "Malmo"], [None, "Ystad"], ["South", "Kiel"]],
        "A2:A4",
        ["Region\tHarbour\nNorth\tLund\nNorth\tMalmo\nNorth\tYstad\nSouth\tKiel"],
    ),
    **{
        f"a second table of {what}": (
            [*HARBOURS, *rows],
            "",
            ["Harbour\tBerths\nLund\t12", "\n".join("\t".join(map(str, row)) for row in rows)],
        )
        for what, rows in {
            "people": [["", "Person", "Age"], ["", "Ann", 30]],
            "years": [["Country", 2022, 2023], ["Norway", 7, 8]],
            "quarters": [["Country", "Q1", "Q2"], ["Norway", 7, 8]],
            "two dimensions": [["", "East", "West"], ["Bolts", 7, 8]],
            "rows that end early": [["Person", "Age", "Remark"], ["Ann", 30]],
        }.items()
    },
}


@pytest.mark.parametrize(("rows", "merged", "expected"), TABLES.values(), ids=TABLES)
def test_names_of_columns(tmp_path: Path, rows: list[list[object]], merged: str, expected: list[str]) -> None:
    def build(sheet: Worksheet) -> None:
        for row in rows:
            sheet.append(row)
        for cells in merged.split():
            sheet.merge_cells(cells)

    assert sheets(tmp_path / "a.xlsx", build) == expected


def test_columns_far_apart(tmp_path: Path) -> None:
    """Empty columns between two that are filled take no room: with a tab for each of them on every row, a
    workbook of a megabyte had more text than a document may. Where such a column is filled, it has its place.
    """
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.cell(1, 1, "Berth")
    sheet.cell(1, 900, "Fee")
    for number in range(2, 302):
        sheet.cell(number, 1, f"North {number}")
        sheet.cell(number, 900, number)
    sheet.cell(301, 400, "closed")
    path = tmp_path / "far.xlsx"
    workbook.save(path)
    texts = [block.text for block in from_xlsx.parse(path)][1:]
    assert texts[0].startswith("Berth\tFee\nNorth 2\t2\nNorth 3\t3\n")
    assert texts[-1].startswith("Berth\t\tFee\n") and texts[-1].endswith("\nNorth 301\tclosed\t301")
    assert len("\n".join(texts)) < 6_000
    assert all(len(text) > 300 for text in texts[:-1])


def test_a_few_empty_columns_stay(tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    for row in (["Berth", None, None, "Fee"], ["North 1", None, None, 12], ["North 2", None, None, 15]):
        sheet.append(row)
    path = tmp_path / "near.xlsx"
    workbook.save(path)
    assert [block.text for block in from_xlsx.parse(path)][1] == (
        "Berth\t\t\tFee\nNorth 1\t\t\t12\nNorth 2\t\t\t15"
    )
