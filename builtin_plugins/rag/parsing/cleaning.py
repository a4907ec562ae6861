"""Make any parser's text storable, and cut oversized text at a good place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

# What needs no cleaning, which is nearly all text: one fast look instead of three slow ones.
_CLEAN: Final = re.compile("[\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*+")
_LINE_BREAK: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")
# ECMA-48: control sequences (colours; `tput` resets the character set before one), and what only terminals
# are told (titles, links).
_ANSI: Final = re.compile(
    "(?:\x1b\\(B)?\x1b\\[[0-?]*+[ -/]*+[@-~]|\x1b\\][^\x00-\x1f\x7f]*+(?:\x07|\x1b\\\\)"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


_POWER: Final = re.compile(r"[-+\u2212]?\d")


def is_power(before: str, raised: str) -> bool:
    """Whether a superscript would become part of the number before it: 10 to the 6th is not 106."""
    return before[-1:].isdigit() and _POWER.match(raised) is not None


def without_ansi(text: str) -> str:
    """Return text without the escape sequences by which programs colour what they write to a terminal."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def clean(text: str) -> str:
    """Return text that PostgreSQL, JSON and UTF-8 can hold.

    Line breaks become newlines, control characters (NUL among them) and ANSI colours vanish, lone surrogates
    become U+FFFD, and blank lines at both ends and spaces at the end are dropped. Indentation stays.
    """
    if not _CLEAN.fullmatch(text):
        text = _CONTROL.sub("", _LINE_BREAK.sub("\n", without_ansi(text)))
        text = _SURROGATE.sub("\ufffd", text)
    text = text.rstrip()
    first = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, first) + 1 :]


def shows(text: str) -> bool:
    """Whether there is anything to see in it: more than white space and characters without a width."""
    return any(not char.isspace() and unicodedata.category(char) != "Cf" for char in text)


def cut_point(text: str, limit: int) -> int:
    """Return where to cut text longer than `limit`: a blank line, a line, a word, else at `limit` exactly."""
    for mark in ("\n\n", "\n", " "):
        found = text.rfind(mark, limit // 2, limit)
        if found > 0:
            return found + len(mark)
    return limit


def pieces(text: str, limit: int) -> Iterator[str]:
    """Yield `text` in order, in pieces of at most `limit` characters."""
    start = 0
    while len(text) - start > limit:
        end = start + cut_point(text[start : start + limit], limit)
        yield text[start:end]
        start = end
    yield text[start:]
