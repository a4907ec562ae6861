"""Excel workbooks and templates, with macros or not: a sheet is a page, a row a tab-separated line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from openpyxl import load_workbook

from builtin_plugins.rag.parsing.archive import open_archive
from builtin_plugins.rag.parsing.blocks import Block, UnparsableDocument
from builtin_plugins.rag.parsing.portions import portions_of_sheet

_MAX_EMPTY_ROWS: Final = 1_048_576


def parse(path: Path) -> Iterator[Block]:
    """Yield each sheet in portions (`portions`) that all begin with its first row, titles left out.

    Values as last calculated, never formulas; dates in ISO 8601. Raises `UnparsableDocument` for a bomb, a
    password, a broken package, or a sheet with more empty rows than Excel has rows.
    """
    with open_archive(path):
        pass
    # openpyxl refuses a path without Excel's suffix, and stored files have none: it gets the open file.
    with path.open("rb") as file:
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        for page, sheet in enumerate(book.worksheets, start=1):
            # The declared size is a claim: some writers say A1, a bomb says XFD1048576.
            sheet.reset_dimensions()
            yield Block(sheet.title, page)
            for text in portions_of_sheet(_lines(sheet.iter_rows(values_only=True))):
                yield Block(text, page)


def _lines(rows: Iterable[tuple[object, ...]]) -> Iterator[str]:
    empty = 0
    for row in rows:
        line = "\t".join(_cell(value) for value in row).rstrip()
        empty = 0 if line else empty + 1
        if line:
            yield line
        elif empty > _MAX_EMPTY_ROWS:
            raise UnparsableDocument("too_large", "sheet with more rows than Excel allows")


def _cell(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())
