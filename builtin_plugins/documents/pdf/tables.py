"""Tables on a PDF page: lines that share the same columns become rows, with tabs between the cells.

A PDF has no tables, only positions of letters. PDFium returns the pieces of each line with their positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any, Final, NamedTuple

from builtin_plugins.documents.pdf.boxes import quarter_turns
from builtin_plugins.documents.pdf.columns import prose_columns
from builtin_plugins.documents.pdf.grids import Grid, grids_of
from builtin_plugins.documents.pdf.runs import (
    Line,
    LinePart,
    Row,
    TableRun,
    covered,
    heads_columns,
    is_below,
    lines_of,
    runs_of,
    spans_of,
)
from builtin_plugins.documents.tables.names import (
    begins_names,
    count_names,
    is_amount,
    is_caption,
    tidy_amount,
)
from builtin_plugins.documents.tables.portions import room_below, size_of
from builtin_plugins.documents.tables.spans import names_of

_MOST_PIECES: Final = 4_000  # per page; a map without any table may have many more
_MOST_HEADS: Final = 2  # lines of names above the first with several cells
_MOST_CAPTIONS: Final = 2  # lines


class Arranged(NamedTuple):
    """Replacements for lines of a page. By the lines' text, in the order of those that are the same: table
    rows with tabs between the cells, and captions; None for names that are joined to those below. Columns of
    prose (see `prose_columns`). By the lines' numbers: tables with borders (see `pdf_grids`).
    """

    rows: Mapping[str, Sequence[str | None]]
    columns: Sequence[tuple[Sequence[str], str]]
    grids: Sequence[tuple[range, str]] = ()


class TableHead(NamedTuple):
    """The names of a table's columns, none if it has none, and the lines above that say what it shows."""

    names: Sequence[str] = ()
    caption: Sequence[str] = ()

    @property
    def lines(self) -> str:
        """What is repeated above each portion of the rows."""
        return "\n".join([*self.caption, "\t".join(self.names)])

    @property
    def room(self) -> int:
        """Characters that fit a portion."""
        return room_below([*self.caption, *self.names])


class TableReader:
    """Finds the tables of one document, page by page.

    Column names are carried over to the next page, to a first table with as many columns and no names of its
    own.
    """

    def __init__(self) -> None:
        self._head = TableHead()

    def read(self, page: Any, text_page: Any, text: Sequence[str]) -> Arranged:
        """Find the tables and the columns of prose on a page whose text is in these lines.

        The row of column names and the caption are repeated every few rows, as rows are cut into passages
        (`portions`).
        """
        count = text_page.count_rects()
        carried, self._head = self._head, TableHead()
        if not 4 <= count <= _MOST_PIECES:
            return Arranged({}, ())
        turns = quarter_turns(text_page)
        grids = grids_of(page, text_page, text, turns)
        ruled = []
        for grid in grids:
            ruled.append((grid.lines, self._ruled(grid, carried, text)))
            carried = TableHead()
        pieces = [_turned(LinePart(*text_page.get_rect(at)), turns) for at in range(count)]
        pieces = [one for one in pieces if not any(_is_inside(one, grid) for grid in grids)]

        @cache
        def text_of(cell: LinePart) -> str:
            return _text(text_page, cell, turns)

        lines = lines_of(pieces, text_of)
        columns = list(prose_columns(lines, text_of))
        rows: dict[str, list[str | None]] = {}
        end = 0
        prose = {key for keys, _ in columns for key in keys}
        runs = (part for run in runs_of(lines) for part in _parts(run, text_of))
        for run in runs:
            if prose and " ".join(map(text_of, _filled(run.rows[-1]))) in prose:
                continue
            table = _PositionedTable(run, lines[end : run.first], text_of)
            names, caption = table.head
            if not names and len(carried.names) == len(table.rows[0]):
                names, caption = carried
            self._head = TableHead(names, caption)
            for key, line in table.lines(self._head):
                rows.setdefault(key, []).append(line)
            carried = TableHead()
            end = run.first + len(run.rows)
        return Arranged(rows, columns, ruled)

    def _ruled(self, grid: Grid, carried: TableHead, text: Sequence[str]) -> str:
        """The text of a table with borders."""
        titles, names, filled = grid.parts()
        rows = [row for row in filled if any(row)]
        above = text[max(0, grid.lines.start - _MOST_CAPTIONS) : grid.lines.start]
        continues = not names and all(len(row) == len(carried.names) for row in rows)
        caption = [*_captions([" ".join(line.split()) for line in above]), *filter(is_caption, titles)]
        self._head = TableHead(names, caption) if names else carried if continues else TableHead()
        head = [*titles, "\t".join(names)] if names else titles
        size = size_of(names) if names else self._head.room
        return "\n".join([*head, *_written(rows, self._head, size)])


class _RunPart(NamedTuple):
    """Rows that have names of their own, and the number of the first one's line."""

    first: int
    rows: Sequence[Row]


def _parts(run: TableRun, text_of: Any) -> Iterator[_RunPart]:
    """A run, or its parts if years and the like stand above later rows, too."""
    texts = [[tidy_amount(text_of(cell)) if cell else "" for cell in row] for row in run.rows]
    start, has_amounts = 0, False
    for at, row in enumerate(texts):
        if has_amounts and begins_names(row, texts[at + 1 :]):
            labels = len([*takewhile(lambda cells: len(_filled(cells)) == 1, run.rows[:at][::-1])])
            yield _RunPart(run.first + start, run.rows[start : at - labels])
            start, has_amounts = at, False
        has_amounts = has_amounts or any(map(is_amount, row[1:]))
    yield _RunPart(run.first + start, run.rows[start:])


class _PositionedTable:
    """A table by the positions of its words, and the lines between it and the one before."""

    def __init__(self, run: _RunPart, before: Sequence[Line], text_of: Any) -> None:
        self._keys = [[text_of(cell) if cell else "" for cell in row] for row in run.rows]
        self.rows = [[tidy_amount(cell) for cell in row] for row in self._keys]
        wrapped = [*before, next(filter(None, map(_filled, run.rows)), [])]
        near = [*takewhile(lambda at: is_below(wrapped[at], wrapped[at + 1]), range(len(before) - 1, -1, -1))]
        spans = spans_of(_below_names(run.rows, self.rows))
        heads = [*takewhile(lambda at: heads_columns(before[at], spans), near[:_MOST_HEADS])]
        self._heads: list[str] = []  # the lines of names
        self._count = 0  # of the rows with names
        names: Sequence[str] = ()
        for above in dict.fromkeys((len(heads), 0)):
            lines = [before[at] for at in heads[:above][::-1]]
            empty: Row = [None] * len(spans)
            placed = [_spread(line, empty, spans, text_of) for line in lines]
            spread = [_spread(_filled(row), row, spans, text_of) for row in run.rows[: _MOST_HEADS + 1]]
            spread = [*placed, *spread]
            rows = [*placed, *self.rows]
            count = count_names(rows, [*spread, *self.rows[_MOST_HEADS + 1 :]])
            if count >= max(above, 1):
                names = [tidy_amount(name) for name in names_of(spread[:count])[1]]
                self._heads = [" ".join(map(text_of, line)) for line in lines]
                self._count = count - above
                near = near[above:]
                break
        captions = takewhile(lambda at: len(before[at]) == 1, near[:_MOST_CAPTIONS])
        caption = _captions([text_of(before[at][0]) for at in captions][::-1]) if names else ()
        self.head = TableHead(names, caption)
        self._begins_page = len(self._heads) + len(caption) == run.first

    def lines(self, head: TableHead) -> Iterator[tuple[str, str | None]]:
        """The lines of the page as they are there, and as they are to be read."""
        keys = [_key(row) for row in self._keys]
        if not self.head.names:
            yield from zip(keys, _written(self.rows, head, head.room), strict=True)
            return
        for at, line in enumerate(self.head.caption):
            yield line, line if at or self._begins_page else f"\n{line}"
        above = [*self._heads, *keys[: self._count]]
        yield from ((key, None) for key in above[:-1])
        yield above[-1], "\t".join(head.names)
        rows = self.rows[self._count :]
        yield from zip(keys[self._count :], _written(rows, head, size_of(head.names)), strict=True)


def _filled(row: Row) -> Line:
    return [cell for cell in row if cell]


def _key(row: Sequence[str]) -> str:
    return " ".join(filter(None, row))


def _below_names(rows: Sequence[Row], texts: Sequence[Sequence[str]]) -> Sequence[Row]:
    """The rows that show how wide the columns are: without those at the beginning that may have names of
    several columns.
    """
    start = min(_MOST_HEADS + 1, len(rows) // 2)
    below = [row for row in rows[start:] if len(_filled(row)) > 1]
    is_whole = below and all(any(column) for column in zip(*below, strict=True))
    return below if is_whole else rows


def _spread(line: Line, row: Row, spans: Sequence[tuple[float, float]], text_of: Any) -> list[str]:
    """The text of each cell in its column, and in further ones that it is above and that have none."""
    cells = [text_of(cell) if cell else "" for cell in row]
    for cell in line:
        for at in covered(cell, spans):
            if row[at] is None:
                cells[at] = " ".join(filter(None, (cells[at], text_of(cell))))
    return cells


def _captions(lines: Sequence[str]) -> list[str]:
    """The last lines that may be captions."""
    return [*takewhile(is_caption, reversed(lines))][::-1]


def _written(rows: Sequence[Sequence[str]], head: TableHead, size: int) -> Iterator[str]:
    """The rows as lines, with the head above each that begins a portion; `size` is that of the first
    portion so far.
    """
    for cells in rows:
        size += size_of(cells)
        is_full = bool(head.names) and size > head.room
        if is_full:
            size = size_of(head.names) + size_of(cells)
        row = "\t".join(cells).rstrip()
        yield f"\n{head.lines}\n{row}" if is_full else row


def _is_inside(piece: LinePart, grid: Grid) -> bool:
    left, bottom, right, top = grid.bounds
    x, y = (piece.left + piece.right) / 2, (piece.bottom + piece.top) / 2
    return left <= x <= right and bottom <= y <= top


def _turned(piece: LinePart, quarters: int) -> LinePart:
    """A piece after some clockwise quarter turns."""
    for _ in range(quarters % 4):
        piece = LinePart(piece.bottom, -piece.right, piece.top, -piece.left)
    return piece


def _text(text_page: Any, cell: LinePart, turns: int) -> str:
    place = _turned(cell, -turns)
    bounds = (place.left - 0.5, place.bottom - 0.5, place.right + 0.5, place.top + 0.5)
    return " ".join(str(text_page.get_text_bounded(*bounds)).split())
