"""Columns of prose that a PDF draws line by line across the page: they are read one after the other.

Most programs draw a column at a time. Of the others, the lines of different columns would be mixed, and a
word that was cut at the end of a line joined to the wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

_FEWEST_LINES: Final = 4
_ALIKE: Final = 3.0  # points by which the left edges of a column may differ
_LEAST_CHARS: Final = 18  # of a line, on average: cells of a table are shorter
_GOING_ON: Final = 0.3  # of the lines: they begin with a small letter, as most cells do not
_FULL: Final = 0.75  # of the widest line: prose goes on until the next word has no room, a cell is as it is
_FULL_LINES: Final = 0.6  # of the lines before the last
_POINTED: Final = re.compile(r"\w[\"'”’)\]]*[.,;:!?](?:\s|$)")
_CUT: Final = "\ufffe"  # as PDFium marks the hyphen of a word that goes on in the next line
_HYPHENS: Final = ("-", "\u00ad", "\u2010")


class Piece(Protocol):
    """A piece of a line."""

    @property
    def left(self) -> float:
        """Where it begins."""

    @property
    def right(self) -> float:
        """Where it ends."""


def prose_columns(
    lines: Sequence[Sequence[Any]], text_of: Callable[[Any], str]
) -> Iterator[tuple[list[str], str]]:
    """Yield the lines of such columns, their words as the page has them, and the columns' text instead."""
    for run in _runs(lines):
        if not all(map(_is_full, zip(*run, strict=True))):
            continue
        texts = [[text_of(cell) for cell in line] for line in run]
        columns = list(zip(*texts, strict=True))
        if all(map(_is_prose, columns)):
            yield [" ".join(line) for line in texts], "\n".join(map(_joined, columns))


def _runs(lines: Sequence[Sequence[Piece]]) -> Iterator[list[Sequence[Piece]]]:
    """Lines in a row with as many pieces, two or more, that begin at the same places."""
    run: list[Sequence[Piece]] = []
    for line in [*lines, ()]:
        if run and not _is_alike(run[0], line):
            if len(run) >= _FEWEST_LINES:
                yield run
            run = []
        if len(line) > 1:
            run.append(line)


def _is_alike(one: Sequence[Piece], other: Sequence[Piece]) -> bool:
    places = zip(one, other, strict=False)
    return len(one) == len(other) and all(abs(a.left - b.left) <= _ALIKE for a, b in places)


def _is_full(column: Sequence[Piece]) -> bool:
    widths = [piece.right - piece.left for piece in column]
    full = sum(width >= _FULL * max(widths) for width in widths[:-1])
    return full >= _FULL_LINES * (len(widths) - 1)


def _is_prose(column: Sequence[str]) -> bool:
    goes_on = sum(line[:1].islower() for line in column[1:])
    is_long = sum(map(len, column)) >= _LEAST_CHARS * len(column)
    return is_long and goes_on >= _GOING_ON * (len(column) - 1) and any(map(_POINTED.search, column))


def _joined(column: Sequence[str]) -> str:
    return "\n".join(line[:-1] + _CUT if line.endswith(_HYPHENS) else line for line in column)
