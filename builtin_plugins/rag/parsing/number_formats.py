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
_POWER: Final = re.compile("E[-+]")
# A date's format has letters that no other has, apart from literal text, colors and conditions.
_DATE: Final = re.compile("[dmy]", re.IGNORECASE)
_NOT_DATE: Final = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.|General|Standard', re.IGNORECASE)
_FIRST_DAY: Final = datetime(1899, 12, 30)
_LAST_DAY: Final = 2_958_465  # 9999-12-31
LONGEST_FORMAT: Final = 255
"""Characters of a number format in Excel; some searches in a longer one would take very long."""

Shown = Callable[[float], str]


def shown_as(number_format: str) -> Shown:
    """How numbers of a format are shown: with their % or currency, and as many decimals."""
    section = _LITERAL.sub("", number_format).partition(";")[0]
    found = None if _POWER.search(section) else _DECIMALS.search(section)
    decimals = len(found[1]) if found else None
    if "%" in _LITERAL.sub("", number_format):
        return lambda value: f"{number_text(value * 100, 10 if decimals is None else decimals)}%"
    money = _CURRENCY.search(_LITERAL.sub(r"\1", number_format))
    sign = f" {money[1] or money[2]}" if money else ""
    return lambda value: number_text(value, decimals) + sign


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


def date_text(moment: datetime) -> str:
    """A date without Excel's midnight, rounded to the second: fractions of a day are binary."""
    with suppress(OverflowError):
        moment += timedelta(milliseconds=500)
    moment = moment.replace(microsecond=0)
    return moment.date().isoformat() if moment.time() == time() else str(moment)
