"""Old and binary Excel workbooks: a sheet is a page, a row a tab-separated line."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

import python_calamine
import xlrd

from builtin_plugins.documents.api import (
    Block,
    Layout,
    Merged,
    UnparsableDocument,
    date_text,
    duration_text,
    number_text,
    omit,
    sheet_blocks,
    shown_as,
)
from builtin_plugins.old_office.embedded import omit_unread

_LINKS: Final = "xl/_rels/workbook.bin.rels"
_MACROS, _CHARTS = b"macrosheets/", b"chartsheets/"
_LOCKED: Final = ("encrypted", "password")
_NO_LAYOUT: Final = Layout({}, set(), set())


def parse(path: Path) -> Iterator[Block]:
    """Yield each sheet of an .xls file in portions, then its comments, numbers as Excel shows them.

    Hidden sheets, rows and columns are left out and counted. Workbooks that xlrd refuses are read by
    calamine, which knows no formats. Raises `UnparsableDocument` for a password or a damaged file.
    """
    try:
        book = xlrd.open_workbook(path, formatting_info=True, logfile=io.StringIO())
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a boundary: a damaged record may raise anything
        if _is_locked(error):
            raise UnparsableDocument("encrypted", str(error)) from None
        yield from parse_binary(path)
        return
    numbers = _Numbers(book)
    some_are_shown = any(sheet.visibility == 0 for sheet in book.sheets())
    for page, sheet in enumerate(book.sheets(), start=1):
        if sheet.visibility and some_are_shown:
            omit("hidden")
            continue
        rows = ([numbers.text(cell) for cell in sheet.row(at)] for at in range(sheet.nrows))
        yield from sheet_blocks(page, sheet.name, rows, _layout_of(sheet))
        for place, note in sorted(sheet.cell_note_map.items()):
            yield Block(f"{xlrd.cellname(*place)}: {note.text}", page)
    omit_unread(path)


def parse_binary(path: Path) -> Iterator[Block]:
    """Yield each sheet of a workbook that calamine reads, such as .xlsb; numbers are written in full.

    Hidden sheets are left out and counted, and so are those of charts and macros. Raises
    `UnparsableDocument` for a password or a damaged file.
    """
    try:
        book = _opened(path)
    except (python_calamine.CalamineError, zipfile.BadZipFile) as error:
        raise UnparsableDocument("encrypted" if _is_locked(error) else "corrupt", str(error)) from None
    visible = python_calamine.SheetVisibleEnum.Visible
    some_are_shown = any(sheet.visible == visible for sheet in book.sheets_metadata)
    for page, sheet in enumerate(book.sheets_metadata, start=1):
        if sheet.typ != python_calamine.SheetTypeEnum.WorkSheet:  # a chart, or macros of Excel 4
            omit("part")
            continue
        if sheet.visible != visible and some_are_shown:
            omit("hidden")
            continue
        rows = (list(map(_text, row)) for row in book.get_sheet_by_name(sheet.name).iter_rows())
        yield from sheet_blocks(page, sheet.name, rows, _NO_LAYOUT)


def _opened(path: Path) -> Any:
    """The workbook. Calamine refuses one with sheets of macros, so those pass for sheets of charts."""
    if not zipfile.is_zipfile(path):
        return python_calamine.CalamineWorkbook.from_path(path)
    with zipfile.ZipFile(path) as package:
        links = package.read(_LINKS) if _LINKS in package.namelist() else b""
        if _MACROS not in links:
            return python_calamine.CalamineWorkbook.from_path(path)
        renamed = io.BytesIO()
        with zipfile.ZipFile(renamed, "w") as target:
            for name in package.namelist():
                part = package.read(name)
                target.writestr(name, part.replace(_MACROS, _CHARTS) if name == _LINKS else part)
    renamed.seek(0)
    return python_calamine.CalamineWorkbook.from_filelike(renamed)


def _is_locked(error: Exception) -> bool:
    message = str(error).lower()
    return any(word in message for word in _LOCKED)


def _layout_of(sheet: Any) -> Layout:
    layout = Layout(
        {},
        {at + 1 for at, row in sheet.rowinfo_map.items() if row.hidden},
        {at for at, column in sheet.colinfo_map.items() if column.hidden},
    )
    for top, bottom, left, right in sheet.merged_cells:
        layout.merged.setdefault(top + 1, []).append(Merged(left, right - 1, bottom))
    return layout


class _Numbers:
    """What cells of an .xls file show."""

    def __init__(self, book: Any) -> None:
        self._book = book
        self._formats: dict[int, Any] = {}

    def text(self, cell: Any) -> str:
        """A cell's text; of an error, its name."""
        if cell.ctype == xlrd.XL_CELL_NUMBER:
            return str(self._format_of(cell.xf_index)(cell.value))
        if cell.ctype == xlrd.XL_CELL_DATE:
            with suppress(xlrd.xldate.XLDateError, ValueError, OverflowError):
                moment = xlrd.xldate.xldate_as_datetime(cell.value, self._book.datemode)
                return _text(moment.time() if cell.value < 1 else moment)
            return number_text(cell.value)
        if cell.ctype == xlrd.XL_CELL_BOOLEAN:
            return _text(bool(cell.value))
        if cell.ctype == xlrd.XL_CELL_ERROR:
            return str(xlrd.error_text_from_code.get(cell.value, ""))
        return " ".join(str(cell.value).split())

    def _format_of(self, style: int) -> Any:
        if style not in self._formats:
            try:
                written = self._book.format_map[self._book.xf_list[style].format_key].format_str
            except LookupError:
                written = "General"
            self._formats[style] = number_text if written == "General" else shown_as(written[:255])
        return self._formats[style]


def _text(value: object) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return number_text(value)
        case datetime():
            return date_text(value)
        case date() | time():
            return value.isoformat("seconds") if isinstance(value, time) else value.isoformat()
        case timedelta():
            return duration_text(value)
        case _:
            return " ".join(str(value).split())
