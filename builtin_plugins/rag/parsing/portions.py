"""Splits long tables into portions, each below the column names, so that passages end between portions.

A portion is at most a third of a passage of the default size, so that one always ends in a passage's second
half (see `chunking`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

_PORTION: Final = 500
FIRST_ROWS: Final = 12
"""How many rows decide which of them are titles."""
_SHARE: Final = 3  # a portion has at least this many times the size of its row of names


def names_columns(row: Sequence[str]) -> bool:
    """Whether a table's first row has names: all cells are filled and distinct, and none has a digit."""
    names = [cell.strip() for cell in row]
    distinct = all(names) and len(set(names)) == len(names) > 1
    return distinct and not any(char.isdigit() for name in names for char in name)


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


def portions_of_sheet(lines: Iterator[str]) -> Iterator[str]:
    """A sheet's tab-separated rows in portions that begin with the row of column names.

    Rows above it are titles.
    """
    first = list(islice(lines, FIRST_ROWS))
    titles = titles_above([line.split("\t") for line in first])
    yield from first[:titles]
    if not first:
        return
    header, lines = first[titles], chain(first[titles + 1 :], lines)
    room = room_below([header])
    portion, size = [header], len(header)
    for line in lines:
        if size + len(line) > room and len(portion) > 1:
            yield "\n".join(portion)
            portion, size = [header], len(header)
        portion.append(line)
        size += len(line)
    yield "\n".join(portion)
