"""Excel workbooks and templates, with or without macros: a sheet is a page, a row a tab-separated line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

from openpyxl import load_workbook

from builtin_plugins.rag.parsing.archive import open_archive
from builtin_plugins.rag.parsing.blocks import Block, UnparsableDocument
from builtin_plugins.rag.parsing.portions import portions_of_sheet

_MAX_EMPTY_ROWS: Final = 1_048_576
# In a number format: literal text, which may contain any character, and a currency symbol with or without a
# country code.
_LITERAL: Final = re.compile(r'"([^"]*)"')
_CURRENCY: Final = re.compile(r"\[\$([^\]-]{1,5})|([€£¥]|(?<!\[)\$)")

_GENERAL: Final = "General"
_Shown = Callable[[Any], str]


def parse(path: Path) -> Iterator[Block]:
    """Yield each sheet in portions (`portions`) that all begin with its first row, titles left out.

    Values as last calculated, never formulas; dates in ISO 8601, numbers with their % or currency. Raises
    `UnparsableDocument` for a bomb, a password, a broken package, or a sheet with more empty rows than Excel
    has rows.
    """
    with open_archive(path):
        pass
    # An open file, as openpyxl refuses a path without Excel's suffix, and stored files have none.
    with path.open("rb") as file:
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        shown = _Formats()
        for page, sheet in enumerate(book.worksheets, start=1):
            # The declared size is a claim: some writers say A1, a bomb says XFD1048576.
            sheet.reset_dimensions()
            yield Block(sheet.title, page)
            for text in portions_of_sheet(_lines(sheet.iter_rows(), shown)):
                yield Block(text, page)


class _Formats:
    """How numbers are shown, cached by format: a workbook has few formats and very many cells."""

    def __init__(self) -> None:
        self._known: dict[str, _Shown] = {_GENERAL: str}

    def text(self, cell: Any) -> str:
        """What a cell shows."""
        value = cell.value
        if type(value) is str:
            return " ".join(value.split())
        if value is None:
            return ""
        if type(value) in (int, float):
            return self._of(_format_of(cell))(value)
        return " ".join(_moment(value).split())

    def _of(self, number_format: str) -> _Shown:
        if number_format not in self._known:
            self._known[number_format] = _shown(number_format)
        return self._known[number_format]


def _format_of(cell: Any) -> str:
    try:
        return str(cell.number_format)
    except LookupError:  # a style that is missing from the workbook
        return _GENERAL


def _shown(number_format: str) -> _Shown:
    if "%" in _LITERAL.sub("", number_format):
        return lambda value: f"{value * 100:.10g}%"
    found = _CURRENCY.search(_LITERAL.sub(r"\1", number_format))
    sign = (found[1] or found[2]) if found else ""
    return (lambda value: f"{value} {sign}") if sign else str


def _moment(value: object) -> str:
    """A date without Excel's midnight; a duration in hours."""
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    return str(value)


def _lines(rows: Iterable[Iterable[Any]], shown: _Formats) -> Iterator[str]:
    empty = 0
    for row in rows:
        line = "\t".join(map(shown.text, row)).rstrip()
        empty = 0 if line else empty + 1
        if line:
            yield line
        elif empty > _MAX_EMPTY_ROWS:
            raise UnparsableDocument("too_large", "sheet with more rows than Excel allows")
