"""Dates as people write them in thirteen languages, found in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Final

from builtin_plugins.rag.dates.time_words import BEGINS, ENDS, LOCALES, NAMED_BY_NUMBER, OTHER_MONTHS

_EARLIEST, _LATEST = 1900, 2100
_BUDDHIST: Final = 543
"""Years of the Thai calendar are so many more."""
_THAI: Final = re.compile("[\u0e00-\u0e7f]")
_ANY_YEAR: Final = re.compile(r"\d{4}")
_NEAR: Final = 40
_NO_YEAR_BEFORE: Final = re.compile(
    r"(?:[€$£¥#:/.,+_*“„\"'‘-]|[«‹]\s?|写了?|§\s?|\b(?:iso|din(?:\sen)?|no\.|nr\.)\s?|"
    r"\b(?:" + NAMED_BY_NUMBER + r")\s)$",
    re.I,
)
_NAME_BEFORE: Final = re.compile(r"(?:(?<!\w)[A-Z][A-Z\d-]+|(?<=[^\W\d_]\s)[A-ZÀ-Þ]\w*\s[A-ZÀ-Þ]\w*)\s$")
"""Letters as of RFC 1918, and two words in capitals as of Visual Studio 2022, without a first word."""
_NO_YEAR_AFTER: Final = re.compile(
    r"[a-z0-9_%€$£¥°]|[-/:]\d|[.,]\d|\s*(?:[%€$£¥°₽₺]|(?:euros?|eur|usd|dollars?|gbp|chf|kr|nok|sek|kg|km|mm|cm|m|w|kw|kwh|mb|gb|"
    r"hours?|stunden|users?|people|employees|pages|seiten|mitarbeiter\w*|pieces|stück|рубл\w+|元|人|บาท|model\w*|"
    r"versi\w+|release|edition|problem|bug|модел\w+)(?!\w))",
    re.I,
)


@dataclass(frozen=True)
class DateSpan:
    """A day, month or year in a text: its days from `start` until before `end`, its place there.

    `is_bare`: a year without anything that makes it one; `has_year` is False for a month alone.
    """

    start: date
    end: date
    place: int
    stop: int
    is_bare: bool = False
    has_year: bool = True

    @property
    def is_day(self) -> bool:
        """Whether it is one day."""
        return self.end - self.start == timedelta(days=1)


def dates_in(text: str, today: date | None = None) -> list[DateSpan]:
    """The dates in a text in their order. With `today`, also months without a year: the last such month."""
    spans: list[DateSpan] = []
    for match in _pattern().finditer(text):
        span = _span(match, text, today)
        if span is not None:
            spans.append(span)
    return spans


def day_span(day: date, place: int = 0, stop: int = 0) -> DateSpan:
    """One day."""
    return DateSpan(day, day + timedelta(days=1), place, stop)


def month_span(year: int, month: int, place: int = 0, stop: int = 0, *, has_year: bool = True) -> DateSpan:
    """A month; its number may be beyond those of its year."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    end = date(year + month // 12, month % 12 + 1, 1)
    return DateSpan(date(year, month, 1), end, place, stop, has_year=has_year)


def year_span(year: int, place: int = 0, stop: int = 0, *, is_bare: bool = False) -> DateSpan:
    """A year."""
    return DateSpan(date(year, 1, 1), date(year + 1, 1, 1), place, stop, is_bare)


@cache
def _months() -> Mapping[str, int]:
    from babel.dates import get_month_names

    names = dict(OTHER_MONTHS)
    for locale in LOCALES:
        for context in ("format", "stand-alone"):
            for number, name in get_month_names("wide", context, locale).items():
                if not name[:1].isdigit() and not _is_ideographic(name):
                    names[name.casefold()] = int(number)
    return names


def _is_ideographic(name: str) -> bool:
    return "月" in name


@cache
def _pattern() -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, _months()), key=len, reverse=True))
    year, of = r"(?:19|20|25)\d\d", r"(?:\s+(?:of|del?|năm|พ\.ศ\.|г\.))?"
    ordinal = r"(?:st|nd|rd|th|er|º|ª|°|\.)?"
    forms = (
        rf"(?P<iso>(?<![\d-]){year}-\d{{1,2}}(?:-\d{{1,2}})?(?![\d-]))",
        r"(?P<zh>\d{4}\s*年(?:\s*\d{1,2}\s*月(?:\s*\d{1,2}\s*[日号])?)?)",
        rf"(?P<vi>(?:(?:ngày\s+)?\d{{1,2}}\s+)?tháng\s+\d{{1,2}}(?:\s*[,/]\s*|\s+năm\s+|\s+){year})",
        rf"(?P<dmy>(?<![\w.,])\d{{1,2}}{ordinal}(?:\s+(?:of|de))?\s*(?:{names})\.?{ENDS},?{of}\s*{year}(?!\d))",
        rf"(?P<mdy>{BEGINS}(?:{names})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+{year}(?!\d))",
        rf"(?P<my>{BEGINS}(?:{names})\.?{ENDS},?{of}\s*{year}(?!\d))",
        rf"(?P<figures>(?<![\d./-])\d{{1,2}}[./-]\d{{1,2}}[./-]{year}(?![\d/-]))",
        rf"(?P<year>{BEGINS}{year})",
        rf"(?P<month>{BEGINS}(?:{names}){ENDS}(?!\.))",
    )
    return re.compile("|".join(forms), re.IGNORECASE)


def _span(match: re.Match[str], text: str, today: date | None) -> DateSpan | None:
    kind, written = match.lastgroup or "", match[0]
    try:
        return _READERS[kind](match, written, text, today)
    except ValueError:  # there is no such day
        return None


def _numbers(written: str) -> list[int]:
    return [int(one) for one in re.findall(r"\d+", written)]


def _year_of(number: int, text: str) -> int:
    if number >= 2500 and _THAI.search(text):
        number -= _BUDDHIST
    if not _EARLIEST <= number <= _LATEST:
        raise ValueError(number)
    return number


def _from_parts(match: re.Match[str], year: int, month: int = 0, day: int = 0) -> DateSpan:
    place, stop = match.span()
    if day:
        return day_span(date(year, month, day), place, stop)
    if month:
        if not 1 <= month <= 12:
            raise ValueError(month)
        return month_span(year, month, place, stop)
    return year_span(year, place, stop)


def _largest_first(match: re.Match[str], written: str, text: str, _today: date | None) -> DateSpan:
    year, *rest = _numbers(written)
    return _from_parts(match, _year_of(year, text), *rest)


def _largest_last(match: re.Match[str], written: str, text: str, _today: date | None) -> DateSpan:
    *rest, year = _numbers(written)
    return _from_parts(match, _year_of(year, text), *reversed(rest))


def _figures(match: re.Match[str], written: str, text: str, _today: date | None) -> DateSpan:
    """Day and month in figures; where either may come first and it matters, nobody knows."""
    first, second, year = _numbers(written)
    if "/" in written and first != second and first <= 12 and second <= 12:
        raise ValueError(written)
    if "/" in written and second > 12:
        first, second = second, first
    return _from_parts(match, _year_of(year, text), second, first)


def _named(match: re.Match[str], written: str, text: str, _today: date | None) -> DateSpan:
    *day, year = _numbers(written)
    return _from_parts(match, _year_of(year, text), _month_in(written), *day)


def _month_in(written: str) -> int:
    folded = written.casefold()
    return max((len(name), number) for name, number in _months().items() if name in folded)[1]


def _year(match: re.Match[str], written: str, text: str, _today: date | None) -> DateSpan:
    before = text[max(0, match.start() - _NEAR) : match.start()]
    if (
        _NO_YEAR_BEFORE.search(before)
        or _NAME_BEFORE.search(before)
        or _NO_YEAR_AFTER.match(text, match.end())
    ):
        raise ValueError(written)
    return year_span(_year_of(int(written), text), *match.span(), is_bare=True)


def _month_alone(match: re.Match[str], written: str, _text: str, today: date | None) -> DateSpan:
    if today is None:
        raise ValueError(written)
    month = _month_in(written)
    year = today.year if month <= today.month else today.year - 1
    return month_span(year, month, *match.span(), has_year=False)


_READERS: Final[Mapping[str, Callable[[re.Match[str], str, str, date | None], DateSpan]]] = {
    "iso": _largest_first,
    "zh": _largest_first,
    "vi": _largest_last,
    "dmy": _named,
    "mdy": _named,
    "my": _named,
    "figures": _figures,
    "year": _year,
    "month": _month_alone,
}


def sentences_with_dates(text: str) -> Iterator[tuple[str, list[DateSpan]]]:
    """The lines and sentences of a text that have dates, with these."""
    for line in re.split(r"\n+|(?<=[!?。！？।])\s*|(?<=[^\W\d]\.)\s+(?=[^\W\d_])", text):
        if _ANY_YEAR.search(line):
            spans = dates_in(line)
            if spans:
                yield line, spans
