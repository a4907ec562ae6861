"""Make any parser's text storable, and cut oversized text at a good place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from builtin_plugins.documents.text.encoding import without_ansi

# Text that needs no cleaning, as nearly all: one fast check instead of three slow ones.
_CLEAN: Final = re.compile("[\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*+")
_LINE_BREAK: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


_POWER: Final = re.compile(r"[-+\u2212]?\d")


def is_power(before: str, raised: str) -> bool:
    """Whether a superscript would become part of the number before it: 10 to the 6th is not 106."""
    return before[-1:].isdigit() and _POWER.match(raised) is not None


def clean(text: str) -> str:
    """Return text that PostgreSQL, JSON and UTF-8 can hold.

    Line breaks become newlines, control characters (including NUL) and ANSI colors are removed, lone
    surrogates become U+FFFD, and blank lines at both ends and trailing spaces are dropped. Indentation
    stays.
    """
    if not _CLEAN.fullmatch(text):
        text = _CONTROL.sub("", _LINE_BREAK.sub("\n", without_ansi(text)))
        text = _SURROGATE.sub("\ufffd", text)
    text = text.rstrip()
    first = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, first) + 1 :]


def shows(text: str) -> bool:
    """Whether a text contains more than white space and zero-width characters."""
    return any(not char.isspace() and unicodedata.category(char) != "Cf" for char in text)


def cut_point(text: str, limit: int) -> int:
    """Return where to cut text longer than `limit`: a blank line, a line, a word, else exactly `limit`."""
    for mark in ("\n\n", "\n", " "):
        place = text.rfind(mark, limit // 2, limit)
        if place > 0:
            return place + len(mark)
    return limit


def pieces(text: str, limit: int) -> Iterator[str]:
    """Yield `text` in order, in pieces of at most `limit` characters."""
    start = 0
    while len(text) - start > limit:
        end = start + cut_point(text[start : start + limit], limit)
        yield text[start:end]
        start = end
    yield text[start:]
