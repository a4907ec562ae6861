"""Columns of a table in HTML, whose cells may span several columns and rows (HTML Standard, 4.9.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_MOST_COLUMNS: Final = 200
_MOST_ROWS: Final = 1_000
_LONGEST_REPEATED: Final = 200
"""Characters of a cell that is written again in each row it spans: it names them. A longer one is prose."""


class Span(NamedTuple):
    """How many columns and rows a cell takes."""

    columns: int
    rows: int


_ONE: Final = Span(1, 1)


class Grid:
    """Puts the cells of row after row into their columns."""

    def __init__(self) -> None:
        self._from_above: dict[int, tuple[str, int]] = {}

    def row(self, cells: list[str], spans: Sequence[Span]) -> list[str]:
        """The row's cells, with those that reach into it from above; empty ones where a cell is wide."""
        if not self._from_above and all(span is _ONE for span in spans):
            return cells
        made: list[str] = []
        for cell, span in zip(cells, spans, strict=True):
            self._fill(made)
            wide = min(span.columns, _MOST_COLUMNS - len(made))
            for text in (cell, *[""] * (wide - 1)):
                if span.rows > 1 and len(cell) <= _LONGEST_REPEATED and len(made) < _MOST_COLUMNS:
                    self._from_above[len(made)] = (text, span.rows - 1)
                made.append(text)
        self._fill(made)
        return made

    def _fill(self, made: list[str]) -> None:
        while len(made) in self._from_above:
            text, rows = self._from_above.pop(len(made))
            if rows > 1:
                self._from_above[len(made)] = (text, rows - 1)
            made.append(text)


def span_of(attributes: Mapping[str, str]) -> Span:
    """What a cell's attributes say; what is no number counts as 1."""
    if "colspan" not in attributes and "rowspan" not in attributes:
        return _ONE
    return Span(_number(attributes, "colspan", _MOST_COLUMNS), _number(attributes, "rowspan", _MOST_ROWS))


def _number(attributes: Mapping[str, str], name: str, most: int) -> int:
    said = attributes.get(name) or ""
    return max(1, min(int(said), most)) if said.isascii() and said.isdecimal() and len(said) < 10 else 1
