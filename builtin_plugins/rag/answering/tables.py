"""Rows of a table as sentences that say what each cell means: ``Model: Aurora 3; Weight: 2 kg``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_RULE = re.compile(r"[\s|:+=_*#~-]*|~{3,}\w+")
_LONGEST_NAME = 60


@dataclass
class Table:
    """The current table, with its column names if its first row has names.

    A chunk may begin in the middle of a table, so its first row only counts as names if it has no digits
    while rows below do, or if its first cell is empty, above the row names.
    """

    first: tuple[str, ...]
    at_chunk_start: bool
    names: tuple[str, ...] = ()

    def row(self, cells: Sequence[str]) -> str:
        """One row below the first, as a sentence."""
        if not self.names and self._heads(cells):
            self.names = self.first
        if len(cells) > len(self.names):
            return " ".join(filter(None, cells))
        named = zip(self.names, cells, strict=False)
        return "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)

    def _heads(self, cells: Sequence[str]) -> bool:
        has_corner = not self.first[0] and bool(cells[0])
        names = self.first[1:] if has_corner else self.first
        proper = all(names) and len({*names}) == len(names) and max(map(len, names)) <= _LONGEST_NAME
        if not proper or has_corner:
            return proper
        return not _has_digit(names) and (not self.at_chunk_start or _has_digit(cells))


def cells_of(line: str) -> tuple[str, ...]:
    """The cells of a table line, separated by tabs or, as in Markdown, by bars; none for other lines."""
    if "\t" in line:
        parts = line.split("\t")
    elif line.startswith("|") or line.count("|") > 1:
        parts = line.strip("|").split("|")
    else:
        return ()
    cells = tuple(" ".join(part.split()) for part in parts)
    return cells if len(cells) > 1 else ()


def is_rule(line: str) -> bool:
    """Whether a line is only a rule: below a table's header, between sections."""
    return _RULE.fullmatch(line) is not None


def _has_digit(cells: Sequence[str]) -> bool:
    return any(char.isdigit() for cell in cells for char in cell)
