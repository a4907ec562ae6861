"""Tables on a PDF page: lines that share the same columns become rows, with tabs between the cells.

A PDF has no tables, only positions of letters. PDFium returns the pieces of each line with their positions;
two or more consecutive lines whose pieces are below each other, or aligned left, right or centered, are a
table. A row may have empty cells, but needs two filled ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from builtin_plugins.documents.pdf.boxes import quarter_turns
from builtin_plugins.documents.pdf.columns import prose_columns
from builtin_plugins.documents.pdf.grids import Grid, grids_of
from builtin_plugins.documents.tables.portions import names_columns, room_below, size_of

_MOST_PIECES = 4_000  # per page; a map without any table may have many more
_GAP = 0.9  # between cells, in letter heights: wider than any space between words
_ALIKE = 3.0  # points by which edges in one column may differ
_NEAR = 4.0  # maximum distance of lines in a table, in letter heights


@dataclass(frozen=True, slots=True)
class _Piece:
    left: float
    bottom: float
    right: float
    top: float
    parts: tuple[_Piece, ...] = ()

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 0.1)


Line = list[_Piece]
Row = list[_Piece | None]


class Arranged(NamedTuple):
    """Replacements for lines of a page. Keyed by the lines' text: table rows with tabs between the cells, and
    columns of prose (see `prose_columns`). By the lines' numbers: tables with borders (see `pdf_grids`).
    """

    rows: Mapping[str, str]
    columns: Sequence[tuple[Sequence[str], str]]
    grids: Sequence[tuple[range, str]] = ()


class TableReader:
    """Finds the tables of one document, page by page.

    Column names are carried over to the next page, to a first table with as many columns and no names of its
    own.
    """

    def __init__(self) -> None:
        self._names: Sequence[str] = ()

    def read(self, page: Any, text_page: Any, text: Sequence[str]) -> Arranged:
        """Find the tables and the columns of prose on a page whose text is in these lines.

        The row of column names is repeated every few rows, as rows are cut into passages
        (`portions`).
        """
        count = text_page.count_rects()
        carried, self._names = self._names, ()
        if not 4 <= count <= _MOST_PIECES:
            return Arranged({}, ())
        turns = quarter_turns(text_page)
        grids = grids_of(page, text_page, text, turns)
        ruled = []
        for grid in grids:
            ruled.append((grid.lines, self._ruled(grid, carried)))
            carried = ()
        pieces = [_turned(_Piece(*text_page.get_rect(at)), turns) for at in range(count)]
        pieces = [one for one in pieces if not any(_is_inside(one, grid) for grid in grids)]
        lines = [_cells(line) for line in _lines(pieces)]
        columns = list(prose_columns(lines, lambda cell: _text(text_page, cell, turns)))
        found: dict[str, str] = {}
        for table in _tables(lines):
            rows = [[_text(text_page, cell, turns) for cell in line] for line in table]
            own = names_columns(rows[0])
            known = not own and len(carried) == len(rows[0])
            self._names = rows[0] if own else carried if known else ()
            found.update(_written(rows, self._names, above=not own))
            carried = ()
        return Arranged(found, columns, ruled)

    def _ruled(self, grid: Grid, carried: Sequence[str]) -> str:
        """The text of a table with borders."""
        titles, names, rows = grid.parts()
        known = not names and all(len(row) == len(carried) for row in rows)
        self._names = names or (carried if known else ())
        table = [names, *rows] if names else rows
        written = [row for _, row in _written(table, self._names, above=not names)]
        return "\n".join([*titles, *written])


def _written(
    table: Sequence[Sequence[str]], names: Sequence[str], *, above: bool
) -> Iterator[tuple[str, str]]:
    size = room_below(names) if above else 0
    for cells in table:
        if any(cells):
            row, size = "\t".join(cells).rstrip(), size + size_of(cells)
            repeated = names and size > room_below(names)
            if repeated:
                size = size_of(names) + size_of(cells)
            yield " ".join(filter(None, cells)), "\n{}\n{}".format("\t".join(names), row) if repeated else row


def _is_inside(piece: _Piece, grid: Grid) -> bool:
    left, bottom, right, top = grid.bounds
    x, y = (piece.left + piece.right) / 2, (piece.bottom + piece.top) / 2
    return left <= x <= right and bottom <= y <= top


def _turned(piece: _Piece, quarters: int) -> _Piece:
    """A piece after some clockwise quarter turns."""
    for _ in range(quarters % 4):
        piece = _Piece(piece.bottom, -piece.right, piece.top, -piece.left)
    return piece


def _text(text_page: Any, cell: _Piece | None, turns: int) -> str:
    if cell is None:
        return ""
    place = _turned(cell, -turns)
    bounds = (place.left - 0.5, place.bottom - 0.5, place.right + 0.5, place.top + 0.5)
    return " ".join(str(text_page.get_text_bounded(*bounds)).split())


def _lines(pieces: Sequence[_Piece]) -> Iterator[Line]:
    """Lines of pieces side by side, in the order in which the page draws them."""
    line: Line = []
    for piece in pieces:
        if line and not _beside(line[-1], piece):
            yield line
            line = []
        line.append(piece)
    if line:
        yield line


def _beside(one: _Piece, other: _Piece) -> bool:
    """Whether one is to the right of the other on the same line."""
    middle = (other.top + other.bottom) / 2
    return one.bottom <= middle <= one.top and other.left >= one.right - 1.0


def _cells(line: Line) -> Line:
    """The cells of a line: pieces that are separated only by a space are joined."""
    cells = [line[0]]
    for piece in line[1:]:
        last = cells[-1]
        if piece.left - last.right <= _GAP * max(last.height, piece.height):
            joined = (last.left, min(last.bottom, piece.bottom), piece.right, max(last.top, piece.top))
            cells[-1] = _Piece(*joined, (*(last.parts or (last,)), piece))
        else:
            cells.append(piece)
    return cells


def _tables(lines: Sequence[Line]) -> Iterator[list[Row]]:
    """Runs of two or more lines with the same columns."""
    run: list[Row] = []
    columns: Line = []
    last: Line = []
    for line in lines:
        is_below = bool(run) and _is_below(last, line)
        row = _row_below(columns, line) if is_below else None
        if row is None and is_below and len(run) == 1 and (first := _row_below(line, columns)):
            run, columns, row = [first], line, [*line]  # the first row leaves cells empty
        elif row is None:
            if len(run) > 1:
                yield run
            run, columns, row = [], line, [*line]
        if len(line) > 1:
            run.append(row)
            columns, last = [cell or above for cell, above in zip(row, columns, strict=True)], line
    if len(run) > 1:
        yield run


def _is_below(one: Line, other: Line) -> bool:
    """Whether one line is close below the other."""
    return -1.0 <= one[0].bottom - other[0].top <= _NEAR * one[0].height


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


def _parted(columns: Line, cell: _Piece) -> Sequence[_Piece]:
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


def _aligned(one: _Piece, other: _Piece) -> bool:
    middle = abs((one.left + one.right) - (other.left + other.right)) / 2
    return min(abs(one.left - other.left), abs(one.right - other.right), middle) <= _ALIKE


def _overlaps(one: _Piece, other: _Piece) -> bool:
    return one.left < other.right and other.left < one.right
