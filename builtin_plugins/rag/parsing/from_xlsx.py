"""Excel workbooks and templates, with or without macros: a sheet is a page, a row a tab-separated line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final

from builtin_plugins.rag.parsing.archive import open_archive
from builtin_plugins.rag.parsing.blocks import Block, UnparsableDocument
from builtin_plugins.rag.parsing.number_formats import Shown, date_text, number_text, shown_as
from builtin_plugins.rag.parsing.portions import line_of, portions_of_sheet
from builtin_plugins.rag.parsing.xlsx_package import notes_of, opened, parts_of, wide_cells

_MAX_EMPTY_ROWS: Final = 1_048_576
# How a workbook writes characters that XML can't have, and a carriage return (ECMA-376-1, 22.9.2.19).
_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")

_GENERAL: Final = "General"


def parse(path: Path) -> Iterator[Block]:
    """Yield each sheet in portions (`portions`) that all begin with the names of its columns, titles left
    out; then its text boxes and comments.

    Values as last calculated, never formulas; dates in ISO 8601, numbers with their % or currency. Raises
    `UnparsableDocument` for a bomb, a password, a broken package, or a sheet with more empty rows than Excel
    has rows.
    """
    with open_archive(path):
        pass
    # An open file, as openpyxl refuses a path without Excel's suffix, and stored files have none.
    with path.open("rb") as file:
        reader = opened(file)
        shown, parts = _Formats(), parts_of(reader)
        for page, sheet in enumerate(reader.wb.worksheets, start=1):
            # The declared size is a claim: some writers say A1, a bomb says XFD1048576.
            sheet.reset_dimensions()
            yield Block(sheet.title, page)
            part, wide = parts[sheet.title], set[str]()
            lines = _lines(sheet.iter_rows(), shown, wide_cells(reader.archive, part), wide)
            for text in chain(portions_of_sheet(lines, wide), notes_of(reader.archive, part)):
                yield Block(text, page)


class _Formats:
    """How numbers are shown, cached by format: a workbook has few formats and very many cells."""

    def __init__(self) -> None:
        self._known: dict[str, Shown] = {_GENERAL: number_text}

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
        if number_format not in self._known:
            self._known[number_format] = shown_as(number_format)
        return self._known[number_format]


def _unescaped(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16))
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
        total = round(value.total_seconds())
        minutes, seconds = divmod(abs(total), 60)
        return f"{'-' if total < 0 else ''}{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    return str(value)


def _lines(
    rows: Iterable[Iterable[Any]],
    shown: _Formats,
    merged: Mapping[int, Sequence[tuple[int, int]]],
    wide: set[str],
) -> Iterator[str]:
    """The rows of a sheet, with one empty line for several; those with merged cells are added to `wide`."""
    empty = 0
    for number, row in enumerate(rows, start=1):
        line = line_of(list(map(shown.text, row)), merged.get(number, ()), wide)
        empty = 0 if line else empty + 1
        if line or empty == 1:
            yield line
        elif empty > _MAX_EMPTY_ROWS:
            raise UnparsableDocument("too_large", "sheet with more rows than Excel allows")
