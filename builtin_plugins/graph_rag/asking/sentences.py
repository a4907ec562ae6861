"""The sentence around a place in a passage."""

from __future__ import annotations

import re

LONGEST = 300
_END = re.compile(r"[.!?](?=\s)|[。！？؟।]|\n")


def around(text: str, start: int, end: int) -> str:
    """The sentence or sentences around `start` to `end`, as one line; only the middle if it is long."""
    before = max((match.end() for match in _END.finditer(text, 0, start)), default=0)
    after = _END.search(text, end)
    stop = after.end() if after else len(text)
    if stop - before > LONGEST:
        middle = (start + end) // 2
        before, stop = max(before, middle - LONGEST // 2), min(stop, middle + LONGEST // 2)
    return " ".join(text[before:stop].split())


def all_of(text: str) -> list[tuple[int, int]]:
    """The positions of a passage's sentences."""
    ends = [match.end() for match in _END.finditer(text)]
    places = zip([0, *ends], [*ends, len(text)], strict=True)
    return [(start, end) for start, end in places if text[start:end].strip()]
