"""Tables on a PDF page with lines or shades only between rows: the gaps in the text show their columns.

Where several rows lie between two lines, the text of a cell goes on in the next line if its first word would
not have fit above.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from math import inf
from operator import attrgetter
from statistics import median
from typing import Final, NamedTuple

from builtin_plugins.documents.pdf.columns import prose_columns
from builtin_plugins.documents.tables.names import is_amount, joined_marks, may_close, may_open

_NEAR: Final = 3.0  # points: lines of a table begin and end at the same places
_MOST_LINES: Final = 500  # on a page
_LEAST_LINES: Final = 3
_MOST_GROUPS: Final = 30
_LEAST_WIDTH: Final = 60.0  # points
_GAP: Final = 0.7  # between cells, in letter heights
_SPACE: Final = 0.2  # between words
_LEADING: Final = 1.7  # between lines of a cell
_BESIDE: Final = 2.5  # between lines of a table, or from its first or last rule
_MOST_NAMES: Final = 2  # lines above the first rule
_EVEN: Final = 1.15  # the ratio of gaps between lines up to which they are rows, if all cells are filled
_TABULAR: Final = 3  # at least every third line has several cells
_MOST_COLUMNS: Final = 40
_LONGEST: Final = 500  # characters of a cell: columns of prose are longer
_NUMBER: Final = re.compile(r"\W*\d[\d.,:/\s%-]*\W*")
_ALIKE: Final = 0.6  # of a column's cells
_SIGNS: Final = frozenset("$€£¥")
_WORDS: Final = 3  # in a line that is full


class Glyph(NamedTuple):
    """A visible character: where it is."""

    text: str
    left: float
    right: float
    y: float
    height: float


class HorizontalRule(NamedTuple):
    """A horizontal line."""

    place: float
    start: float
    end: float


class Region(NamedTuple):
    """A table: the places between columns from the left and rows from the top, and each row's first and last
    column of each cell.
    """

    xs: Sequence[float]
    ys: Sequence[float]
    rows: Sequence[Sequence[tuple[int, int]]]


class _Piece(NamedTuple):
    left: float
    right: float
    text: str


class _Line(NamedTuple):
    y: float
    height: float
    pieces: Sequence[_Piece]


_Band = list[_Line]  # the lines between two rules
_Column = tuple[float, float]


def ruled_regions(rules: Iterable[HorizontalRule], glyphs: Iterable[Glyph]) -> Iterator[Region]:
    """Yield the tables whose rows such lines separate."""
    ordered = sorted(glyphs, key=attrgetter("y"), reverse=True)
    for group in islice(_groups(_joined(rules)), _MOST_GROUPS):
        start, end = group[0].start - _NEAR, group[0].end + _NEAR
        within = [glyph for glyph in ordered if start <= glyph.left and glyph.right <= end]
        places = [rule.place for rule in group]
        around = [inf, *places, -inf]
        cuts = [bisect_left(within, -place, key=_depth) for place in around]
        bands = [_lines(within[top:low]) for top, low in pairwise(cuts)]
        for first, last in _tabular(bands[1:-1]):
            own, edges = bands[first + 1 : last + 1], places[first : last + 1]
            above, columns = _named(bands[first], own, places[first])
            if above:
                own, edges = [above[::-1], *own], [above[-1].y + above[-1].height, *edges]
            if below := _beside(bands[last + 1], places[last], columns):
                own, edges = [*own, below], [*edges, below[-1].y - below[-1].height]
            if region := _region(own, edges, (start, end)):
                yield region


def _depth(glyph: Glyph) -> float:
    return -glyph.y


def has_rules(rules: Iterable[HorizontalRule]) -> bool:
    """Whether there are enough such lines for a table."""
    return next(_groups(_joined(rules)), None) is not None


def _joined(rules: Iterable[HorizontalRule]) -> list[HorizontalRule]:
    """Lines as they are seen: they may be drawn cell by cell."""
    joined: list[HorizontalRule] = []
    for rule in sorted(rules, key=lambda rule: (-round(rule.place), rule.start)):
        last = joined[-1] if joined else None
        if last and abs(last.place - rule.place) < _NEAR / 2 and rule.start <= last.end + _NEAR:
            joined[-1] = last._replace(end=max(last.end, rule.end))
        else:
            joined.append(rule)
    return [rule for rule in joined if rule.end - rule.start >= _LEAST_WIDTH]


def _groups(rules: Sequence[HorizontalRule]) -> Iterator[list[HorizontalRule]]:
    """Lines from the top that begin and end at the same places."""
    groups: list[list[HorizontalRule]] = []
    for rule in rules if len(rules) <= _MOST_LINES else ():
        for group in groups:
            if abs(group[0].start - rule.start) <= _NEAR and abs(group[0].end - rule.end) <= _NEAR:
                if group[-1].place - rule.place > _NEAR:
                    group.append(rule)
                break
        else:
            groups.append([rule])
    yield from (group for group in groups if len(group) >= _LEAST_LINES)


def _lines(glyphs: Sequence[Glyph]) -> _Band:
    """The lines that glyphs from the top are in."""
    rows: list[list[Glyph]] = []
    for glyph in glyphs:
        if rows and rows[-1][0].y - glyph.y <= max(rows[-1][0].height, glyph.height) / 2:
            rows[-1].append(glyph)
        else:
            rows.append([glyph])
    return [_line(sorted(row, key=attrgetter("left"))) for row in rows]


def _line(glyphs: Sequence[Glyph]) -> _Line:
    height = max(glyph.height for glyph in glyphs)
    pieces = [_Piece(glyphs[0].left, glyphs[0].right, glyphs[0].text)]
    for glyph in glyphs[1:]:
        last = pieces[-1]
        gap = glyph.left - last.right
        is_next = gap > _SPACE * height and glyph.text in _SIGNS and is_amount(last.text)
        if gap > _GAP * height or is_next:
            pieces.append(_Piece(glyph.left, glyph.right, glyph.text))
        else:
            text = last.text + (" " if gap > _SPACE * height else "") + glyph.text
            pieces[-1] = _Piece(last.left, max(last.right, glyph.right), text)
    return _Line(glyphs[0].y, height, _with_marks(pieces))


def _with_marks(pieces: Sequence[_Piece]) -> Sequence[_Piece]:
    """Pieces, marks such as "$" and "%" joined to their numbers."""
    if not any(may_open(one.text) or may_close(one.text) for one in pieces):
        return pieces
    return [
        _Piece(pieces[at[0]].left, pieces[at[-1]].right, "".join(pieces[one].text for one in at))
        for at in joined_marks([one.text for one in pieces])
    ]


def _tabular(bands: Sequence[_Band]) -> Iterator[tuple[int, int]]:
    """Runs of bands with cells; there may be prose between two tables."""
    start = 0
    for at, band in enumerate([*bands, []]):
        several = sum(len(line.pieces) > 1 for line in band)
        if not band or (_TABULAR * several < len(band) and len(band) > 1):
            if at - start >= _LEAST_LINES - 1:
                yield start, at
            start = at + 1


def _named(before: _Band, own: Sequence[_Band], place: float) -> tuple[list[_Line], list[_Column]]:
    """The lines of names above the first rule, and the columns. With such lines, there are no names below
    the rule, but rows, of which the first may have more columns than the others.
    """
    own_columns = _columns(own)
    for columns in sorted((own_columns, _columns([[], *own])), key=len, reverse=True):
        if above := _beside(before[::-1], place, columns)[:_MOST_NAMES]:
            return [*above, *_spanning(before[::-1][len(above) :], above[-1], columns)], columns
    return [], own_columns


def _spanning(lines: Sequence[_Line], below: _Line, columns: Sequence[_Column]) -> list[_Line]:
    """The line above the names, if it has names of several columns, but none of the first."""
    under = [_under(columns, piece) for piece in lines[0].pieces] if lines else []
    is_near = bool(lines) and lines[0].y - below.y <= _BESIDE * below.height
    is_wide = any(len(one) > 1 for one in under) and all(one and 0 not in one for one in under)
    return [*lines[:1]] if is_near and is_wide else []


def _beside(lines: Sequence[_Line], place: float, columns: Sequence[_Column]) -> list[_Line]:
    """The lines of cells above the first rule or below the last one, from the nearest."""
    beside: list[_Line] = []
    for line in lines:
        under = [_under(columns, piece) for piece in line.pieces]
        is_row = len(under) > 1 and all(len(one) == 1 for one in under)
        if not is_row or abs(line.y - place) > _BESIDE * line.height:
            break
        beside.append(line)
        place = line.y
    return beside


def _region(bands: Sequence[_Band], places: Sequence[float], sides: tuple[float, float]) -> Region | None:
    columns = _columns(bands)
    if not 2 <= len(columns) <= _MOST_COLUMNS or not _is_aligned(bands, columns):
        return None
    middles = [(one[1] + other[0]) / 2 for one, other in pairwise(columns)]
    if any(_is_cut(middles, columns, piece) for band in bands for line in band for piece in line.pieces):
        return None
    inside = [_untorn([*_rows(band, columns)]) for band in bands[1:]]
    are_rows = all(sum(len(row[0].pieces) > 1 for row in rows) < 2 for rows in inside)
    head = bands[0]
    is_wide = any(len(_under(columns, piece)) > 1 for line in head for piece in line.pieces)
    is_one = not is_wide and not any(_is_filled(line, columns) for line in head[1:])
    parted = [[head] if is_one else _untorn([[line] for line in head])]
    parted += [[band] for band in bands[1:]] if are_rows and len(bands) > 2 else inside
    ys, rows = [places[0]], []
    for low, band in zip(places[1:], parted, strict=True):
        rows += [_spans(row, columns) for row in band]
        ys += [(one[-1].y + other[0].y) / 2 for one, other in pairwise(band)]
        ys.append(low)
    for row in (row for band in parted for row in band):
        lengths = Counter[int]()
        for piece in (piece for line in row for piece in line.pieces):
            lengths.update(dict.fromkeys(_under(columns, piece)[:1], len(piece.text)))
        if max(lengths.values(), default=0) > _LONGEST:
            return None
    return Region([sides[0], *middles, sides[1]], ys, rows)


def _columns(bands: Sequence[_Band]) -> list[_Column]:
    """Where the text of each column begins and ends."""
    lines = [line for band in bands[1:] for line in band]
    columns: list[_Column] = []
    for piece in sorted(_narrow([line.pieces for line in lines if len(line.pieces) > 1])):
        if columns and piece.left <= columns[-1][1]:
            columns[-1] = columns[-1][0], max(columns[-1][1], piece.right)
        else:
            columns.append((piece.left, piece.right))
    if len(columns) > _MOST_COLUMNS:
        return []
    names = bands[0][-1:]
    for line in [*names, *(line for line in lines if len(line.pieces) == 1)]:
        for piece in line.pieces:
            under = _under(columns, piece)
            if len(columns) > _MOST_COLUMNS:
                return []
            if not under and line in names:
                columns = sorted([*columns, (piece.left, piece.right)])
            elif len(under) == 1:
                left, right = columns[under[0]]
                columns[under[0]] = min(left, piece.left), max(right, piece.right)
    return columns


def _narrow(lines: Sequence[Sequence[_Piece]]) -> Iterator[_Piece]:
    """The pieces of lines, without the few that are above or below several pieces of another line, as in
    "Total with value-added tax".
    """
    gaps = sorted((one.right, other.left) for line in lines for one, other in pairwise(line))
    lowest = accumulate((end for _, end in reversed(gaps)), min, initial=inf)
    ends = [*lowest][::-1]  # of each gap and all that begin further right
    wide = [{one for one in line if ends[bisect_left(gaps, one[:1])] < one.right} for line in lines]
    if 2 * sum(map(bool, wide)) >= len(lines):  # rather, the other line has a wide space within a cell
        wide = [set() for _ in lines]
    pairs = zip(lines, wide, strict=True)
    return (piece for line, left_out in pairs for piece in line if piece not in left_out)


def _is_aligned(bands: Sequence[_Band], columns: Sequence[_Column]) -> bool:
    """Whether the cells of each column begin, end, or have their middles at the same places."""
    pieces_by_column: list[list[_Piece]] = [[] for _ in columns]
    for line in (line for band in bands for line in band if len(line.pieces) > 1):
        for piece in line.pieces:
            if len(under := _under(columns, piece)) == 1:
                pieces_by_column[under[0]].append(piece)
    places = [
        (
            [piece.left for piece in cells],
            [piece.right for piece in cells],
            [sum(piece[:2]) / 2 for piece in cells],
        )
        for cells in pieces_by_column
    ]
    return all(len(column[0]) > 1 and any(map(_are_alike, column)) for column in places)


def _are_alike(places: Sequence[float]) -> bool:
    middle = median(places)
    return sum(abs(place - middle) <= _NEAR for place in places) >= _ALIKE * len(places)


def _under(columns: Sequence[_Column], piece: _Piece) -> list[int]:
    return [at for at, (left, right) in enumerate(columns) if piece.left < right and left < piece.right]


def _is_cut(middles: Sequence[float], columns: Sequence[_Column], piece: _Piece) -> bool:
    """Whether text that isn't in several columns crosses the middle between them."""
    crossed = bisect_left(middles, piece.right) - bisect_right(middles, piece.left)
    return crossed >= max(len(_under(columns, piece)), 1)


def _rows(band: _Band, columns: Sequence[_Column]) -> Iterator[_Band]:
    """The rows between two lines."""
    gaps = [above.y - line.y for above, line in pairwise(band)]
    is_even = not gaps or max(gaps) <= _EVEN * min(gaps)
    row: _Band = []
    for line in band:
        is_full = is_even and _is_filled(line, columns) and not any(map(_begins_small, line.pieces))
        if row and (is_full or not _goes_on(row[-1], line, columns)):
            yield row
            row = []
        row.append(line)
    if row:
        yield row


def _untorn(rows: list[_Band]) -> list[_Band]:
    """Rows between two lines, as one if they tear apart long texts side by side."""
    band = [line for row in rows for line in row]
    if not any(_begins_small(piece) for row in rows[1:] for piece in row[0].pieces):
        return rows
    is_prose = any(prose_columns([line.pieces for line in band], attrgetter("text")))
    return [band] if is_prose else rows


def _goes_on(above: _Line, line: _Line, columns: Sequence[_Column]) -> bool:
    """Whether a line has the rest of the cells above."""
    if above.y - line.y > _LEADING * line.height:
        return False
    over = {at: piece for piece in above.pieces for at in _under(columns, piece)[:1]}
    is_sure = False
    for piece in line.pieces:
        under = _under(columns, piece)
        before = over.get(under[0]) if len(under) == 1 else None
        if before is None or (_NUMBER.fullmatch(before.text) and _NUMBER.fullmatch(piece.text)):
            return False
        word = piece.text.partition(" ")[0]
        width = (piece.right - piece.left) * len(word) / len(piece.text)
        is_split = before.text.endswith("-")
        if " " not in before.text and not is_split:
            return False
        if before.right + _SPACE * line.height + width < columns[under[0]][1] and not is_split:
            return False
        is_full = before.text.count(" ") >= _WORDS - _begins_small(piece) - 1
        is_sure = is_sure or is_full or is_split
    return is_sure


def _begins_small(piece: _Piece) -> bool:
    return piece.text[0].islower()


def _is_filled(line: _Line, columns: Sequence[_Column]) -> bool:
    return len({at for piece in line.pieces for at in _under(columns, piece)}) == len(columns)


def _spans(row: _Band, columns: Sequence[_Column]) -> list[tuple[int, int]]:
    """The first and last column of each cell in a row."""
    wide = sorted(
        (under[0], under[-1])
        for line in row
        for piece in line.pieces
        if len(under := _under(columns, piece)) > 1
    )
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(columns):
        last = max((end for start, end in wide if start <= at <= end), default=at)
        spans.append((at, last))
        at = last + 1
    return spans
