"""Runs of lines on a PDF page that share their columns.

Two or more consecutive lines whose pieces are below each other, or aligned left, right or centered, are a
table. A row may have empty cells, but the run needs two lines with several filled ones; between them, there
may be lines with a label only, in the first column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from builtin_plugins.documents.tables.names import is_amount, joined_marks, may_close, may_open

_GAP: Final = 0.9  # between cells, in letter heights: wider than any space between words
_ALIKE: Final = 3.0  # points by which edges in one column may differ
_NEAR: Final = 4.0  # maximum distance of lines in a table, in letter heights
_INDENT: Final = 40.0  # points by which labels of rows may be indented
_NARROW: Final = 2.5  # letter heights: the widest cell with marks alone
_MOST_LABELS: Final = 2  # lines with a label only, one below the other
_MOST_HEADS: Final = 3  # lines with names of columns


@dataclass(frozen=True, slots=True)
class LinePart:
    """A piece of a line, by its place in points; `parts` are those it was joined of."""

    left: float
    bottom: float
    right: float
    top: float
    parts: tuple[LinePart, ...] = ()

    @property
    def height(self) -> float:
        """The height of its letters, never 0."""
        return max(self.top - self.bottom, 0.1)

    @property
    def middle(self) -> float:
        """The place of its vertical axis."""
        return (self.left + self.right) / 2


Line = list[LinePart]
Row = list[LinePart | None]
TextOf = Callable[[LinePart], str]


def lines_of(parts: Sequence[LinePart], text_of: TextOf) -> list[Line]:
    """The lines of a page as cells, in the order in which the page draws them."""
    return [_with_marks(_cells(line, text_of), text_of) for line in _lines(parts)]


def runs_of(lines: Sequence[Line]) -> Iterator[TableRun]:
    """Yield the runs, in the order of the lines."""
    run: TableRun | None = None
    for at, line in enumerate(lines):
        if run is None or not is_below(run.last, line) or not run.take(line):
            if run is not None and run.is_table:
                yield run
            run = TableRun(at, line) if len(line) > 1 else None
    if run is not None and run.is_table:
        yield run


class TableRun:
    """Consecutive lines from the line number `first` on, as rows of as many cells, some of them None."""

    def __init__(self, first: int, line: Line) -> None:
        self.first = first
        self.last = line
        self._rows: list[Row] = [[*line]]
        self._columns = line  # the last cell of each
        self._spans = spans_of(self._rows)  # where each column begins and ends
        self._labels = 0  # at the end
        self._several = 1  # lines with several cells

    @property
    def rows(self) -> Sequence[Row]:
        """The rows, without labels that follow the last one."""
        return self._rows[: len(self._rows) - self._labels]

    @property
    def is_table(self) -> bool:
        """Whether two lines have several cells."""
        return self._several > 1

    def take(self, line: Line) -> bool:
        """Add the line below, if it fits."""
        if len(line) == 1:
            return self._take_label(line[0])
        row = _row_below(self._columns, line)
        if row is None:
            row = self._grown(line) or self._beside(line)
        if row is None:
            return False
        self._rows.append(row)
        self._spans = [_with_cell(*pair) for pair in zip(self._spans, row, strict=True)]
        self._several += 1
        self._columns = [cell or above for cell, above in zip(row, self._columns, strict=True)]
        self.last, self._labels = line, 0
        return True

    def _take_label(self, label: LinePart) -> bool:
        first, second = self._columns[:2]
        if self._labels == _MOST_LABELS:
            return False
        if len(self._rows) <= _MOST_HEADS and label.right <= first.left:
            self._rows = [[None, *row] for row in self._rows]
            self._columns = [label, *self._columns]
            self._spans = [(0.0, 0.0), *self._spans]
        elif not (first.left - _INDENT <= label.left < first.right and label.right <= second.left):
            return False
        self._rows.append([label, *[None] * (len(self._columns) - 1)])
        self._spans[0] = _with_cell(self._spans[0], label)
        self.last, self._labels = [label], self._labels + 1
        return True

    def _grown(self, line: Line) -> Row | None:
        """Place the columns so far below the cells of a line that has more: the first of them, above which
        stand names only, or one that was empty.
        """
        fits = _row_below(line, self._columns)
        if fits is None:
            return None
        is_labeled = fits[0] is None and None not in fits[1:] and len(self._rows) <= _MOST_HEADS
        is_one_more = len(line) == len(self._columns) + 1 > 3
        if len(self._rows) > 1 and not (is_labeled or is_one_more):
            return None
        places = [at for at, cell in enumerate(fits) if cell is not None]
        if len(places) == len(self._columns):
            self._rows = [_placed(row, places, len(line)) for row in self._rows]
        elif all(any(row[:1]) and not any(row[1:]) for row in self._rows[1:]):
            # A cell of the first row was two names with little space between.
            self._rows = [fits, *([row[0], *[None] * (len(line) - 1)] for row in self._rows[1:])]
        else:
            return None
        self._spans = spans_of(self._rows)
        self._columns = line
        return [*line]

    def _beside(self, line: Line) -> Row | None:
        """Place the cells of a line in the nearest columns, if it is no wider than the table."""
        spans = self._spans
        is_within = spans[0][0] - _INDENT <= line[0].left and line[-1].right <= spans[-1][1] + _ALIKE
        if not self.is_table or not is_within or len(line) > len(spans):
            return None
        row: Row = [None] * len(spans)
        start = 0
        for ahead, cell in zip(range(len(line) - 1, -1, -1), line, strict=True):
            middles = [abs(sum(span) / 2 - cell.middle) for span in spans[start : len(spans) - ahead]]
            start += middles.index(min(middles))
            row[start] = cell
            start += 1
        return row


def _with_cell(span: tuple[float, float], cell: LinePart | None) -> tuple[float, float]:
    """Where a column begins and ends with one more cell; it is (0, 0) without any."""
    if cell is None:
        return span
    return (min(span[0], cell.left), max(span[1], cell.right)) if any(span) else (cell.left, cell.right)


def _placed(row: Row, places: Sequence[int], size: int) -> Row:
    placed: Row = [None] * size
    for at, cell in zip(places, row, strict=True):
        placed[at] = cell
    return placed


def spans_of(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Where each column begins and ends."""
    columns = ([cell for cell in column if cell] for column in zip(*rows, strict=True))
    return [
        (min((cell.left for cell in cells), default=0.0), max((cell.right for cell in cells), default=0.0))
        for cells in columns
    ]


def is_below(one: Line, other: Line) -> bool:
    """Whether one line is close below the other."""
    return -1.0 <= one[0].bottom - other[0].top <= _NEAR * one[0].height


def covered(cell: LinePart, spans: Sequence[tuple[float, float]]) -> range:
    """The columns that a cell is above: those it overlaps, else the nearest."""
    over = [at for at, (left, right) in enumerate(spans) if cell.left < right and left < cell.right]
    if not over:
        over = [min(range(len(spans)), key=lambda at: abs(sum(spans[at]) / 2 - cell.middle))]
    return range(over[0], over[-1] + 1)


def heads_columns(line: Line, spans: Sequence[tuple[float, float]]) -> bool:
    """Whether a line stands above the columns, without the first: its middle is theirs rather than that of
    the whole table. One above all of them is a title.
    """
    (start, label_end), (first, _), (_, end) = spans[0], spans[1], spans[-1]
    if line[0].left < min(label_end, first) - _INDENT or line[0].left <= start + _INDENT:
        return False
    if line[-1].right > end + _INDENT or (len(line) == 1 and len(covered(line[0], spans)) == len(spans)):
        return False
    middle = (line[0].left + line[-1].right) / 2
    return len(line) > 1 or abs(middle - (first + end) / 2) <= abs(middle - (start + end) / 2)


def _lines(parts: Sequence[LinePart]) -> Iterator[Line]:
    """Lines of pieces side by side."""
    line: Line = []
    for part in parts:
        if line and not _is_beside(line[-1], part):
            yield line
            line = []
        line.append(part)
    if line:
        yield line


def _is_beside(one: LinePart, other: LinePart) -> bool:
    """Whether the other is to the right of one on the same line; one of them may be low, as a dash is."""
    is_level = any(a.bottom <= (b.top + b.bottom) / 2 <= a.top for a, b in ((one, other), (other, one)))
    return is_level and other.left >= one.right - 1.0


def _cells(line: Line, text_of: TextOf) -> Line:
    """The cells of a line: pieces that are separated only by a space are joined, except for the "$" of the
    next column.
    """
    cells = [line[0]]
    for part in line[1:]:
        last = cells[-1]
        is_near = part.left - last.right <= _GAP * max(last.height, part.height)
        if is_near and not (part is not line[-1] and _opens(part, text_of) and is_amount(text_of(last))):
            cells[-1] = _union(last, part)
        else:
            cells.append(part)
    return cells


def _union(one: LinePart, other: LinePart, parts: tuple[LinePart, ...] | None = None) -> LinePart:
    joined = (*(one.parts or (one,)), *(other.parts or (other,))) if parts is None else parts
    bottom, top = min(one.bottom, other.bottom), max(one.top, other.top)
    return LinePart(one.left, bottom, other.right, top, joined)


def _with_marks(cells: Line, text_of: TextOf) -> Line:
    """The cells of a line, marks such as "$" and "%" joined to their numbers."""
    if len(cells) < 3 or not any(_is_mark(cell, text_of) for cell in cells):
        return cells
    groups = joined_marks([text_of(cell) for cell in cells])
    return [cells[at[0]] if len(at) == 1 else _union(cells[at[0]], cells[at[-1]], ()) for at in groups]


def _opens(part: LinePart, text_of: TextOf) -> bool:
    return part.right - part.left <= _NARROW * part.height and may_open(text_of(part))


def _is_mark(cell: LinePart, text_of: TextOf) -> bool:
    if cell.right - cell.left > _NARROW * cell.height:
        return False
    text = text_of(cell)
    return may_open(text) or may_close(text)


def _row_below(columns: Line, line: Line) -> Row | None:
    """Place a line's cells under the columns by their last cells; None if they don't fit."""
    if len(line) < 2 or any(a.right >= b.left for a, b in pairwise(line)):
        return None
    cells = [part for cell in line for part in _parted(columns, cell)]
    if len(cells) == len(columns) > 2 and not _crosses(columns, cells):
        return [*cells]
    row: Row = [None] * len(columns)
    start = 0
    for cell in cells:
        ahead = range(start, len(columns))
        fits = (at for fit in (_aligned, _overlaps) for at in ahead if fit(columns[at], cell))
        place = next(fits, None)
        if place is None:
            return None
        row[place] = cell
        start = place + 1
    return row


def _parted(columns: Line, cell: LinePart) -> Sequence[LinePart]:
    """The parts of a cell, if each is in a column of its own: long numbers leave little space between."""
    parts = cell.parts
    under = [[at for at, above in enumerate(columns) if _overlaps(above, part)] for part in parts]
    is_apart = all(len(places) == 1 for places in under) and len({*map(tuple, under)}) == len(parts)
    return parts if parts and is_apart else [cell]


def _crosses(columns: Line, cells: Line) -> bool:
    """Whether a cell overlaps a column other than its own."""
    return any(
        _overlaps(a, d) or _overlaps(b, c)
        for (a, b), (c, d) in zip(pairwise(columns), pairwise(cells), strict=True)
    )


def _aligned(one: LinePart, other: LinePart) -> bool:
    middle = abs((one.left + one.right) - (other.left + other.right)) / 2
    return min(abs(one.left - other.left), abs(one.right - other.right), middle) <= _ALIKE


def _overlaps(one: LinePart, other: LinePart) -> bool:
    return one.left < other.right and other.left < one.right
