"""Times in questions, and the period of a question as answers show it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field

_DAY: Final = len("2026-03-01")
_EASTERNMOST: Final = timedelta(hours=14)
"""How far a day begins before that of UTC."""


def _moment(value: object) -> datetime:
    """A time, or the last moment of a day; that of today, wherever it is, is now."""
    now = datetime.now(UTC)
    try:
        written = value.isoformat() if isinstance(value, datetime) else str(value)
        moment = datetime.fromisoformat(written)
        if len(written) == _DAY:
            begin = moment.replace(tzinfo=UTC)
            end = begin + timedelta(days=1, microseconds=-1)
            moment = min(end, now) if begin - _EASTERNMOST <= now else end
    except (ValueError, OverflowError):
        raise ValueError("must be a day such as 2026-03-01, or a time with its zone") from None
    if moment.tzinfo is None:
        raise ValueError("must have a zone, such as 2026-03-01T09:30:00Z; or leave out the time")
    if moment > now:
        raise ValueError("must not be in the future")
    return moment.astimezone(UTC)


AsOf = Annotated[datetime, BeforeValidator(_moment)]


class PeriodItem(BaseModel):
    """The period of a question, as it limited the documents; `use_period: false` removes it."""

    kind: Literal["within", "since", "before", "current"]
    newest: bool = Field(description="Of several documents that answer, the newest was meant.")
    words: str | None = Field(
        description="What the question says; null if it says nothing, so that what applies today is meant."
    )
    first: date | None = Field(description="The first day; null if it is open.")
    before: date | None = Field(description="The day after the last one; null if it is open.")
    label: str = Field(description="Which documents these are, such as `documents of 2025`.")
    filter: dict[str, Any] | None = Field(
        description="The same as a `metadata_filter`; null if the knowledge bases name different date fields."
    )
    applied: bool = Field(
        True, description="False if no document of the period answers: then all documents were searched."
    )
