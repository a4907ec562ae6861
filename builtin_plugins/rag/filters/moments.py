"""Dates in filters: days, months, years and times, or relative to now."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

_PERIOD: Final = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?", re.ASCII)
_RELATIVE: Final = re.compile(r"(now|today)(?:([+-])(\d{1,5})([hdwmy]))?", re.ASCII)
_MAYBE_RELATIVE: Final = re.compile(r"now|today")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d{1,6})?)?(Z|[+-]\d\d:?\d\d)", re.ASCII)
_LAST_YEAR: Final = 9998  # a later period would end after the last representable moment
REMEDY: Final = (
    "must be a date: 2026-03-01, 2026-03, 2026, a time with its zone (2026-03-01T09:30:00Z), or relative to "
    "now: now-30d, today-1y (h, d, w, m, y)"
)


class TimeSpan(NamedTuple):
    """Seconds since 1970 (UTC). A moment has only `start`; a period has what is from `start` until `end`."""

    start: float
    end: float | None = None


def span_of(value: object, now: datetime) -> TimeSpan:
    """What a date in a filter stands for; a number counts as seconds since 1970. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(REMEDY)
    if not isinstance(value, str):
        return TimeSpan(float(value))
    written = value.strip()
    try:
        if match := _PERIOD.fullmatch(written):
            return _period(*(None if part is None else int(part) for part in match.groups()))
        if match := _RELATIVE.fullmatch(written):
            return _relative(match, now)
        if _TIME.fullmatch(written):
            return TimeSpan(datetime.fromisoformat(written.replace(",", ".")).timestamp())
    except (ValueError, OverflowError):
        pass
    raise ValueError(REMEDY)


def is_relative(text: str) -> bool:
    """Whether a text may have a date in it that is relative to now."""
    return _MAYBE_RELATIVE.search(text) is not None


def _period(year: int | None, month: int | None, day: int | None) -> TimeSpan:
    if year is None or not 1 <= year <= _LAST_YEAR:
        raise ValueError(REMEDY)
    start = datetime(year, month or 1, day or 1, tzinfo=UTC)
    if day is not None:
        end = start + timedelta(days=1)
    else:
        end = _months_later(start, 1 if month is not None else 12)
    return TimeSpan(start.timestamp(), end.timestamp())


def _relative(match: re.Match[str], now: datetime) -> TimeSpan:
    whole_day = match[1] == "today"
    moment = now.astimezone(UTC)
    if whole_day:
        moment = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if match[2]:
        number = int(f"{match[2]}{match[3]}")
        moment = _moved(moment, number, match[4])
    if not whole_day or match[4] == "h":
        return TimeSpan(moment.timestamp())
    return TimeSpan(moment.timestamp(), (moment + timedelta(days=1)).timestamp())


def _moved(moment: datetime, number: int, unit: str) -> datetime:
    if unit in "my":
        return _months_later(moment, number * (12 if unit == "y" else 1))
    hours = {"h": 1, "d": 24, "w": 168}[unit]
    return moment + timedelta(hours=number * hours)


def _months_later(moment: datetime, months: int) -> datetime:
    """The same day of another month, or its last day."""
    count = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(count, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)
