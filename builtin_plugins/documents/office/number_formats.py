"""Numbers as Excel shows them, in workbooks and charts."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, time, timedelta
from fractions import Fraction
from typing import Final

# In a number format: literal text, which may contain any character, and a currency symbol with or without a
# country code.
_LITERAL: Final = re.compile(r'"([^"]*)"')
_CURRENCY: Final = re.compile(r"\[\$([^\]-]{1,5})|([€£¥]|(?<!\[)\$)")
_DECIMALS: Final = re.compile(r"\.([0#?]+)")
# A section of a format, which a semicolon ends outside literal text.
_SECTION: Final = re.compile(r'(?:"[^"]*"|\\.|[^;"\\])+|(?<=;)(?=;|$)')
_CONDITION: Final = re.compile(r"\[(<=|>=|<>|<|>|=) ?(-?\d{1,15}(?:\.\d{1,15})?)\]")
_COMPARISONS: Final = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
# A whole part, if it has places of its own, and a denominator of so many digits, or of this value.
_FRACTION: Final = re.compile(r"(?:([0#?]{1,15}) {1,4})?[0#?]{1,15} ?/ ?(?:([0#?]{1,7})|([1-9]\d{0,6}))")
# Places with signs between them, as telephone numbers and other long codes have.
_CODE: Final = re.compile(r"\(?[0#]{1,15}(?:[-() /]{1,2}[0#]{1,15}){1,8}")
_LEAST_PLACES: Final = 5  # with fewer, the sign separates thousands
_LARGEST: Final = 1e15
_NOT_PLACES: Final = re.compile(r'"[^"]*"|\[[^\[\]]*+\]|\\.|[_*].')
_PLACES: Final = re.compile(r"[0#?][0#?.,]*")
# What a code does not show: colors, conditions and spaces as wide as a character.
_NOT_CODE: Final = re.compile(r"\[[^\[\]]*+\]|[_*].")
_ESCAPED: Final = re.compile(r'\\(.)|"([^"]*)"')
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
    """How numbers of a format are shown: by the section for their sign, or whose condition they meet."""
    sections = _SECTION.findall(number_format)
    if _CONDITION.search(number_format):
        return _shown_where(sections[:3])
    if len(sections) < 2:
        return _shown_in(number_format)
    formats = [_shown_in(section) for section in sections[:3]]
    positive, negative, zero = formats[0], formats[1], formats[2] if len(formats) > 2 else formats[0]
    says_minus = _PLACES.search(_LITERAL.sub("", sections[1])) is not None
    return lambda value: (
        positive(value)
        if value > 0
        else zero(value)
        if value == 0
        else negative(value if says_minus else -value)
    )


def _shown_where(sections: Sequence[str]) -> Shown:
    """By the first section whose condition is met. Without one, the last holds for the rest, and one before
    it for negative numbers.
    """
    rules: list[tuple[Callable[[float], bool], Shown]] = []
    for at, section in enumerate(sections):
        condition = _CONDITION.search(section)
        if condition:
            rules.append(
                (_comparison(condition[1], float(condition[2])), _shown_in(_CONDITION.sub("", section)))
            )
        else:
            is_last = at == len(sections) - 1
            rules.append(
                (_comparison(">=" if is_last else "<", float("-inf") if is_last else 0.0), _shown_in(section))
            )
    return lambda value: next((as_text for holds, as_text in rules if holds(value)), number_text)(value)


def _comparison(sign: str, bound: float) -> Callable[[float], bool]:
    compare = _COMPARISONS[sign]
    return lambda value: bool(compare(value, bound))


def _shown_in(section: str) -> Shown:
    """How numbers of one section are shown: with their %, currency or unit, as many decimals and leading
    zeros, and in its thousands; a section without a number is its own text.
    """
    plain = _NOT_PLACES.sub("", section)
    if fraction := _FRACTION.search(plain):
        return _as_fraction(bool(fraction[1]), len(fraction[2] or ""), int(fraction[3] or 0), _unit(section))
    code = _CODE.fullmatch(_ESCAPED.sub(r"\1\2", _NOT_CODE.sub("", section)).strip())
    if code and len(re.findall("[0#]", code[0])) >= _LEAST_PLACES:
        return _as_code(code[0])
    digits = _PLACES.search(plain)
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


def _as_fraction(has_whole: bool, places: int, denominator: int, unit: str) -> Shown:
    """How numbers are shown with a denominator of at most so many places, or with this one."""

    def format_value(value: float) -> str:
        if not abs(value) < _LARGEST:
            return number_text(value)
        exact = Fraction(abs(value))
        of = denominator or exact.limit_denominator(10**places - 1).denominator
        count = round(exact * of)
        whole, rest = divmod(count, of) if has_whole else (0, count)
        part = f"{rest}/{of}" if rest or not has_whole else ""
        sign = "-" if value < 0 and count else ""
        return sign + (" ".join(filter(None, (str(whole) if whole or not part else "", part)))) + unit

    return format_value


def _as_code(pattern: str) -> Shown:
    """How whole numbers are shown with signs between their digits; the first place takes all others."""

    def format_value(value: float) -> str:
        if value != abs(value) or not value < _LARGEST or value != int(value):
            return number_text(value)
        digits, places = list(str(int(value))), len(re.findall("[0#]", pattern))
        chars = []
        for char in reversed(pattern):
            if char not in "0#":
                chars.append(char)
                continue
            places -= 1
            if not places:
                chars += reversed(digits or ["0" * (char == "0")])
            elif digits or char == "0":
                chars.append(digits.pop() if digits else "0")
        return "".join(reversed(chars)).strip()

    return format_value


def _measured(number_format: str) -> Shown:
    """How numbers are shown with their %, currency or unit, and as many decimals."""
    section = _LITERAL.sub("", number_format).partition(";")[0]
    places = None if _POWER.search(section) else _DECIMALS.search(section)
    decimals = len(places[1]) if places else None
    if "%" in _LITERAL.sub("", number_format):
        return lambda value: f"{number_text(value * 100, 10 if decimals is None else decimals)}%"
    money = _CURRENCY.search(_LITERAL.sub(r"\1", number_format))
    sign = f" {money[1] or money[2]}" if money else _unit(number_format)
    return lambda value: number_text(value, decimals) + sign


def _unit(section: str) -> str:
    """The literal text behind a number."""
    literal = _UNIT.search(section)
    text = " ".join((literal[1] or literal[2][1:]).split()) if literal else ""
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
