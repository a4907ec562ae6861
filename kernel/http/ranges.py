"""Which part of a file a client asks for (RFC 9110, 14.1 and 14.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

WHOLE: Final = slice(None, None, 1)
_ONE_RANGE: Final = re.compile(r"bytes=[ \t,]*([0-9]*)-([0-9]*)[ \t,]*", re.ASCII | re.IGNORECASE)
_MOST_DIGITS: Final = 18  # no file is that large


def part_of(sent: Sequence[str]) -> slice:
    """The part that a GET's `Range` headers ask for, in aiohttp's form.

    Anything but a single byte range is ignored: another unit, several ranges, letters, an end before its
    start. Raises ValueError for the last zero bytes, which no file can satisfy.
    """
    found = _ONE_RANGE.fullmatch(sent[0]) if len(sent) == 1 else None
    first, last = found.groups() if found else ("", "")
    if not first and not last:
        return WHOLE
    if not first:
        return slice(-_suffix(last), None, 1)
    if not last:
        return slice(_number(first), None, 1)
    start, end = _number(first), _number(last)
    return WHOLE if end < start else slice(start, end + 1, 1)


def _suffix(digits: str) -> int:
    length = _number(digits)
    if length == 0:
        raise ValueError("the last zero bytes were asked for")
    return length


def _number(digits: str) -> int:
    """The number, capped above the size of any file."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS
