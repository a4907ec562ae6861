"""The period that a question is about: "last year", "since March", "before 2024", "the newest price"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Final, Literal

from builtin_plugins.rag.dates import time_words as words
from builtin_plugins.rag.dates.spans import DateSpan, dates_in, day_span, month_span, year_span
from builtin_plugins.rag.dates.time_words import Relation, Unit

PeriodKind = Literal["within", "since", "before", "current"]
_LONGEST: Final = 1_000
"""Characters of a question that are read."""
_NEAR: Final = 80
"""Characters before a date to which the words about it belong."""
_END: Final = re.compile(r"\s*(?:[?!.,;:)\]»”\"']|$|？|。|؟|।)")
_THE: Final = re.compile(r"(?<!\w)the\s+$", re.IGNORECASE)


@dataclass(frozen=True)
class QuestionPeriod:
    """Days from `start` until before `end`, either of which may be open; both are, for the newest of all.

    `words` are those of the question that say so; None if it says nothing, so that what applies today is
    meant. `newest`: the newest of several documents that answer is meant.
    """

    kind: PeriodKind
    start: date | None
    end: date | None
    words: str | None
    newest: bool = False

    @classmethod
    def today(cls, day: date, wording: str | None = None, *, newest: bool = False) -> QuestionPeriod:
        """What applies on a day."""
        return cls("current", day, day + timedelta(days=1), wording, newest)


@dataclass(frozen=True)
class _Limit:
    """What one date in a question says."""

    start: date | None
    end: date | None
    place: int
    stop: int


def period_in(question: str, today: date) -> QuestionPeriod | None:
    """The period that a question is about; None if it names both one and the present, so that none is left
    out. A question that names none is about what applies today, as is one that only names a later day:
    "must I ask before 2027?". A month without a year is a period since then alone: "by May" may be any.
    """
    text = question[:_LONGEST]
    limits, (newest, current) = _limits(text, today), _present(text)
    if not limits:
        wording = newest or current
        return QuestionPeriod.today(today, wording, newest=wording is not None)
    start, end = _combined(limits)
    if start is None and end is not None and end > today:
        return QuestionPeriod.today(today)
    is_past = end is not None and end <= today
    if (is_past and current is not None and newest is None) or (start and end and start >= end):
        return None
    kind: PeriodKind = "within" if start and end else "since" if start else "before"
    wording = text[min(one.place for one in limits) : max(one.stop for one in limits)].strip()
    return QuestionPeriod(kind, start, end, wording, newest is not None)


def _combined(limits: Sequence[_Limit]) -> tuple[date | None, date | None]:
    """Whole periods together are one from the first to the last; open ones limit each other."""
    whole = [one for one in limits if one.start is not None and one.end is not None]
    starts = [one.start for one in limits if one.start is not None and one.end is None]
    ends = [one.end for one in limits if one.end is not None and one.start is None]
    if whole and not starts and not ends:
        return min(one.start for one in whole if one.start), max(one.end for one in whole if one.end)
    return max(starts, default=None), min(ends, default=None)


def _limits(text: str, today: date) -> list[_Limit]:
    spans = sorted([*dates_in(text, today), *_relative_spans(text, today)], key=lambda one: one.place)
    limits, skip = list(_counted(text, today)), -1
    for number, span in enumerate(spans):
        if number == skip or any(one.place <= span.place < one.stop for one in limits):
            continue
        following = spans[number + 1] if number + 1 < len(spans) else None
        if following is not None and (place := _range_start(text, span, following)) is not None:
            limits.append(_Limit(_with_year(span, following).start, following.end, place, following.stop))
            skip = number + 1
            continue
        limits += _limit(text, span)
    return limits


def _with_year(first: DateSpan, second: DateSpan) -> DateSpan:
    """The first date of a range; a month without a year has that of the second."""
    if first.has_year:
        return first
    year = second.start.year - (first.start.month > second.start.month)
    return month_span(year, first.start.month, first.place, first.stop)


def _range_start(text: str, first: DateSpan, second: DateSpan) -> int | None:
    opening, between = _range_patterns()
    if not between.fullmatch(text[first.stop : second.place]):
        return None
    begun = opening.search(text, max(0, first.place - _NEAR), first.place)
    dashed = text[first.stop : second.place].strip() in ("-", "–", "—")
    return begun.start() if begun else first.place if dashed and first.has_year else None


def _limit(text: str, span: DateSpan) -> Iterator[_Limit]:
    relation, place, stop = _relation(text, span)
    if relation is None or not (span.has_year or relation in ("since", "after")):
        return
    start, end = {
        "within": (span.start, span.end),
        "since": (span.start, None),
        "after": (span.end, None),
        "before": (None, span.start),
        "until": (None, span.end),
    }[relation]
    yield _Limit(start, end, place, stop)


def _relation(text: str, span: DateSpan) -> tuple[Relation | None, int, int]:
    """How a date limits a question, and the place of the words that say so."""
    for relation, pattern in _after_patterns():
        match = pattern.match(text, span.stop)
        if match and relation != "within":
            return relation, _own_start(text, span), match.end()
    for relation, pattern in _before_patterns():
        match = pattern.search(text, max(0, span.place - _NEAR), span.place)
        if match:
            if relation == "before" and _end_pattern().search(match[0]):
                relation = "until"
            # of "in March" and "of 2025", only the date is shown.
            return relation, (span.place if relation == "within" else match.start()), span.stop
    if not span.has_year:
        return None, 0, 0
    if (
        not span.is_bare
        or _END.match(text, span.stop)
        or _THE.search(text[max(0, span.place - _NEAR) : span.place])
    ):
        return "within", span.place, span.stop
    return (
        ("within" if any(p.match(text, span.stop) for _, p in _after_patterns()) else None),
        span.place,
        span.stop,
    )


def _own_start(text: str, span: DateSpan) -> int:
    """Where the words of a date begin whose relation follows it: "from 2024 on", "自2024年以来"."""
    match = _range_patterns()[0].search(text, max(0, span.place - _NEAR), span.place)
    return match.start() if match else span.place


def _relative_spans(text: str, today: date) -> Iterator[DateSpan]:
    for (unit, number), pattern in _relative_patterns():
        for match in pattern.finditer(text):
            span = _moved(unit, number, today)
            yield DateSpan(span.start, span.end, *match.span())


def _moved(unit: Unit, number: int, today: date) -> DateSpan:
    if unit == "year":
        return year_span(today.year + number)
    if unit == "month":
        return month_span(today.year, today.month + number)
    if unit == "week":
        monday = today - timedelta(days=today.weekday() - 7 * number)
        return DateSpan(monday, monday + timedelta(days=7), 0, 0)
    return day_span(today + timedelta(days=number))


def _counted(text: str, today: date) -> Iterator[_Limit]:
    for pattern in _counted_patterns():
        for match in pattern.finditer(text):
            unit = next((one for one, start in _unit_patterns() if start.match(match["unit"])), None)
            if unit is not None:
                yield _Limit(
                    _earlier(today, int(match["number"]), unit), today + timedelta(days=1), *match.span()
                )


def _earlier(today: date, number: int, unit: Unit) -> date:
    if unit in ("day", "week"):
        return today - timedelta(days=number * (7 if unit == "week" else 1))
    month = month_span(today.year, today.month - number * (12 if unit == "year" else 1))
    return min(month.start.replace(day=1) + timedelta(days=today.day - 1), month.end - timedelta(days=1))


def _present(text: str) -> tuple[str | None, str | None]:
    """The words that ask for the newest, and those for what applies now."""
    newest, current = _present_patterns()
    latest = newest.search(text)
    now = current.search(text)
    return (latest[0] if latest else None), (now[0] if now else None)


def _words(alone: str, joined: str = "") -> str:
    spaced = rf"{words.BEGINS}(?:{alone}){words.ENDS}"
    return f"{spaced}|{joined}" if joined else spaced


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


@cache
def _before_patterns() -> Sequence[tuple[Relation, re.Pattern[str]]]:
    tail = rf"\s*(?:(?:{words.FILLERS})\s*)*$"
    event = rf"\s+(?:\S+\s+){{1,3}}?(?:{words.OF_DATE})\s+(?:(?:{words.FILLERS})\s+)*$"
    dated = rf"\s+(?:(?:{words.FILLERS})\s+)*$"
    within = f"{words.BEFORE_DATE['within']}|ปี|năm|год\\w*|año|jahr\\w*|year|année|an|ano|anno"
    order: Sequence[tuple[Relation, str, str]] = (
        *((one, words.BEFORE_DATE[one], tail) for one in ("since", "after", "before", "until")),
        *((one, cue, event) for one, cue in words.BEFORE_EVENT.items()),
        *((one, cue, dated) for one, cue in words.BEFORE_DATED_EVENT.items()),
        *((one, cue, r"\s*$") for one, cue in words.THAI_EVENT.items()),
        ("within", within, tail),
    )
    return [(one, _compiled(rf"{words.BEGINS}(?:{cue}){rest}")) for one, cue, rest in order]


@cache
def _end_pattern() -> re.Pattern[str]:
    return _compiled(_words(words.END_OF_DATE))


@cache
def _after_patterns() -> Sequence[tuple[Relation, re.Pattern[str]]]:
    order: Sequence[Relation] = ("before", "after", "since", "until", "within")
    return [(relation, _compiled(rf"(?:{words.AFTER_DATE[relation]})")) for relation in order]


@cache
def _range_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    opening, between = words.RANGE
    return (
        _compiled(rf"{words.BEGINS}{opening}\s*(?:(?:{words.FILLERS})\s+)*$"),
        _compiled(rf"\s*+{between}\s*+(?:(?:{words.FILLERS})\s++)*+"),
    )


@cache
def _relative_patterns() -> Sequence[tuple[tuple[Unit, int], re.Pattern[str]]]:
    return [(moved, _compiled(_words(*patterns))) for moved, patterns in words.RELATIVE.items()]


@cache
def _counted_patterns() -> Sequence[re.Pattern[str]]:
    plain = [f"{before}(?P<unit>{unit})" for before, unit in words.COUNTED]
    first = [rf"(?P<number>\d{{1,3}})\s*(?P<unit>{unit}){after}" for unit, after in words.COUNTED_FIRST]
    return [_compiled(one) for one in (*plain, *first)]


@cache
def _unit_patterns() -> Sequence[tuple[Unit, re.Pattern[str]]]:
    return [(unit, _compiled(start)) for unit, start in words.UNITS.items()]


@cache
def _present_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return _compiled(_words(*words.NEWEST)), _compiled(_words(*words.CURRENT))
