"""The kinds of fields: what a value of each may be, how it is stored, and how it is shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time
from typing import Any, Final, Literal, NamedTuple

FieldKind = Literal["text", "number", "date", "boolean", "person"]

LONGEST_TEXT: Final = 512
LONGEST_NAME: Final = 64
_LARGEST: Final = 2.0**53
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d{1,6})?)?(Z|[+-]\d\d:?\d\d)", re.ASCII)
_ACCOUNT: Final = re.compile(r"\d{1,10}", re.ASCII)
_TRUE: Final = ("true", "yes", "1")
_FALSE: Final = ("false", "no", "0")


class FieldValue(NamedTuple):
    """A value as it is stored: see `MetadataValue`."""

    text: str | None = None
    folded: str | None = None
    number: float | None = None


class ValueRefused(ValueError):
    """A value that a field can't have; its text says what it must be."""


def nfc(text: str) -> str:
    """The form in which names and texts are stored and compared."""
    return unicodedata.normalize("NFC", text)


def folded(text: str) -> str:
    """A text as it is compared: NFC, without the difference between capitals and small letters."""
    return nfc(nfc(text).casefold())[:LONGEST_TEXT]


def is_name(name: str) -> bool:
    """Whether a field may have this name, which is in NFC: letters, digits and underscores."""
    return 0 < len(name) <= LONGEST_NAME and all(
        one == "_" or unicodedata.category(one)[0] in "LMN" for one in name
    )


def value_of(kind: FieldKind, value: object) -> FieldValue:
    """A value that was given for a field of this kind. Numbers and booleans may be written as text, as in a
    form or a table; a person is an account's id. Raises ValueRefused.
    """
    return _READERS[kind](value)


def value_as_json(kind: FieldKind, value: FieldValue, names: Mapping[int, str]) -> Any:
    """A value in an answer; `names` are those of the accounts that the caller sees, by id."""
    if kind == "number":
        number = value.number or 0.0
        return int(number) if number.is_integer() else number
    if kind == "boolean":
        return bool(value.number)
    if kind == "person":
        account_id = int(value.text or 0)
        return {"id": account_id, "name": names.get(account_id)}
    return value.text


def text_of(kind: FieldKind, value: FieldValue) -> str:
    """A value in a table; `value_of` reads it again."""
    if kind in ("number", "boolean"):
        return str(value_as_json(kind, value, {})).lower()
    return value.text or ""


def _text(value: object) -> FieldValue:
    if not isinstance(value, str):
        raise ValueRefused("must be a text")
    text = nfc(value).strip()
    if not 0 < len(text) <= LONGEST_TEXT:
        raise ValueRefused(f"must have 1 to {LONGEST_TEXT} characters")
    if any(unicodedata.category(one) in ("Cc", "Cs") for one in text):
        raise ValueRefused("must not contain control characters")
    return FieldValue(text, folded(text))


def _number(value: object) -> FieldValue:
    number: float | None = None
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        number = float(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) <= _LARGEST else _LARGEST * 2
    if number is None:
        raise ValueRefused("must be a number, such as 12.5")
    if not abs(number) <= _LARGEST:
        raise ValueRefused(f"must be between -{_LARGEST:.0f} and {_LARGEST:.0f}; use a text for longer ones")
    return FieldValue(number=number)


def _boolean(value: object) -> FieldValue:
    if isinstance(value, bool):
        return FieldValue(number=float(value))
    written = value.strip().lower() if isinstance(value, str) else ""
    if written not in _TRUE + _FALSE:
        raise ValueRefused("must be true or false")
    return FieldValue(number=float(written in _TRUE))


def _date(value: object) -> FieldValue:
    written = value.strip() if isinstance(value, str) else ""
    try:
        if _DATE.fullmatch(written):
            return date_value(datetime.fromisoformat(written), is_day=True)
        if _TIME.fullmatch(written):
            return date_value(datetime.fromisoformat(written.replace(",", ".")))
    except (ValueError, OverflowError):
        pass
    raise ValueRefused("must be a date such as 2026-03-01, or a time with its zone: 2026-03-01T09:30:00Z")


def date_value(moment: datetime, *, is_day: bool = False) -> FieldValue:
    """The value of a day, or of a time with its zone."""
    if is_day:
        day = datetime.combine(moment.date(), time(), UTC)
        return FieldValue(day.date().isoformat(), None, day.timestamp())
    moment = moment.astimezone(UTC)
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
    return FieldValue(f"{text}Z", None, moment.timestamp())


def _person(value: object) -> FieldValue:
    number = value.get("id") if isinstance(value, Mapping) else value
    written = str(number) if isinstance(number, int | str) and not isinstance(number, bool) else ""
    if not _ACCOUNT.fullmatch(written.strip()) or not 0 < int(written) < 2**31:
        raise ValueRefused("must be the id of an account")
    account = str(int(written))
    return FieldValue(account, account)


_READERS: Final[Mapping[FieldKind, Callable[[object], FieldValue]]] = {
    "text": _text,
    "number": _number,
    "date": _date,
    "boolean": _boolean,
    "person": _person,
}
