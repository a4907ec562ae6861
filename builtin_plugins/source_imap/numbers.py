"""Sets of numbers as short texts, such as ``1:4,7``."""

from __future__ import annotations


def as_ranges(numbers: set[int]) -> str:
    """The numbers, as `from_ranges` reads them."""
    parts, ordered = list[str](), sorted(numbers)
    start = 0
    for at, number in enumerate(ordered):
        if at + 1 == len(ordered) or ordered[at + 1] != number + 1:
            first = ordered[start]
            parts.append(str(first) if first == number else f"{first}:{number}")
            start = at + 1
    return ",".join(parts)


def from_ranges(text: str) -> set[int]:
    """The numbers in a text."""
    numbers = set[int]()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition(":")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers
