"""Reads columns of prose one after the other in PDFs that draw each line across the whole page.

Most programs draw a column at a time. Otherwise the lines of different columns would be mixed, and a word
split at the end of a line would be joined to the wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

_FEWEST_LINES: Final = 4
_ALIKE: Final = 3.0  # points by which left edges in a column may differ
_LEAST_CHARS: Final = 18  # of a line, on average: cells of a table are shorter
_GOING_ON: Final = 0.3  # share of lines that begin with a small letter, as few cells do
_FULL: Final = 0.75  # of the widest line: lines of prose are filled, cells are not
_FULL_LINES: Final = 0.6  # of the lines before the last
_POINTED: Final = re.compile(r"\w[\"'”’)\]]*[.,;:!?](?:\s|$)")
_CUT: Final = "\ufffe"  # PDFium's mark for the hyphen of a word split between lines
_HYPHENS: Final = ("-", "\u00ad", "\u2010")


class LinePiece(Protocol):
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
    """Yield the lines of such columns as they are on the page, and the text to put in their place."""
    for run in _runs(lines):
        if not all(map(_is_full, zip(*run, strict=True))):
            continue
        texts = [[text_of(cell) for cell in line] for line in run]
        columns = list(zip(*texts, strict=True))
        if all(map(_is_prose, columns)):
            yield [" ".join(line) for line in texts], "\n".join(map(_joined, columns))


def _runs(lines: Sequence[Sequence[LinePiece]]) -> Iterator[list[Sequence[LinePiece]]]:
    """Runs of lines with the same number of pieces, at least two, that begin at the same places."""
    run: list[Sequence[LinePiece]] = []
    for line in [*lines, ()]:
        if run and not _is_alike(run[0], line):
            if len(run) >= _FEWEST_LINES:
                yield run
            run = []
        if len(line) > 1:
            run.append(line)


def _is_alike(one: Sequence[LinePiece], other: Sequence[LinePiece]) -> bool:
    places = zip(one, other, strict=False)
    return len(one) == len(other) and all(abs(a.left - b.left) <= _ALIKE for a, b in places)


def _is_full(column: Sequence[LinePiece]) -> bool:
    widths = [piece.right - piece.left for piece in column]
    full = sum(width >= _FULL * max(widths) for width in widths[:-1])
    return full >= _FULL_LINES * (len(widths) - 1)


def _is_prose(column: Sequence[str]) -> bool:
    goes_on = sum(line[:1].islower() for line in column[1:])
    is_long = sum(map(len, column)) >= _LEAST_CHARS * len(column)
    return is_long and goes_on >= _GOING_ON * (len(column) - 1) and any(map(_POINTED.search, column))


def _joined(column: Sequence[str]) -> str:
    return "\n".join(line[:-1] + _CUT if line.endswith(_HYPHENS) else line for line in column)
