"""Marks that end a sentence, in any script: periods, dandas, the question marks of Arabic and Greek."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

_ASCII = re.compile(  # begins with a set of characters, so that the search skips all others fast
    r"""[.!?] (?<![.!?]{2}) [.!?]*+ ["')\]]* (?=\s+["'(\[]?[A-Z0-9])""", re.VERBOSE
)
_QUOTES = frozenset('"”»)」』）】')
_CLOSING = "\"'”’»)]」』）】"
_ENDLESS = re.compile(r"[\u0e00-\u0eff]")  # Thai and Lao
_ASKING = frozenset("?？؟፧⁇⁈⁉‽")
_GREEK_ASKS = r"[\u0370-\u03ff\u1f00-\u1fff]{2}[;\u037e]"  # after a letter in a formula, it is a semicolon
_GREEK = re.compile(_GREEK_ASKS)
_JAPANESE_ASKS = ("ですか", "ますか", "でしたか", "ましたか", "ませんか", "でしょうか", "だろうか")


class _Marks(NamedTuple):
    """What ends a sentence within a text, the same without Latin's own marks, and a mark that may."""

    end: Any
    other: Any
    mark: Any


@cache
def _of_any_script() -> _Marks:
    """Compiled for the first text that isn't ASCII, as few processes need the library at their start."""
    import regex

    own = r"[[\p{Sentence_Terminal}།༎]--[.!?…。！？｡।॥]]"
    begin = r"[[\p{L}\p{N}]--[\p{Ll}--\p{Georgian}]]"  # Georgian has no capitals at the start of a sentence
    latin = rf"""(?<=[.!?…])(?<![.!?…]{{2}})[.!?…]*+["'”’»)\]]*(?=\s+["'“‘«(\[¿¡]?{begin})"""
    other = rf"""(?<=[。！？｡])[。！？｡]*[”’」』）】]*
          | (?<=[।॥])(?<![।॥]{{2}})[।॥]*+(?:\s*\d{{1,4}}\s*[।॥]++)?(?:["'”’»)\]]*+(?=\s)|(?=\p{{L}}))
          | (?<={own})(?<!{own}{{2}}){own}*+(?:\s[།༎]|["'”’»)\]]*+(?=\s))
          | (?<={_GREEK_ASKS})["'”’»)\]]*+(?=\s+["'“‘«(]?\p{{Lu}})"""
    marks, flags = r"\p{Sentence_Terminal}།༎;\u037e", regex.VERBOSE | regex.VERSION1
    return _Marks(
        regex.compile(rf"[{marks}…](?:{latin}|{other})", flags),
        regex.compile(rf"[[{marks}]--[.!?]](?:{other})", flags),
        regex.compile(r"[\p{Sentence_Terminal}…།༎\u037e]"),
    )


def ends(body: str) -> Iterator[re.Match[str]]:
    """Where sentences may end within a text, each with its mark first; abbreviations are among them."""
    return (_ASCII if body.isascii() else _of_any_script().end).finditer(body)


def other_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Where sentences end between two places of a text, by non-Latin marks."""
    if not text.isascii() and not text[start:end].isascii():
        for mark in _of_any_script().other.finditer(text, start, end):
            yield mark.end()


def ends_sentence(text: str) -> bool:
    """Whether the last character of a text is a mark that ends a sentence."""
    last = text[-1:]
    return last in {".", "!", "?"} if last.isascii() else bool(_of_any_script().mark.match(last))


def is_endless(text: str) -> bool:
    """Whether most of a text is in a script without closing marks: only spaces separate its sentences."""
    return not text.isascii() and 2 * len(_ENDLESS.findall(text)) > len(text)


def is_closed(text: str) -> bool:
    """Whether a text needs no period: it ends with such a mark, a closing quote or bracket, or has none."""
    return ends_sentence(text) or text[-1:] in _QUOTES or is_endless(text)


def asks(text: str) -> bool:
    """Whether a text ends as a question: by its mark, or in Japanese by its verb."""
    if text.endswith("."):  # as most sentences do
        return False
    unclosed = text.rstrip(_CLOSING)
    before = unclosed.rstrip("!！?？")
    if before[-1:] in _ASKING or not _ASKING.isdisjoint(unclosed[len(before) :]):
        return True
    return bool(_GREEK.fullmatch(unclosed[-3:])) or unclosed.rstrip("。｡").endswith(_JAPANESE_ASKS)
