"""Sheets of workbooks: rows of cells become portions that begin with the names of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from builtin_plugins.documents.blocks import Block, UnparsableDocument
from builtin_plugins.documents.omissions import omit
from builtin_plugins.documents.tables.portions import FIRST_ROWS, Above, line_of, portions_of_sheet

_MAX_EMPTY_ROWS: Final = 1_048_576
_HEAD_ROWS: Final = 2 * FIRST_ROWS


class Merged(NamedTuple):
    """A cell that spans others: its first and last columns, from 0, and its last row, from 1."""

    left: int
    right: int
    bottom: int


class Layout(NamedTuple):
    """What a sheet's rows don't say themselves: merged cells by their first row, hidden rows (both from 1)
    and hidden columns (from 0).
    """

    merged: dict[int, list[Merged]]
    rows: set[int]
    columns: set[int]


def sheet_blocks(page: int, title: str, rows: Iterable[list[str]], layout: Layout) -> Iterator[Block]:
    """Yield a sheet's title, then its rows in portions; what is hidden is left out and counted.

    `rows` are the cells as the sheet shows them. Raises `UnparsableDocument` if more of them are empty than
    Excel has rows.
    """
    yield Block(title, page)
    wide = dict[str, str]()
    for text in portions_of_sheet(_lines(rows, layout, wide), wide):
        yield Block(text, page)


def _lines(rows: Iterable[list[str]], layout: Layout, wide: dict[str, str]) -> Iterator[str]:
    """The rows of a sheet, with one empty line for several. The first rows with cells that span columns are
    added to `wide`.
    """
    empty, above, hidden = 0, Above(), set[int]()
    for number, cells in enumerate(rows, start=1):
        merged = layout.merged.get(number, ())
        above.fill(cells, [(one.left, one.right, one.bottom - number) for one in merged])
        if number in layout.rows:
            omit("hidden", int(any(cells)))
            continue
        if layout.columns:
            hidden.update(at for at, cell in enumerate(cells) if cell and at in layout.columns)
        spans = (
            [(one.left, one.right) for one in merged if one.left < one.right] if number <= _HEAD_ROWS else ()
        )
        line = line_of(cells, spans, wide, layout.columns)
        empty = 0 if line else empty + 1
        if line or empty == 1:
            yield line
        elif empty > _MAX_EMPTY_ROWS:
            raise UnparsableDocument("too_large", "sheet with more rows than Excel allows")
    omit("hidden", len(hidden))
