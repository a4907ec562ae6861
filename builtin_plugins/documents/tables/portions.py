"""Splits long tables into portions, each below the column names, so that passages end between portions.

A portion is at most a third of a passage of the default size, so that one always ends in a passage's second
half (see `chunking`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, dropwhile, groupby, islice, pairwise, zip_longest
from types import MappingProxyType
from typing import Final

from builtin_plugins.documents.tables.names import is_caption
from builtin_plugins.documents.tables.spans import LONGEST_REPEATED, names_of

_PORTION: Final = 500
_NUMBER: Final = re.compile(r"[-+]?[.,]*+\d[\d.,:/-]*+(?: ?\S{1,3})?")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
FIRST_ROWS: Final = 12
"""How many rows decide which of them are titles."""
_GAP: Final = "\t" * 17
"""A row with 16 empty columns in a row, or more: those that are empty in the whole portion are left out."""
_GAPS: Final = re.compile(r"\t{17,}+")
_MOST_CAPTIONS: Final = 2  # lines
_SHARE: Final = 3  # a portion has at least this many times the size of its row of names


def size_of(row: Sequence[str]) -> int:
    """Characters of a row as a line, including the line break."""
    return sum(map(len, row)) + len(row)


def room_below(names: Sequence[str]) -> int:
    """Characters that fit a portion, including the row of names."""
    return max(_PORTION, _SHARE * size_of(names))


def titles_above(rows: Sequence[Sequence[str]]) -> int:
    """How many of the first rows are titles above the column names: they have one cell each, and most rows
    below have several. A lone cell above the last column is its name, as the other column may have none.
    """
    filled = [[at for at, cell in enumerate(row) if cell.strip()] for row in rows]
    titles = next((at for at, cells in enumerate(filled) if len(cells) > 1), 0)
    if 2 * sum(len(cells) > 1 for cells in filled[titles:]) <= len(filled) - titles:
        return 0
    names_last = titles and filled[titles - 1] == filled[titles][-1:]
    return titles - 1 if names_last else titles


class Above:
    """Fills cells of a sheet that belong to a cell above them: what it says holds for each of its rows."""

    def __init__(self) -> None:
        self._reaching: dict[int, tuple[str, int]] = {}  # text and rows to come, by column

    def fill(self, cells: list[str], spans: Iterable[tuple[int, int, int]]) -> None:
        """Fill the empty cells of the next row; `spans` are the cells in it that span others: their first and
        last columns, and how many rows they reach below.
        """
        for column, (text, rows) in list(self._reaching.items()):
            if column < len(cells) and not cells[column]:
                cells[column] = text
            if rows > 1:
                self._reaching[column] = (text, rows - 1)
            else:
                del self._reaching[column]
        for first, _, rows in spans:
            if rows > 0 and first < len(cells) and 0 < len(cells[first]) <= LONGEST_REPEATED:
                self._reaching[first] = (cells[first], rows)


def line_of(
    cells: Sequence[str],
    spans: Sequence[tuple[int, int]],
    wide: dict[str, str],
    hidden: Collection[int] = (),
) -> str:
    """A row of a sheet without its `hidden` columns. The texts of cells that span columns (the first and last
    of each) are repeated in each of them if the row has other cells; such a row is added to `wide`. So is a
    lone cell that begins further right, with the row as it would be: it may be a title or name columns.
    """
    line = _line(cells, hidden)
    is_lone = "\t" not in line.strip()
    if not spans or (is_lone and not line.startswith("\t")):
        return line
    spread = list(cells)
    for first, last in spans:
        if first < len(cells) and len(cells[first]) <= LONGEST_REPEATED:
            spread[first : last + 1] = [cells[first]] * (last + 1 - first)
    repeated = _line(spread, hidden)
    wide[line if is_lone else repeated] = repeated
    return line if is_lone else repeated


def _line(cells: Sequence[str], hidden: Collection[int]) -> str:
    visible = [cell for at, cell in enumerate(cells) if at not in hidden] if hidden else cells
    return "\t".join(visible).rstrip()


def portions_of_sheet(lines: Iterator[str], wide: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """A sheet's tab-separated rows in portions that begin with the row of column names.

    Rows above it are titles; the last of them are repeated with the names. Below an empty line, another table
    may begin, with names of its own. `wide` are rows with cells that span columns, as known when they are
    reached: names may go on below them.
    """
    header, portion, size, caption = "", list[str](), 0, list[str]()
    for first, rest in _tables(lines):
        titles, names, rows = _head(first, wide)
        if not header or _names_numbers(names, rows):
            if portion:
                yield _without_gaps(portion)
            yield from (_without_gaps([title]) for title in first[:titles])
            first_titles = [title.strip() for title in first[max(0, titles - _MOST_CAPTIONS) : titles]]
            header, first = names, rows
            caption = [title for title in first_titles if is_caption(title)]
            portion, size = [header], _filled(header)
        room = max(_PORTION, _SHARE * (_filled(header) + 1))
        for line in chain(first, rest):
            length = _filled(line)
            if size + length > room and portion[-1] is not header:
                yield _without_gaps(portion)
                portion, size = [*caption, header], _filled(header)
            portion.append(line)
            size += length
    if portion:
        yield _without_gaps(portion)


def _filled(line: str) -> int:
    """Characters of a row, wide gaps left out."""
    return len(_GAPS.sub("\t", line)) if _GAP in line else len(line)


def _without_gaps(portion: Sequence[str]) -> str:
    """The rows of a portion. If any has a wide gap, columns that are empty in all of them are left out: a tab
    for each, on every row, would be more text than the sheet has.
    """
    if not any(_GAP in line for line in portion):
        return "\n".join(portion)
    rows = [line.split("\t") for line in portion]
    filled = sorted({at for row in rows for at, cell in enumerate(row) if cell})
    narrow = ("\t".join(row[at] for at in filled if at < len(row)) for row in rows)
    return "\n".join(line.rstrip() for line in narrow)


def _tables(lines: Iterator[str]) -> Iterator[tuple[list[str], Iterator[str]]]:
    """What lies between empty lines: the first rows, and the rest. Lone cells at the beginning, which may be
    titles, belong to the table below.
    """
    titles: list[str] = []
    for is_filled, block in groupby(lines, bool):
        rows = iter(block)
        first = list(islice(rows, FIRST_ROWS)) if is_filled else []
        may_be_titles = len(titles) + len(first) < FIRST_ROWS
        if may_be_titles and not any("\t" in line.strip() for line in first):
            titles += first
        elif first:
            yield [*titles, *first], rows
            titles = []
    if titles:
        yield titles, iter(())


def _head(first: list[str], wide: Mapping[str, str]) -> tuple[int, str, list[str]]:
    """How many titles there are, the row of column names, and the rows below it."""
    titles = titles_above([line.split("\t") for line in first])
    if titles and (group := wide.get(first[titles - 1])):
        pairs = list(zip_longest(group.split("\t"), first[titles].split("\t"), fillvalue=""))
        if all(name for _, name in pairs) and not all(named for named, _ in pairs):
            header = "\t".join(names_of([[cell for cell, _ in pairs], [cell for _, cell in pairs]])[1])
            return titles - 1, header, first[titles + 1 :]
    header, rows = first[titles], first[titles + 1 :]
    names, below = header.split("\t"), rows[0].split("\t") if rows else []
    if header not in wide:
        names = _spread(names, below, rows[1].split("\t") if len(rows) > 1 else [])
    if (header in wide or names) and below and all(map(_may_name, below)):
        whole = names_of([names, below])[1]
        if all(whole) and len(set(whole)) == len(whole):
            return titles, "\t".join(whole), rows[1:]
    return titles, header, rows


def _may_name(cell: str) -> bool:
    return _YEAR.fullmatch(cell) is not None or not _NUMBER.fullmatch(cell)


def _spread(names: list[str], below: list[str], values: list[str]) -> list[str]:
    """Names with gaps, each repeated up to the next, if the row below can only name parts of them because it
    repeats itself; otherwise none. The first column may have its name in that row, above numbers.
    """
    padded = names + [""] * (len(below) - len(names))
    first = 0 if padded[0] else 1
    has_own_name = below[:1] not in ([""], padded[:1]) and any(map(_NUMBER.fullmatch, values))
    are_parts = all(below[1:]) and len(set(below)) < len(below)
    if all(padded[first:]) or not padded[first] or not are_parts or has_own_name != bool(first):
        return []
    for at in range(first + 1, len(padded)):
        padded[at] = padded[at] or padded[at - 1]
    return padded


def _names_numbers(header: str, rows: Sequence[str]) -> bool:
    """Whether a row names columns, at least one of which has a number in the next row. Names that could be
    data (they contain digits, or the first column has no name) must all have a number below them; numbers are
    names only if they are years above other numbers.
    """
    below = rows[0].split("\t") if rows else []
    pairs = zip_longest(header.split("\t"), below, fillvalue="")
    columns = list(dropwhile(lambda pair: not any(pair), pairs))
    is_crossed = bool(columns) and not columns[0][0]
    named = columns[1:] if is_crossed else columns
    names = [name for name, _ in named]
    if not all(names) or len(set(names)) != len(names) or len(names) < 2:
        return False
    has_number = [_NUMBER.fullmatch(cell) is not None for _, cell in named]
    is_unsure = [is_crossed or any(map(str.isdigit, name)) for name in names]
    if any(unsure and not number for unsure, number in zip(is_unsure, has_number, strict=True)):
        return False
    if any(_YEAR.fullmatch(name) and _YEAR.fullmatch(cell) for name, cell in named):
        return False
    return any(has_number) and _may_be_years([name for name in names if _NUMBER.fullmatch(name)])


def _may_be_years(numbers: list[str]) -> bool:
    """Whether numbers are consecutive years; true if there are none."""
    if not all(map(_YEAR.fullmatch, numbers)) or len(numbers) == 1:
        return False
    return {int(after) - int(before) for before, after in pairwise(numbers)} in (set(), {1}, {-1})
