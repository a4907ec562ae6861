"""Excel workbooks and templates, with or without macros: a sheet is a page, a row a tab-separated line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from builtin_plugins.documents.archives.archive import open_archive
from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.office.number_formats import (
    Shown,
    date_text,
    duration_text,
    number_text,
    shown_as,
)
from builtin_plugins.documents.office.package_properties import note_core_properties
from builtin_plugins.documents.office.xlsx_package import layout_of, notes_of, opened, parts_of
from builtin_plugins.documents.omissions import omit
from builtin_plugins.documents.tables.sheets import Layout, sheet_blocks

# How a workbook writes characters that XML can't have, and a carriage return (ECMA-376-1, 22.9.2.19).
_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")

_GENERAL: Final = "General"
_VISIBLE: Final = "visible"


def parse(path: Path) -> Iterator[Block]:
    """Yield each sheet in portions (`portions`) that all begin with the names of its columns, titles left
    out; then its text boxes and comments. Hidden sheets, rows and columns are left out and counted.

    Values as last calculated, never formulas; dates in ISO 8601, numbers with their % or currency. Raises
    `UnparsableDocument` for a bomb, a password, a broken package, or a sheet with more empty rows than Excel
    has rows.
    """
    with open_archive(path) as archive:
        note_core_properties(archive)
    for sheet in visible_sheets(path):
        yield from sheet_blocks(sheet.page, sheet.title, sheet.rows, sheet.layout)
        for text in sheet.notes:
            yield Block(text, sheet.page)


class VisibleSheet(NamedTuple):
    """A sheet that isn't hidden, to be read before the next one: its place from 1, title, cells as they are
    shown, layout, and text boxes and comments.
    """

    page: int
    title: str
    rows: Iterator[list[str]]
    layout: Layout
    notes: Iterator[str]


def visible_sheets(path: Path) -> Iterator[VisibleSheet]:
    """Yield the sheets that are shown, all of them if none is. Raises what `parse` raises."""
    # An open file, as openpyxl refuses a path without Excel's suffix, and stored files have none.
    with path.open("rb") as file:
        reader = opened(file)
        formats, parts = _Formats(), parts_of(reader)
        sheets = reader.wb.worksheets
        some_are_visible = any(sheet.sheet_state == _VISIBLE for sheet in sheets)
        for page, sheet in enumerate(sheets, start=1):
            if some_are_visible and sheet.sheet_state != _VISIBLE:
                omit("hidden")
                continue
            # The declared size is a claim: some writers say A1, a bomb says XFD1048576.
            sheet.reset_dimensions()
            part = parts[sheet.title]
            rows = (list(map(formats.text, row)) for row in sheet.iter_rows())
            layout, notes = layout_of(reader.archive, part), notes_of(reader.archive, part)
            yield VisibleSheet(page, sheet.title, rows, layout, notes)


class _Formats:
    """How numbers are shown, cached by format: a workbook has few formats and very many cells."""

    def __init__(self) -> None:
        self._display_by_format: dict[str, Shown] = {_GENERAL: number_text}

    def text(self, cell: Any) -> str:
        """What a cell shows."""
        value = cell.value
        if type(value) is str:
            return " ".join(_ESCAPED.sub(_unescaped, value).split())
        if value is None:
            return ""
        if type(value) in (int, float):
            return self._of(_format_of(cell))(value)
        return " ".join(_moment(value).split())

    def _of(self, number_format: str) -> Shown:
        if number_format not in self._display_by_format:
            self._display_by_format[number_format] = shown_as(number_format)
        return self._display_by_format[number_format]


def _unescaped(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if char.isprintable() else " "


def _format_of(cell: Any) -> str:
    try:
        return str(cell.number_format)
    except LookupError:  # a style that is missing from the workbook
        return _GENERAL


def _moment(value: object) -> str:
    """A date; a duration in hours."""
    if isinstance(value, datetime):
        return date_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    return str(value)
