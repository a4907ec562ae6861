"""A period as a filter on documents: by when they apply, else by the date that their knowledge base names."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from builtin_plugins.rag.dates.question_periods import QuestionPeriod
from builtin_plugins.rag.dates.validity import VALID_FROM, VALID_UNTIL

Filter = dict[str, Any]


def period_filter(period: QuestionPeriod, date_field: str | None) -> Filter:
    """The filter, in the grammar that clients send. Documents without a date match.

    What applies today is not asked of the date field: an older document may apply still.
    """
    limits = _outside(VALID_FROM, "gte", period.end) + _outside(VALID_UNTIL, "lt", period.start)
    if date_field is not None and period.kind != "current":
        undated = _outside(date_field, "gte", period.end) + _outside(date_field, "lt", period.start)
        says_when = [{"type": "exists", "key": one} for one in (VALID_FROM, VALID_UNTIL)]
        limits.append({"type": "or", "filters": [*says_when, _all(undated)]})
    return _all(limits)


def _outside(field: str, operator: str, day: Any) -> list[Filter]:
    if day is None:
        return []
    return [{"type": "not", "filter": {"type": operator, "key": field, "value": day.isoformat()}}]


def _all(filters: list[Filter]) -> Filter:
    return filters[0] if len(filters) == 1 else {"type": "and", "filters": filters}


def label_of(period: QuestionPeriod) -> str:
    """What the documents are, in plain words: "documents of 2025"."""
    first = period.start
    last = None if period.end is None else period.end - timedelta(days=1)
    if period.kind == "current":
        return "the newest documents" if period.newest else "documents that apply today"
    if first is None:
        text = f"before {period.end}" if period.end is not None else "of any time"
    elif last is None:
        text = f"since {first}"
    elif first == last:
        text = f"of {first}"
    elif (first.month, first.day, last.month, last.day) == (1, 1, 12, 31):
        text = f"of {first.year}" if first.year == last.year else f"of {first.year} to {last.year}"
    else:
        text = f"of {first} to {last}"
    return f"{'the newest ' if period.newest else ''}documents {text}"
