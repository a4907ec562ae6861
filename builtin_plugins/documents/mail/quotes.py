"""Leaves out what messages quote of others in the same mailbox: each reply repeats the whole thread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.omissions import omit

_QUOTED: Final = re.compile(r"\s{0,3}>[>\s]*+")
# Before a quote, in ten languages: "On Monday, Ann wrote:".
_INTRODUCED: Final = re.compile(
    r"^.{0,300}\b(?:wrote|writes|schrieb|écrit|escribió|scritto|scrive|escreveu|schreef|skrev|napisał(?:\(a\))?|пишет|написал)"
    r"\b.{0,100}:$",
    re.IGNORECASE,
)
_MOST_LINES: Final = 1_000_000
_LEAST_CHARS: Final = 12
"""Shorter lines ("Thanks!") prove nothing, and go with the lines around them."""


class Quotes:
    """Remembers the lines of the messages so far, by their hash."""

    def __init__(self) -> None:
        self._seen = set[int]()

    def without(self, message: Iterable[Block]) -> Iterator[Block]:
        """Yield the blocks of the next message without the quoted lines that were there before."""
        own = set[int]()
        repeats = False
        for block in message:
            kept = self._unquoted(block.text, own)
            repeats = repeats or len(kept) < len(block.text)
            yield block._replace(text=kept)
        omit("quoted", int(repeats))
        if len(self._seen) < _MOST_LINES:
            self._seen |= own

    def _unquoted(self, text: str, own: set[int]) -> str:
        kept: list[str] = []
        is_repeated = False  # the last quoted line
        for line in text.split("\n"):
            mark = _QUOTED.match(line)
            words = " ".join((line[mark.end() :] if mark else line).split())
            key = hash(words)
            own.add(key)
            if mark:
                is_repeated = key in self._seen if len(words) >= _LEAST_CHARS else is_repeated
            if mark and is_repeated:
                while kept and not kept[-1].strip():
                    kept.pop()
                if kept and _INTRODUCED.match(kept[-1].strip()):
                    kept.pop()
                continue
            is_repeated = is_repeated and bool(mark)
            kept.append(line)
        return "\n".join(kept) if len(kept) <= text.count("\n") else text
