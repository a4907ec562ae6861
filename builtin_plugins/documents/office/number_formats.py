"""Numbers as Excel shows them, in workbooks and charts."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, time, timedelta
from typing import Final

# In a number format: literal text, which may contain any character, and a currency symbol with or without a
# country code.
_LITERAL: Final = re.compile(r'"([^"]*)"')
_CURRENCY: Final = re.compile(r"\[\$([^\]-]{1,5})|([€£¥]|(?<!\[)\$)")
_DECIMALS: Final = re.compile(r"\.([0#?]+)")
# A section of a format, which a semicolon ends outside literal text.
_SECTION: Final = re.compile(r'(?:"[^"]*"|\\.|[^;"\\])+|(?<=;)(?=;|$)')
_CONDITION: Final = re.compile(r"\[[<>=]")
_NOT_PLACES: Final = re.compile(r'"[^"]*"|\[[^\[\]]*+\]|\\.|[_*].')
_PLACES: Final = re.compile(r"[0#?][0#?.,]*")
_PADDED: Final = re.compile(r"0{2,15}")
_UNIT: Final = re.compile(r'[0#?,] ?(?:"([^"]{1,40})"|(\\[^\s\d])$)')
_POWER: Final = re.compile("E[-+]")
# A date's format has letters that no other has, apart from literal text, colors and conditions.
_DATE: Final = re.compile("[dmy]", re.IGNORECASE)
_NOT_DATE: Final = re.compile(r'"[^"]*"|\[[^\[\]]*+\]|\\.|_.|General|Standard', re.IGNORECASE)
_FIRST_DAY: Final = datetime(1899, 12, 30)
_LAST_DAY: Final = 2_958_465  # 9999-12-31
LONGEST_FORMAT: Final = 255
"""Characters of a number format in Excel; some searches in a longer one would take very long."""

Shown = Callable[[float], str]


def shown_as(number_format: str) -> Shown:
    """How numbers of a format are shown: by the section for their sign, unless sections have conditions."""
    sections = _SECTION.findall(number_format)
    if len(sections) < 2 or _CONDITION.search(number_format):
        return _shown_in(number_format)
    shown = [_shown_in(section) for section in sections[:3]]
    positive, negative, zero = shown[0], shown[1], shown[2] if len(shown) > 2 else shown[0]
    says_minus = _PLACES.search(_LITERAL.sub("", sections[1])) is not None
    return lambda value: (
        positive(value)
        if value > 0
        else zero(value)
        if value == 0
        else negative(value if says_minus else -value)
    )


def _shown_in(section: str) -> Shown:
    """How numbers of one section are shown: with their %, currency or unit, as many decimals and leading
    zeros, and in its thousands; a section without a number is its own text.
    """
    digits = _PLACES.search(_NOT_PLACES.sub("", section))
    if not digits:
        text = "".join(_LITERAL.findall(section)).strip()
        return (lambda _: text) if text else _measured(section)
    if (scale := digits[0].rstrip("."))[-1:] == "," and not _DATE.search(_NOT_DATE.sub("", section)):
        thousands = 1000 ** (len(scale) - len(scale.rstrip(",")))
        unscaled = _measured(section)
        return lambda value: unscaled(value / thousands)
    if _PADDED.fullmatch(digits[0]):
        width, unpadded = len(digits[0]), _measured(section)
        return lambda value: f"{int(value):0{width}d}" if value == int(value) >= 0 else unpadded(value)
    return _measured(section)


def _measured(number_format: str) -> Shown:
    """How numbers are shown with their %, currency or unit, and as many decimals."""
    section = _LITERAL.sub("", number_format).partition(";")[0]
    found = None if _POWER.search(section) else _DECIMALS.search(section)
    decimals = len(found[1]) if found else None
    if "%" in _LITERAL.sub("", number_format):
        return lambda value: f"{number_text(value * 100, 10 if decimals is None else decimals)}%"
    money = _CURRENCY.search(_LITERAL.sub(r"\1", number_format))
    sign = f" {money[1] or money[2]}" if money else _unit(number_format)
    return lambda value: number_text(value, decimals) + sign


def _unit(section: str) -> str:
    """The literal text behind a number."""
    found = _UNIT.search(section)
    text = " ".join((found[1] or found[2][1:]).split()) if found else ""
    return f" {text}" if text else ""


def number_text(value: float, decimals: int | None = None) -> str:
    """A number with Excel's 15 digits (0.1 + 0.2 is 0.3 there), and at most this many decimals, unless only
    zero would be left.
    """
    if isinstance(value, int):
        return str(value)
    rounded = value if decimals is None else round(value, decimals) or value
    return f"{rounded:.15g}"


def cached_text(value: str, number_format: str) -> str:
    """A cell's value as a chart stores it, in the form that the cell shows; other text is unchanged."""
    number_format = number_format[:LONGEST_FORMAT]
    with suppress(ValueError):
        number = float(value)
        if _DATE.search(_NOT_DATE.sub("", number_format)) and 1 <= number <= _LAST_DAY:
            return date_text(_FIRST_DAY + timedelta(days=number))
        return shown_as(number_format)(number)
    return value


def duration_text(value: timedelta) -> str:
    """Hours, minutes and seconds, rounded to the second; there may be more hours than a day has."""
    total = round(value.total_seconds())
    minutes, seconds = divmod(abs(total), 60)
    return f"{'-' if total < 0 else ''}{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def date_text(moment: datetime) -> str:
    """A date without Excel's midnight, rounded to the second: fractions of a day are binary."""
    with suppress(OverflowError):
        moment += timedelta(milliseconds=500)
    moment = moment.replace(microsecond=0)
    return moment.date().isoformat() if moment.time() == time() else str(moment)
