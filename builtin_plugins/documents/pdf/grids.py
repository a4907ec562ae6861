"""Tables with borders on a PDF page: the borders show rows, columns and merged cells, and which lines of text
belong to a cell.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import neg
from typing import Any, Final, NamedTuple

from pypdfium2 import raw

from builtin_plugins.documents.pdf.boxes import box_of, turned
from builtin_plugins.documents.pdf.rtl import is_from_right, mirrored
from builtin_plugins.documents.pdf.ruled_tables import Glyph, HorizontalRule, Region, has_rules, ruled_regions
from builtin_plugins.documents.pdf.unspaced import goes_on
from builtin_plugins.documents.tables.names import count_names, without_marks
from builtin_plugins.documents.tables.spans import CellGrid as Columns
from builtin_plugins.documents.tables.spans import CellSpan, names_of

_BOX: Final = (4, 5, 6)  # corners; the first may be repeated
_THIN: Final = 3.0  # points: a narrower shape is a line, and lines closer together are one
_MOST_CORNERS: Final = 20_000  # on a page
_MOST_LETTERS: Final = 100_000  # on a page
_MOST_TABLES: Final = 30
_MOST_CELLS: Final = 4_000
_LEAST_LINES: Final = 3  # in each direction
_LEAST_ROWS: Final = 2  # with several cells
_LEAST_FILLED: Final = 0.4  # share of cells with text: otherwise it is a drawing
_APART: Final = 4.0  # points between the middles of letters of different lines
_FULL: Final = 0.5  # of a cell's width: lines of a paragraph are longer, except the last
_ALIKE: Final = 0.6  # of the lines of the cell with the most
_CUTS: Final = ("\ufffe", "\x02")  # PDFium's marks for the hyphen of a word split between lines


class Ruling(NamedTuple):
    """A straight line, horizontal (`place` is its height) or vertical."""

    is_horizontal: bool
    place: float
    start: float
    end: float


class Letter(NamedTuple):
    """A character, its center and its size."""

    text: str
    x: float
    y: float
    width: float
    height: float


class Grid(NamedTuple):
    """A table: which lines of the page's text it replaces, and its rows of cells with their spans."""

    lines: range
    rows: Sequence[Sequence[tuple[str, CellSpan]]]
    bounds: tuple[float, float, float, float]

    def parts(self) -> tuple[Sequence[str], Sequence[str], Sequence[Sequence[str]]]:
        """The titles, the names of the columns if there are any, and the rows below them."""
        columns = Columns()
        written, spread = list[Sequence[str]](), list[Sequence[str]]()
        for cells in self.rows:
            written.append(columns.row(*zip(*cells, strict=True)) if cells else columns.row((), ()))
            spread.append(columns.spread(written[-1]))
        rows, wide = without_marks(written, spread)
        titles = next((at for at, cells in enumerate(self.rows) if len(cells) > 1), 0)
        above = [cells[0][0] for cells in self.rows[:titles] if cells]
        head = titles + self._head(self.rows[titles])
        names = names_of(wide[titles:head])[1] if head < len(rows) else []
        is_named = head > titles + 1 and 1 < len(set(names)) == len(names) and all(names)
        count = head - titles if is_named else count_names(rows[titles:], wide[titles:])
        if count:
            return above, names_of(wide[titles : titles + count])[1], rows[titles + count :]
        return above, (), rows[titles:]

    def _head(self, first: Sequence[tuple[str, CellSpan]]) -> int:
        """How many rows hold column names, if any do: several if a name spans columns."""
        is_wide = any(span.columns > 1 for _, span in first)
        return max(2, *(span.rows for _, span in first)) if is_wide else 1


class _Cells(NamedTuple):
    """The places of the lines between columns (from the left) and rows (from the top), and which places form
    each cell.
    """

    xs: Sequence[float]
    ys: Sequence[float]
    cell_at: Mapping[tuple[int, int], int]
    spans: Mapping[int, tuple[int, int, CellSpan]]

    def find(self, x: float, y: float) -> int | None:
        """The cell at a point."""
        row = bisect_right(self.ys, -y, key=neg) - 1
        return self.cell_at.get((row, bisect_right(self.xs, x) - 1))


def grids_of(page: Any, text_page: Any, lines: Sequence[str], turns: int) -> list[Grid]:
    """The tables with lines on a page whose text is in `lines`, from the top. All places are those after
    the quarter turns that bring the text upright.
    """
    rulings, shades = _rulings(page, turns)
    tables = [cells for group in _groups(rulings) if (cells := _cells(group))]
    rules = [
        HorizontalRule(one.place, one.start, one.end) for one in [*rulings, *shades] if one.is_horizontal
    ]
    rules = [rule for rule in rules if not any(cells.ys[-1] <= rule.place <= cells.ys[0] for cells in tables)]
    if not (tables or has_rules(rules)) or text_page.count_chars() > _MOST_LETTERS:
        return []
    letters = [_letter(text_page, at, turns) for at in range(text_page.count_chars())]
    tables += map(_ruled, ruled_regions(rules, map(_glyph, filter(_is_shown, letters))))
    tables = tables[:_MOST_TABLES]
    if not tables:
        return []
    inside = [[cells.find(letter.x, letter.y) for letter in letters] for cells in tables]
    owners = _owners(letters, inside, lines)
    pairs = enumerate(zip(tables, inside, strict=True))
    grids = (_grid(*pair, letters, owners, number) for number, pair in pairs)
    return [grid for grid in grids if grid]


def _ruled(region: Region) -> _Cells:
    """The cells of a table without lines between its columns."""
    cell_at: dict[tuple[int, int], int] = {}
    spans: dict[int, tuple[int, int, CellSpan]] = {}
    for row, cells in enumerate(region.rows):
        for first, last in cells:
            cell_at |= dict.fromkeys(((row, at) for at in range(first, last + 1)), len(spans))
            spans[len(spans)] = (row, first, CellSpan(last + 1 - first, 1))
    return _Cells(region.xs, region.ys, cell_at, spans)


def _is_shown(letter: Letter) -> bool:
    return letter.text.isprintable() and not letter.text.isspace()


def _glyph(letter: Letter) -> Glyph:
    half = letter.width / 2
    return Glyph(letter.text, letter.x - half, letter.x + half, letter.y, letter.height)


def _rulings(page: Any, turns: int) -> tuple[list[Ruling], list[Ruling]]:
    """The straight lines on a page, and the upper and lower edges of shades; none if it is a drawing with
    very many.
    """
    rulings: list[Ruling] = []
    shades: dict[tuple[int, int, int, int], Ruling] = {}
    corners = 0
    for shape in page.get_objects(filter=(raw.FPDF_PAGEOBJ_PATH,), max_depth=1):
        fill, stroke = ctypes.c_int(), ctypes.c_int()
        raw.FPDFPath_GetDrawMode(shape.raw, ctypes.byref(fill), ctypes.byref(stroke))
        for points in _outlines(shape, turns) if fill.value or stroke.value else ():
            corners += len(points)
            if corners > _MOST_CORNERS:
                return [], []
            lines = list(_lines_of(points, is_drawn=bool(stroke.value)))
            rulings.extend(lines)
            if not lines and len(points) in _BOX and not stroke.value:
                color = _color(shape)
                for edge in _lines_of(points, is_drawn=True):
                    key = round(edge.place), round(edge.start), round(edge.end), color
                    if edge.is_horizontal and shades.pop(key, None) is None:  # else it shows nothing
                        shades[key] = edge
    return rulings, list(shades.values())


def _color(shape: Any) -> int:
    parts = [ctypes.c_uint() for _ in range(4)]
    raw.FPDFPageObj_GetFillColor(shape.raw, *map(ctypes.byref, parts))
    return int.from_bytes(bytes(part.value for part in parts))


def _outlines(shape: Any, turns: int) -> Iterator[list[tuple[float, float]]]:
    """The corners of each outline of a shape."""
    matrix = shape.get_matrix()
    points: list[tuple[float, float]] = []
    x, y = ctypes.c_float(), ctypes.c_float()
    for at in range(min(raw.FPDFPath_CountSegments(shape.raw), _MOST_CORNERS)):
        segment = raw.FPDFPath_GetPathSegment(shape.raw, at)
        raw.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
        if raw.FPDFPathSegment_GetType(segment) == raw.FPDF_SEGMENT_MOVETO and points:
            yield points
            points = []
        across, up = matrix.on_point(x.value, y.value)
        points.append(turned(across, up, turns))
        if raw.FPDFPathSegment_GetClose(segment):
            points.append(points[0])
    if points:
        yield points


def _lines_of(points: Sequence[tuple[float, float]], *, is_drawn: bool) -> Iterator[Ruling]:
    """The lines that an outline shows: the outline itself if it is thin, otherwise its sides if drawn."""
    xs, ys = zip(*points, strict=True)
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    if high <= _THIN < wide:
        yield Ruling(True, (max(ys) + min(ys)) / 2, min(xs), max(xs))
    elif wide <= _THIN < high:
        yield Ruling(False, (max(xs) + min(xs)) / 2, min(ys), max(ys))
    elif is_drawn:
        for (x, y), (to_x, to_y) in pairwise(points):
            if abs(y - to_y) < 0.5 and x != to_x:
                yield Ruling(True, y, min(x, to_x), max(x, to_x))
            elif abs(x - to_x) < 0.5 and y != to_y:
                yield Ruling(False, x, min(y, to_y), max(y, to_y))


def _groups(rulings: Sequence[Ruling]) -> Iterator[list[Ruling]]:
    """Lines that touch each other from top to bottom."""
    spans = [(one.place, one.place) if one.is_horizontal else (one.start, one.end) for one in rulings]
    group: list[Ruling] = []
    bottom = 0.0
    for (low, high), ruling in sorted(zip(spans, rulings, strict=True), key=lambda pair: -pair[0][1]):
        if group and high < bottom - _THIN:
            yield group
            group = []
        bottom = min(bottom, low) if group else low
        group.append(ruling)
    if group:
        yield group


def _cells(rulings: Sequence[Ruling]) -> _Cells | None:
    """The cells between lines; None if the lines form no table."""
    xs = _places(one.place for one in rulings if not one.is_horizontal)
    ys = _places(one.place for one in rulings if one.is_horizontal)[::-1]
    if min(len(xs), len(ys)) < _LEAST_LINES or len(xs) * len(ys) > _MOST_CELLS:
        return None
    walls = _walls(rulings, xs, ys)
    xs, ys = _with_walls(xs, walls, False), _with_walls(ys, walls, True)
    if min(len(xs), len(ys)) < _LEAST_LINES:
        return None
    walls = _walls(rulings, xs, ys)
    columns, rows = len(xs) - 1, len(ys) - 1
    cell_at: dict[tuple[int, int], int] = {}
    spans: dict[int, tuple[int, int, CellSpan]] = {}
    for row in range(rows):
        for column in range(columns):
            if (row, column) in cell_at:
                continue
            right, below = column + 1, row + 1
            while right < columns and (False, right, row) not in walls:
                right += 1
            while below < rows and (True, below, column) not in walls:
                below += 1
            places = [(at, place) for at in range(row, below) for place in range(column, right)]
            if any(place in cell_at for place in places):
                return None
            cell_at |= dict.fromkeys(places, len(spans))
            spans[len(spans)] = (row, column, CellSpan(right - column, below - row))
    sizes = Counter(row for row, _, _ in spans.values())
    if sum(size > 1 for size in sizes.values()) < _LEAST_ROWS:
        return None
    return _Cells(xs, ys, cell_at, spans)


def _walls(rulings: Sequence[Ruling], xs: Sequence[float], ys: Sequence[float]) -> set[tuple[bool, int, int]]:
    """Where a line crosses a whole column or row: whether it is horizontal, which line it is, and which
    column or row. Shorter lines only underline a word.
    """
    walls: set[tuple[bool, int, int]] = set()
    downward = [-y for y in ys]
    for is_horizontal, place, start, end in rulings:
        if is_horizontal:
            number, along = _nearest(downward, -place), xs
        else:
            number, along, start, end = _nearest(xs, place), downward, -end, -start
        sides = range(bisect_left(along, start - _THIN), bisect_right(along, end + _THIN) - 1)
        walls.update((is_horizontal, number, at) for at in sides)
    return walls


def _nearest(places: Sequence[float], place: float) -> int:
    """Which of some places in ascending order is the nearest."""
    at = bisect_left(places, place)
    beside = range(max(at - 1, 0), min(at + 1, len(places)))
    return min(beside, key=lambda index: abs(places[index] - place))


def _with_walls(
    places: Sequence[float], walls: Collection[tuple[bool, int, int]], is_horizontal: bool
) -> list[float]:
    used = {number for kind, number, _ in walls if kind == is_horizontal}
    return [place for at, place in enumerate(places) if at in used]


def _places(places: Iterator[float]) -> list[float]:
    """Places of lines, in order; places close together are one line."""
    merged: list[float] = []
    for place in sorted(places):
        if not merged or place - merged[-1] > _THIN:
            merged.append(place)
    return merged


def _letter(text_page: Any, at: int, turns: int) -> Letter:
    box = box_of(text_page, at)
    text = chr(raw.FPDFText_GetUnicode(text_page, at))
    center = turned((box.left + box.right) / 2, (box.bottom + box.top) / 2, turns)
    size = box.right - box.left, box.top - box.bottom
    return Letter(text, *center, *(size[::-1] if turns % 2 else size))


def _owners(
    letters: Sequence[Letter], inside: Sequence[Sequence[int | None]], lines: Sequence[str]
) -> list[set[int | None]]:
    """For each line of text, the tables that its letters are in; empty if these aren't the page's letters."""
    tables = [
        next((n for n, cells in enumerate(inside) if cells[at] is not None), None)
        for at in range(len(letters))
    ]
    owned_letters = ((letter.text, table) for letter, table in zip(letters, tables, strict=True))
    owners: list[set[int | None]] = []
    for line in lines:
        owned = set()
        for char in "".join(line.split()):
            owner = next(
                (table for text, table in owned_letters if text == char or {text, char} <= set(_CUTS)), -1
            )
            if owner == -1:
                return []
            owned.add(owner)
        owners.append(owned)
    return owners


def _grid(
    cells: _Cells,
    inside: Sequence[int | None],
    letters: Sequence[Letter],
    owners: Sequence[set[int | None]],
    number: int,
) -> Grid | None:
    own = [at for at, owned in enumerate(owners) if number in owned]
    if not own or any(owners[at] not in ({number}, set()) for at in range(own[0], own[-1] + 1)):
        return None
    texts = _texts(letters, inside)
    if len(texts) < _LEAST_FILLED * len(cells.spans) or _has_rows_inside(cells, inside, letters):
        return None
    rows: list[list[tuple[str, CellSpan]]] = [[] for _ in cells.ys[1:]]
    for cell, (row, _, span) in cells.spans.items():
        rows[row].append((texts.get(cell, ""), span))
    if is_from_right("".join(texts.values())):
        rows = [[(mirrored(text), span) for text, span in reversed(row)] for row in rows]
    bounds = (cells.xs[0], cells.ys[-1], cells.xs[-1], cells.ys[0])
    return Grid(range(own[0], own[-1] + 1), rows, bounds)


def _has_rows_inside(cells: _Cells, inside: Sequence[int | None], letters: Sequence[Letter]) -> bool:
    """Whether borders between rows are missing: the cells of a row then have similarly many short lines."""
    lines: defaultdict[int, list[list[float]]] = defaultdict(list)
    last: dict[int, float] = {}
    for letter, cell in zip(letters, inside, strict=True):
        if cell is None or letter.text.isspace() or not letter.text.isprintable():
            continue
        if cell not in last or abs(last[cell] - letter.y) >= _APART:
            lines[cell].append([])
        last[cell] = letter.y
        lines[cell][-1].append(letter.x)
    rows: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)
    for cell, written in lines.items():
        row, column, span = cells.spans[cell]
        width = cells.xs[column + span.columns] - cells.xs[column]
        full = sum(max(line) - min(line) > _FULL * width for line in written[:-1])
        for at in range(row, row + span.rows if len(written) > 1 else row):
            rows[at].append((len(written), 2 * full < len(written) - 1))
    return any(
        len(row) > 1 and min(row)[0] >= _ALIKE * max(row)[0] and any(is_short for _, is_short in row)
        for row in rows.values()
    )


def _texts(letters: Sequence[Letter], inside: Sequence[int | None]) -> dict[int, str]:
    """The text of each cell that has any."""
    texts: dict[int, str] = {}
    last: int | None = None
    between = ""
    for (text, *_), cell in zip(letters, inside, strict=True):
        if text in _CUTS or text.isspace() or not text.isprintable():
            between += text
        elif cell is not None:
            before = texts.get(cell, "")
            is_break = cell != last or "\n" in between
            is_word = any(cut in between for cut in _CUTS) or (is_break and goes_on(before[-1:], text))
            is_apart = before and (is_break or between) and not is_word
            texts[cell] = before + (" " if is_apart else "") + text
            last, between = cell, ""
    return texts
