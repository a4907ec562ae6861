"""Dates, amounts, codes and web addresses: whatever is written in digits or a fixed form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from builtin_plugins.graph_rag.extraction.mentions import NOUN_PHRASE, folded
from builtin_plugins.graph_rag.extraction.spans import TextSpan, laid_over
from builtin_plugins.graph_rag.extraction.wordlists import MONTHS, SCALES, UNITS

_ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'«»“”]{1,2000}|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"
)
_SHORTENED = r"(?:(?:(?<=\b\w{3})|(?<=\b\w{4}))\.)?"  # "Sept." has a dot; one after "April" ends the sentence
_DAY_FIRST = re.compile(
    r"(?<![\w.,])(\d{1,2})(?:st|nd|rd|th|er|º)?\.?\s(?:de\s|of\s)?([^\W\d_]{3,10})\b"
    rf"{_SHORTENED}(?:,?\s(?:de\s)?(\d{{4}})\b)?"
)
_MONTH_FIRST = re.compile(
    rf"([^\W\d_]{{3,10}}){_SHORTENED}"
    r"\s(?:(\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s(\d{4})\b)?|(\d{4})\b)"
)
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DOTTED = re.compile(r"(?<![\w.])(\d{1,2})\.(\d{1,2})\.(\d{4})\b")
_EAST_ASIAN = re.compile(r"(\d{4})\s?[年년](?:\s?(\d{1,2})\s?[月월](?:\s?(\d{1,2})\s?[日일])?)?")
_NUMBER = r"\d{1,15}(?:[.,]\d{1,6}){0,5}"
_SIGN = r"[$€£¥₹₺₽₩]"
_PRICE = re.compile(rf"(?:US|HK|NZ|A|C)?{_SIGN}\s?{_NUMBER}(?:\s?([^\W\d_]{{1,12}})\b)?")
_AMOUNT = re.compile(
    rf"(?<![\w.,$€£¥₹₺₽₩]){_NUMBER}[ \xa0]?(?:([%％٪]|{_SIGN}|°[CF]\b)"
    r"|([^\W\d_]{1,12}(?:/h\b|²)?)(?:[ \xa0]([^\W\d_]{1,12}))?)"
)
_CODE = re.compile(
    r"(?<![\w./-])(?=[\w./-]{3,40}(?![\w/-]))(?=[A-Za-z./_-]*\d)(?=[\d./_-]*[A-Za-z])"
    r"[A-Za-z0-9]+(?:[-./_][A-Za-z0-9]+)*(?![\w/-])"
)
_COUNTED = re.compile(r"\d+(?:st|nd|rd|th|s|er|e|ème|th-century|-[a-z][\w-]*)", re.IGNORECASE)
_YEAR = re.compile(r"(?<![\w.,:/-])(?:1[0-9]|20)\d\d(?![\w:/]|[.,]\d)")
_DIGIT = re.compile(r"\d")
_SIGNED = re.compile(_SIGN)
_SYMBOLS = {"%": "PERCENT", "％": "PERCENT", "٪": "PERCENT", "°C": "QUANTITY", "°F": "QUANTITY"}


def layers(text: str) -> Iterator[Iterator[TextSpan]]:
    """What the rules of this module find, the most certain first."""
    if "://" in text or "@" in text or "www." in text:
        yield _plain(_ADDRESS, text)
    if not _DIGIT.search(text):
        return
    yield _dates(_DAY_FIRST, text, lambda match: _written_out(match[3], match[2], match[1]))
    yield _dates(_MONTH_FIRST, text, lambda match: _written_out(match[3] or match[4], match[1], match[2]))
    if "-" in text:
        yield _dates(_ISO, text, lambda match: _date(match[1], match[2], match[3]))
    yield _dates(_DOTTED, text, lambda match: _date(match[3], match[2], match[1]))
    if not text.isascii():
        yield _dates(_EAST_ASIAN, text, lambda match: _date(match[1], match[2], match[3]))
    if _SIGNED.search(text):
        yield _prices(text)
    yield _amounts(text)
    yield (span for span in _plain(_CODE, text) if not _COUNTED.fullmatch(text, span.start, span.end))
    yield _dates(_YEAR, text, lambda match: match[0])


def keyed(text: str) -> list[TextSpan]:
    """The dates and amounts of a text, whose keys (`2024-07-14`, `185euro`) `key_of` doesn't return."""
    return [span for span in laid_over(layers(text)) if span.key]


def _plain(rule: re.Pattern[str], text: str) -> Iterator[TextSpan]:
    for match in rule.finditer(text):
        code = match[0].rstrip(".,;:!?)]}")
        yield TextSpan(match.start(), match.start() + len(code), NOUN_PHRASE)


def _prices(text: str) -> Iterator[TextSpan]:
    for match in _PRICE.finditer(text):
        scaled = match[1] is None or match[1].casefold() in SCALES
        end = match.end() if scaled else match.start(1)
        yield _amount(text, match.start(), end, "MONEY")


def _amounts(text: str) -> Iterator[TextSpan]:
    for match in _AMOUNT.finditer(text):
        if match[1] is not None:
            yield _amount(text, match.start(), match.end(1), _SYMBOLS.get(match[1], "MONEY"))
        elif label := UNITS.get(match[2].casefold()):
            yield _amount(text, match.start(), match.end(2), label)
        elif match[3] and match[2].casefold() in SCALES and (label := UNITS.get(match[3].casefold())):
            yield _amount(text, match.start(), match.end(3), label)


def _amount(text: str, start: int, end: int, label: str) -> TextSpan:
    written = text[start:end].rstrip()
    return TextSpan(start, start + len(written), label, folded(written).replace(" ", "").replace(",", ""))


def _dates(rule: re.Pattern[str], text: str, key: Callable[[re.Match[str]], str]) -> Iterator[TextSpan]:
    for match in rule.finditer(text):
        if written := key(match):
            yield TextSpan(match.start(), match.end(), "DATE", written)


def _written_out(year: str | None, month: str, day: str | None) -> str:
    """A date with its month in letters; `May 2` is one, `may 2` is not."""
    number = MONTHS.get(month.casefold())
    return _date(year, str(number), day) if number and (month != "may" or year) else ""


def _date(year: str | None, month: str | None, day: str | None) -> str:
    """ISO 8601 as far as known, `--07-14` without a year; empty if it isn't a date."""
    if (month and not 1 <= int(month) <= 12) or (day and not 1 <= int(day) <= 31):
        return ""
    parts = [year or "-", f"{int(month):02}" if month else "", f"{int(day):02}" if day else ""]
    return "-".join(part for part in parts if part)
