"""From when until when a document applies, as its text says: "applies from 1 July 2026"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from functools import cache
from typing import Final

from builtin_plugins.rag.dates import time_words as words
from builtin_plugins.rag.dates.spans import DateSpan, sentences_with_dates

VALID_FROM: Final = "valid_from"
VALID_UNTIL: Final = "valid_until"
VALIDITY: Final = (VALID_FROM, VALID_UNTIL)
_MOST_READ: Final = 20_000
"""Characters at a document's beginning that are read."""
_NEAR: Final = 100
_MOST_DATES: Final = 200
"""Dates of one line that are looked at."""
_GAP: Final = 40
"""Characters between the words and a date of an earlier version."""


def validity_in(texts: Iterable[str]) -> dict[str, date]:
    """The first and the last day on which a document applies, by field; `texts` are its passages in order.

    A day that its text contradicts is left out, as is a date of an earlier version that it replaces.
    """
    days_by_field: dict[str, set[date]] = {VALID_FROM: set(), VALID_UNTIL: set()}
    for sentence, spans in sentences_with_dates(_beginning(texts)):
        before: DateSpan | None = None
        for span in spans[:_MOST_DATES]:
            is_second = before is not None and _is_range(sentence[before.stop : span.place])
            before = None
            if is_second or _is_said(sentence, span, VALID_UNTIL):
                days_by_field[VALID_UNTIL].add(span.end - timedelta(days=1))
            elif _is_said(sentence, span, VALID_FROM) and not _is_of_earlier_version(sentence, span):
                days_by_field[VALID_FROM].add(span.start)
                before = span
    return _agreed(days_by_field)


def _agreed(days_by_field: Mapping[str, set[date]]) -> dict[str, date]:
    """The days that are said once, or always the same; none if they end before they begin."""
    days = {field: min(dates) for field, dates in days_by_field.items() if len(dates) == 1}
    return {} if len(days) == 2 and days[VALID_FROM] > days[VALID_UNTIL] else days


def _beginning(texts: Iterable[str]) -> str:
    """The passages' text up to a limit; passages overlap, so a date may be in it twice."""
    parts, length = [], 0
    for text in texts:
        parts.append(text[: _MOST_READ - length])
        length += len(text)
        if length >= _MOST_READ:
            break
    return "\n".join(parts)


def _is_said(sentence: str, span: DateSpan, field: str) -> bool:
    before, after = _patterns()[field]
    return bool(before.search(_before(sentence, span)) or after.match(sentence, span.stop))


def _is_of_earlier_version(sentence: str, span: DateSpan) -> bool:
    return bool(_superseded().search(_before(sentence, span)))


def _is_range(between: str) -> bool:
    """Whether the words between two dates make them a range."""
    return len(between) <= _GAP and _range_middle().fullmatch(between.lstrip()) is not None


def _before(sentence: str, span: DateSpan) -> str:
    """The last characters before a date: more could not belong to it, and take long to look through."""
    return sentence[max(0, span.place - _NEAR) : span.place]


@cache
def _range_middle() -> re.Pattern[str]:
    pattern = rf"{words.RANGE[1]}\s*+(?:(?:{words.FILLERS})\s*+)*+"
    return re.compile(pattern, re.IGNORECASE)


@cache
def _superseded() -> re.Pattern[str]:
    alone, joined = words.SUPERSEDES
    spaced = rf"{words.BEGINS}(?:{alone}){words.ENDS}"
    return re.compile(rf"(?:{spaced}|{joined})[^.;。]{{0,{_GAP}}}$", re.IGNORECASE)


@cache
def _patterns() -> Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]]:
    """By field: the words before its date, and those after it."""
    filler = rf"\s*:?\s*(?:(?:{words.FILLERS})\s*)*$"
    phrases = {
        VALID_FROM: (words.VALID_FROM, words.FROM_AFTER),
        VALID_UNTIL: (words.VALID_UNTIL, words.UNTIL_AFTER),
    }
    return {
        field: (
            re.compile(rf"{words.BEGINS}(?:{'|'.join(before)}){filler}", re.IGNORECASE),
            re.compile(f"(?:{after})", re.IGNORECASE),
        )
        for field, (before, after) in phrases.items()
    }
