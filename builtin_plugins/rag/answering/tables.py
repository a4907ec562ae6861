"""Rows of a table as sentences that say what each cell means: ``Model: Aurora 3; Weight: 2 kg``, or where the
column of labels has no name ``Net loss 2022: (4,935); 2021: (4,202) (in millions)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from builtin_plugins.documents.api import is_amount, names_columns

_RULE = re.compile(r"[\s|:+=_*#~-]*|~{3,}\w+")
_LONGEST_NAME = 80
_LONGEST_UNIT = 300
_MOST_BELOW = 8
_WORDS = (
    r"(?:(?<!\d)(?<!\d\s)(?:million|thousand|billion|mio\b|mrd|tsd|tausend|milliard|millon|miles de"
    r"|mil[hi][oõ]|migliaia|[百千]?万|千|億)|\b000)"
)
"""Not "5 million", which is an amount."""
_BRACKETS = re.compile(rf"\(([^()\n]{{0,60}}{_WORDS}[^()\n]{{0,60}})\)", re.IGNORECASE)
_LINE = re.compile(rf"^(.{{0,40}}\b(?:in|en|em) (?:.{{0,20}} )?{_WORDS}[^.\n]{{0,60}})$", re.I | re.MULTILINE)


@dataclass
class Table:
    """The current table, with its column names if its first row has names; `unit` is what they are in.

    A chunk may begin in the middle of a table, so its first row only counts as names if it has no digits
    while rows below do, if it has years and the like above amounts, or if its first cell is empty, above the
    row names. At its very beginning, that cell is lost with the white space.
    """

    first: tuple[str, ...]
    at_chunk_start: bool
    unit: str = ""
    names: tuple[str, ...] = ()
    _below: list[Sequence[str]] = field(default_factory=list)  # the first rows, until there are names

    def row(self, cells: Sequence[str]) -> str:
        """One row below the first, as a sentence."""
        if not self.names:
            self._below += [cells] if len(self._below) < _MOST_BELOW else []
            self.names = self._names_above(cells)
        if len(cells) > len(self.names):
            return " ".join(filter(None, cells))
        corner = self.names[0]
        named = [f"{name}: {cell}" if name else cell for name, cell in self._pairs(cells) if cell]
        if not _is_note(corner) or not cells[0] or len(named) < 2:
            return "; ".join(named)
        notes = dict.fromkeys(filter(None, (corner.strip("():, "), self.unit)))
        return f"{cells[0]} {'; '.join(named[1:])}" + (f" ({'; '.join(notes)})" if notes else "")

    def ends_above(self, cells: Sequence[str], below: Sequence[str]) -> bool:
        """Whether a row below a label names the columns of another table: it has words alone, above as many
        cells with numbers, and not as many as the rows here.
        """
        is_other = len(cells) == len(below) != len(self.names or self.first)
        has_names = is_other and all(cells) and not any(map(_has_digit, cells))
        return has_names and any(map(_has_digit, below))

    def _pairs(self, cells: Sequence[str]) -> Iterator[tuple[str, str]]:
        return zip(self.names, cells, strict=False)

    def _names_above(self, cells: Sequence[str]) -> tuple[str, ...]:
        first = self.first
        if self.at_chunk_start and len(cells) == len(first) + 1 and all(map(_has_digit, first)):
            first = ("", *first)
        has_corner = not first[0] and bool(cells[0])
        names = first[1:] if has_corner else first
        is_proper = all(names) and len({*names}) == len(names) and max(map(len, names)) <= _LONGEST_NAME
        if not is_proper or any(map(is_amount, names)):
            return ()
        if any(map(_has_digit, names)):
            return first if names_columns(first, self._below) else ()
        is_sure = has_corner or not self.at_chunk_start or any(map(_has_digit, cells))
        return first if is_sure else ()


def _is_note(corner: str) -> bool:
    """Whether what stands above the labels of rows does not name them: a unit, or the beginning of a date."""
    return not corner or corner[0] == "(" or corner[-1] in ",:" or _has_digit(corner)


def unit_in(text: str) -> str:
    """The unit that the lines above a table tell: "Dollars in millions"; empty if they don't."""
    match = _BRACKETS.search(text[-_LONGEST_UNIT:]) or _LINE.search(text[-_LONGEST_UNIT:])
    return match[1].strip() if match else ""


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


def _has_digit(cell: str) -> bool:
    return any(map(str.isdigit, cell))
