"""Columns of prose that a PDF draws line by line across the page: they are read one after the other.

Most programs draw a column at a time. Of the others, the lines of different columns would be mixed, and a
word that was cut at the end of a line joined to the wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

_FEWEST_LINES: Final = 4
_ALIKE: Final = 3.0  # points by which the left edges of a column may differ
_LEAST_CHARS: Final = 18  # of a line, on average: cells of a table are shorter
_GOING_ON: Final = 0.3  # of the lines: they begin with a small letter, as cells do not
_CUT: Final = "\ufffe"  # as PDFium marks the hyphen of a word that goes on in the next line
_HYPHENS: Final = ("-", "\u00ad", "\u2010")


class Piece(Protocol):
    """A piece of a line."""

    @property
    def left(self) -> float:
        """Where it begins."""


def prose_columns(lines: Sequence[Sequence[Any]], text_of: Callable[[Any], str]) -> dict[str, str]:
    """For each line of such columns its words as the page has them, and instead of the first one all text of
    the columns; nothing instead of the others.
    """
    found: dict[str, str] = {}
    for run in _runs(lines):
        texts = [[text_of(cell) for cell in line] for line in run]
        columns = list(zip(*texts, strict=True))
        if all(map(_is_prose, columns)):
            found.update(dict.fromkeys((" ".join(line) for line in texts), ""))
            found[" ".join(texts[0])] = "\n".join(map(_joined, columns))
    return found


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


def _is_prose(column: Sequence[str]) -> bool:
    goes_on = sum(line[:1].islower() for line in column[1:])
    return sum(map(len, column)) >= _LEAST_CHARS * len(column) and goes_on >= _GOING_ON * (len(column) - 1)


def _joined(column: Sequence[str]) -> str:
    return "\n".join(line[:-1] + _CUT if line.endswith(_HYPHENS) else line for line in column)
