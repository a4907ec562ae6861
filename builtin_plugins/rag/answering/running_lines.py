"""Headers and footers with the number of their page, which stand among the sentences of passages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Final, NamedTuple

_DIGITS: Final = re.compile(r"[0-9]+")
_LONGEST: Final = 120
_MOST_DIGITS: Final = 6


class PageLine(NamedTuple):
    """A line of a document, and the page that it is on. `key` is the caller's own."""

    key: tuple[int, int]
    document: str
    page: int
    text: str


def running_lines(lines: Iterable[PageLine]) -> set[tuple[int, int]]:
    """The keys of those that are the same on another page, but for numbers that differ by as much as the
    pages do: "Annual report 2025 | 47" on page 55, "Annual report 2025 | 31" on page 39.
    """
    alike = defaultdict[tuple[str, str], list[PageLine]](list)
    for line in lines:
        if len(line.text) <= _LONGEST:
            alike[line.document, _DIGITS.sub("0", line.text)].append(line)
    return {
        one.key
        for group in alike.values()
        for pair in combinations(group, 2)
        if _count_pages(*pair)
        for one in pair
    }


def _count_pages(one: PageLine, other: PageLine) -> bool:
    differing = [(first, second) for first, second in _numbers(one, other) if first != second]
    return bool(differing) and all(
        max(len(first), len(second)) <= _MOST_DIGITS and int(first) - int(second) == one.page - other.page
        for first, second in differing
    )


def _numbers(one: PageLine, other: PageLine) -> Iterator[tuple[str, str]]:
    return zip(_DIGITS.findall(one.text), _DIGITS.findall(other.text), strict=True)
