"""Marks that end a sentence, in any script: full stops, dandas, the question marks of Arabic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

_ASCII = re.compile(  # begins with a set of characters: the search then skips all others at once
    r"""[.!?] (?<![.!?]{2}) [.!?]*+ ["')\]]* (?=\s+["'(\[]?[A-Z0-9])""", re.VERBOSE
)
_QUOTES = frozenset('"”»)」』）】')
_ASKS = re.compile(r"[?？؟፧⁇⁈⁉‽][!！?？]*[\"'”’»)\]」』）】]*$")


class _Marks(NamedTuple):
    """What ends a sentence within a text, and a mark that may."""

    end: Any
    mark: Any


@cache
def _of_any_script() -> _Marks:
    """Compiled when a text is not plain ASCII: few processes need the library at their start."""
    import regex

    own = r"[[\p{Sentence_Terminal}།༎]--[.!?…。！？｡।॥]]"
    end = rf"""[\p{{Sentence_Terminal}}…།༎]
        (?: (?<=[。！？｡])[。！？｡]*[」』）】]*
          | (?<=[.!?…])(?<![.!?…]{{2}})[.!?…]*+["'”’»)\]]*(?=\s+["'“‘«(\[¿¡]?[^\W_a-zß-öø-ÿ])
          | (?<=[।॥])(?<![।॥]{{2}})[।॥]*+(?:\s*\d{{1,4}}\s*[।॥]++)?(?:["'”’»)\]]*+(?=\s)|(?=\p{{L}}))
          | (?<={own})(?<!{own}{{2}}){own}*+(?:\s[།༎]|["'”’»)\]]*+(?=\s))
        )"""
    return _Marks(
        regex.compile(end, regex.VERBOSE | regex.VERSION1), regex.compile(r"[\p{Sentence_Terminal}…།༎]")
    )


def ends(body: str) -> Iterator[re.Match[str]]:
    """Where sentences may end within a text, each with its mark first; abbreviations are among them."""
    return (_ASCII if body.isascii() else _of_any_script().end).finditer(body)


def ends_sentence(text: str) -> bool:
    """Whether the last character of a text is a mark that ends a sentence."""
    last = text[-1:]
    return last in {".", "!", "?"} if last.isascii() else bool(_of_any_script().mark.match(last))


def is_closed(text: str) -> bool:
    """Whether a text needs no full stop: it ends in such a mark, or in a closing quote or bracket."""
    return ends_sentence(text) or text[-1:] in _QUOTES


def asks(text: str) -> bool:
    """Whether a text ends as a question."""
    return _ASKS.search(text) is not None
