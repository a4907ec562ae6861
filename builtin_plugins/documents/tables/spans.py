"""The columns of tables whose cells may span several columns and rows (HTML Standard, 4.9.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

MOST_COLUMNS: Final = 200
_MOST_ROWS: Final = 1_000
LONGEST_REPEATED: Final = 200
"""Characters of a cell that is repeated in each row it spans, as it names them; a longer one is prose. In a
web page, the limit is for all cells that reach into a row: otherwise a few bytes could become a row of
thousands.
"""


class CellSpan(NamedTuple):
    """How many columns and rows a cell takes."""

    columns: int
    rows: int


_ONE: Final = CellSpan(1, 1)


class CellGrid:
    """Assigns cells to columns, row by row."""

    def __init__(self) -> None:
        self._from_above: dict[int, tuple[str, int]] = {}
        self._wide: list[tuple[int, int]] = []

    def row(self, cells: Sequence[str], spans: Sequence[CellSpan]) -> Sequence[str]:
        """The row's cells, including those that span into it from above; empty cells pad wide ones."""
        self._wide = []
        if not self._from_above and all(span is _ONE for span in spans):
            return cells
        filled: list[str] = []
        for cell, span in zip(cells, spans, strict=True):
            self._fill(filled)
            wide = min(span.columns, MOST_COLUMNS - len(filled))
            if wide > 1:
                self._wide.append((len(filled), wide))
            for text in (cell, *[""] * (wide - 1)):
                if span.rows > 1 and len(filled) < MOST_COLUMNS:
                    self._reach_below(len(filled), text, span.rows - 1)
                filled.append(text)
        self._fill(filled)
        return filled

    def spread(self, row: Sequence[str]) -> Sequence[str]:
        """The last row, with the text of a wide cell repeated in each of its columns."""
        cells = list(row)
        for start, wide in self._wide:
            if len(row[start]) <= LONGEST_REPEATED:
                cells[start : start + wide] = [row[start]] * wide
        return cells

    def _reach_below(self, column: int, text: str, rows: int) -> None:
        if text and len(text) + sum(len(other) for other, _ in self._from_above.values()) > LONGEST_REPEATED:
            text = ""
        self._from_above[column] = (text, rows)

    def _fill(self, cells: list[str]) -> None:
        while len(cells) in self._from_above:
            text, rows = self._from_above.pop(len(cells))
            if rows > 1:
                self._from_above[len(cells)] = (text, rows - 1)
            cells.append(text)


def names_of(head: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
    """The titles above a table, and the names of its columns, from the rows of its head: below "2023", "Wind"
    becomes "2023 Wind". A row with one text in all columns is a title.
    """
    rows = [[cell.strip() for cell in row] for row in head]
    titles = [row for row in rows if len(set(row)) == 1]
    columns = zip_longest(*(row for row in rows if row not in titles), fillvalue="")
    names = [" ".join(dict.fromkeys(filter(None, column))) for column in columns]
    return [row[0] for row in titles], names


def span_of(attributes: Mapping[str, str]) -> CellSpan:
    """The span in a cell's attributes. `rowspan="0"` means all following rows of the group."""
    if "colspan" not in attributes and "rowspan" not in attributes:
        return _ONE
    rows = count_of(attributes.get("rowspan"), _MOST_ROWS)
    return CellSpan(max(1, count_of(attributes.get("colspan"), MOST_COLUMNS)), rows or _MOST_ROWS)


def count_of(attribute: str | None, most: int) -> int:
    """The number in an attribute, at most `most`; 1 if it isn't a number."""
    return (
        min(int(attribute), most)
        if attribute and attribute.isascii() and attribute.isdecimal() and len(attribute) < 10
        else 1
    )
