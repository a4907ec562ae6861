"""Long tables in portions, the names of the columns above each: a passage ends between two of them.

A portion is at most a third of a passage of the default size, so that there is always an end in a passage's
second half (see `chunking`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

_PORTION: Final = 500
FIRST_ROWS: Final = 12
"""How many rows decide which of them are titles."""
_SHARE: Final = 3  # a row of long names is not written more often than this times its length


def names_columns(row: Sequence[str]) -> bool:
    """Whether a table's first row holds names: all cells do, each another, and none has a digit."""
    names = [cell.strip() for cell in row]
    distinct = all(names) and len(set(names)) == len(names) > 1
    return distinct and not any(char.isdigit() for name in names for char in name)


def size_of(row: Sequence[str]) -> int:
    """Characters of a row as a line, its end included."""
    return sum(map(len, row)) + len(row)


def room_below(names: Sequence[str]) -> int:
    """Characters that a portion takes, the row of names included."""
    return max(_PORTION, _SHARE * size_of(names))


def titles_above(rows: Sequence[Sequence[str]]) -> int:
    """How many of the first rows stand above the names of the columns: they have one cell each, and most rows
    below have several. A lone cell above the last column names it, as the column before needs no name.
    """
    filled = [[at for at, cell in enumerate(row) if cell.strip()] for row in rows]
    titles = next((at for at, cells in enumerate(filled) if len(cells) > 1), 0)
    if 2 * sum(len(cells) > 1 for cells in filled[titles:]) <= len(filled) - titles:
        return 0
    names_last = titles and filled[titles - 1] == filled[titles][-1:]
    return titles - 1 if names_last else titles


def portions_of_sheet(lines: Iterator[str]) -> Iterator[str]:
    """A sheet's rows, tabs between cells, in portions that begin with the row that names the columns.

    What is above it is a title.
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
