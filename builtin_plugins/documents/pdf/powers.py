"""Superscript on a PDF page: powers and the marks of footnotes.

Only its position distinguishes it from a number before it: otherwise 10 to the 6th would be 106. PDFium often
breaks the line there, in the middle of a sentence.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from pypdfium2 import raw

from builtin_plugins.documents.pdf.boxes import Box, box_of

_RUN: Final = re.compile(r"\d(?:(?:\r\n)?[-+\u2212]?\d)+")
_POWER: Final = re.compile(r"(?<=\d)(?:\r\n)?([-+\u2212]?\d)")
_BREAK: Final = re.compile("\r\n")
_RTL: Final = ("R", "AL")
_RAISED: Final = 0.2  # minimum rise above the letter before, as a share of its height
_NEAR: Final = 0.4  # how far to the right
_MOST: Final = 500  # of a page: each is looked for in its text
_CONTEXT: Final = 100
_WORDS: Final = 4
"""How many words, including the number, are used to find its place in the text of the page."""


class Written(NamedTuple):
    """A page's text without such line breaks, and its powers: the words before, the power, and how often."""

    text: str
    powers: Mapping[tuple[str, str], int]


def written(text_page: Any, text: str) -> Written:
    """Find the powers in `text`, the whole text of a page."""
    powers = Counter(islice(_powers(text_page, text), _MOST))
    pieces, place = [], 0
    for line_break in _BREAK.finditer(text):
        ends = (
            text[line_break.start() - 1 : line_break.start()] + text[line_break.end() : line_break.end() + 1]
        )
        is_ltr = not any(unicodedata.bidirectional(char) in _RTL for char in ends)  # others: see `pdf_rtl`
        if is_ltr and _is_beside(*_boxes(text_page, text, line_break.start() - 1, line_break.end())):
            pieces.append(text[place : line_break.start()])
            place = line_break.end()
    return Written("".join([*pieces, text[place:]]), powers)


def with_powers(text: str, powers: Mapping[tuple[str, str], int]) -> str:
    """Mark each power with `^`, unless other numbers in the text look the same."""
    for (before, power), count in reversed(list(powers.items())):
        words = r"\s+".join(map(re.escape, before.split()))
        same = re.compile(rf"({words})(?={re.escape(power)})")
        if len(same.findall(text)) == count:
            text = same.sub(r"\1^", text)
    return text


def _powers(text_page: Any, text: str) -> Iterator[tuple[str, str]]:
    for run in _RUN.finditer(text):
        if not _is_raised(*_boxes(text_page, text, run.start(), run.end() - 1)):
            continue
        for power in _POWER.finditer(text, *run.span()):
            one, other = _boxes(text_page, text, power.start() - 1, power.start(1))
            if _is_raised(one, other) and _is_beside(one, other):
                line = max(text.rfind("\n", 0, power.start()) + 1, power.start() - _CONTEXT)
                yield " ".join(text[line : power.start()].split()[-_WORDS:]), power[1]


def _boxes(text_page: Any, text: str, *places: int) -> list[Box | None]:
    """Boxes of the letters at `places`; None for a mismatch: characters beyond U+FFFF shift indexes."""
    return [
        box_of(text_page, at)
        if 0 <= at < len(text) and raw.FPDFText_GetUnicode(text_page, at) == ord(text[at])
        else None
        for at in places
    ]


def _is_beside(one: Box | None, other: Box | None) -> bool:
    if one is None or other is None:
        return False
    gap = other.left - one.right
    is_level = other.bottom < one.top and one.bottom < other.top
    return is_level and -1.0 <= gap <= _NEAR * max(one.top - one.bottom, other.top - other.bottom)


def _is_raised(one: Box | None, other: Box | None) -> bool:
    if one is None or other is None:
        return False
    return other.bottom - one.bottom >= _RAISED * max(one.top - one.bottom, 0.1)
