"""Long tables in portions, the names of the columns above each: a passage ends between two of them.

A portion is at most a third of a passage of the default size, so that there is always an end in a passage's
second half (see `chunking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_PORTION: Final = 500
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
