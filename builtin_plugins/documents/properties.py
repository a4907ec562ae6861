"""What a file says about itself: its title, author and dates. Noted by its parser, cleaned and bounded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final, Literal, get_args

PropertyName = Literal[
    "title",
    "subject",
    "author",
    "keywords",
    "tags",
    "language",
    "created",
    "modified",
    "from",
    "to",
    "sent",
]
Properties = Mapping[str, Sequence[str]]

_NAMES: Final = frozenset(get_args(PropertyName))
_DATES: Final = frozenset({"created", "modified", "sent"})
_LONGEST: Final = 512
_READ_CHARS: Final = 4_096
_UNSHOWN: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_MOST_VALUES: Final = 100
_MOST_CHARS: Final = 8_000
"""Of all properties together."""
_YEARS: Final = range(1900, 2200)
"""Others are a clock that was never set, or a mistake."""
_PDF_DATE: Final = re.compile(
    r"D:(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?(?:Z.*|([+-])(\d\d)'?(?:(\d\d)'?)?)?)?", re.ASCII
)
_DAY: Final = re.compile(r"(\d{4})[-:.](\d\d)[-:.](\d\d)(?!\d)", re.ASCII)
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(?![a-z])")


class NotedProperties:
    """The properties that a run of a parser notes. What is noted first stays."""

    def __init__(self) -> None:
        self.values_by_name: dict[str, list[str]] = {}
        self._left = _MOST_CHARS

    def note(self, name: PropertyName, texts: Iterable[str]) -> None:
        """Note a property, unless there is one of this name."""
        if name in self.values_by_name:
            return
        values: list[str] = []
        for text in texts:
            value = _cleaned(name, text)
            if value and len(value) <= self._left and len(values) < _MOST_VALUES and value not in values:
                values.append(value)
                self._left -= len(value)
        if values:
            self.values_by_name[name] = values


NOTED: ContextVar[NotedProperties | None] = ContextVar("what the file says about itself", default=None)
"""Where a run of a parser notes it."""


def note_property(name: PropertyName, *texts: str | None) -> None:
    """Note what the file being read says about itself. The first that is noted of a name stays.

    Dates are in ISO 8601, or as mails or PDF write them; one that can't be read is left out.
    """
    noted = NOTED.get()
    if noted is not None:
        noted.note(name, (text for text in texts if text))


def listed(text: str | None) -> list[str]:
    """The items of a text that separates them by commas or semicolons."""
    return re.split(r"[;,]", text or "")


def checked_properties(properties: object) -> dict[str, list[str]]:
    """Properties as a parser's process returned them, without what it can't have noted."""
    if not isinstance(properties, Mapping):
        return {}
    return {
        name: [one for one in values if isinstance(one, str) and 0 < len(one) <= _LONGEST][:_MOST_VALUES]
        for name, values in properties.items()
        if name in _NAMES and isinstance(values, list)
    }


def _cleaned(name: PropertyName, text: str) -> str:
    if name in _DATES:
        return _date(text.strip())
    characters = (" " if unicodedata.category(one) in _UNSHOWN else one for one in text[:_READ_CHARS])
    plain = unicodedata.normalize("NFC", " ".join("".join(characters).split()))
    if name == "language":
        language = _LANGUAGE.match(plain.lower())
        return language[0] if language else ""
    return plain[:_LONGEST].strip()


def _date(text: str) -> str:
    """A date, or a time with its zone, in ISO 8601; empty if it can't be read. A time without a zone says no
    more than the day.
    """
    for read in (_of_pdf, datetime.fromisoformat, parsedate_to_datetime, _of_day):
        try:
            moment = read(text[:64])
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        if moment.year not in _YEARS:
            return ""
        is_day = moment.tzinfo is None
        return moment.date().isoformat() if is_day else moment.isoformat(timespec="seconds")
    return ""


def _of_pdf(text: str) -> datetime:
    parts = _PDF_DATE.match(text)
    if parts is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, sign, hours, minutes = parts.groups()
    has_zone = hour is not None and ("Z" in text or sign is not None)
    zone = f"{sign}{hours}:{minutes or '00'}" if sign else "+00:00"
    written = f"{year}-{month}-{day}"
    return datetime.fromisoformat(
        f"{written}T{hour}:{minute}:{second or '00'}{zone}" if has_zone else written
    )


def _of_day(text: str) -> datetime:
    """The day at the start of a text that goes on in some other way."""
    day = _DAY.match(text)
    if day is None:
        raise ValueError(text)
    return datetime(int(day[1]), int(day[2]), int(day[3]))
