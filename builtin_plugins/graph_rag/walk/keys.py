"""The keys that lead to a passage: its entities, and variants of them.

"Shirley Temple Black" is also reached as "Shirley Temple", "University of Oxford" as "Oxford", and two names
with a small word between them as one. A superfluous variant costs little, as walks follow rare keys; a key
that half of the collection shares is not followed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import regex

from builtin_plugins.graph_rag.extraction.caseless import CASELESS
from builtin_plugins.graph_rag.extraction.mentions import Mention, folded, key_of
from builtin_plugins.graph_rag.extraction.wordlists import JOINERS

_LINKS: Final = frozenset(
    {
        " and ",
        " & ",
        " in ",
        " for ",
        " on ",
        " to ",
        ", ",
        " with ",
        " from ",
        " the ",
        " und ",
        " et ",
        " y ",
        " e ",
        " at ",
        " a ",
    }
)
_LONGEST: Final = 60
_HAN = regex.compile(r"\p{Han}{2,}")
_UNSPACED = regex.compile(
    r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}](?: ?[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]){3,}"
)
_SPACED = regex.compile(
    r"[\p{Arabic}\p{Hebrew}\p{Devanagari}\p{Bengali}\p{Tamil}\p{Telugu}\p{Georgian}\p{M}]{3,}"
)
_CLITIC = regex.compile(r"^(?:وال|بال|كال|فال|لل|ال|و|ב|ה|ל|מ|ש|ו)(?=.{3})")
_PIECE: Final = 6
_KEPT_OF: Final = 2


class KeyReach(NamedTuple):
    """A key and its place in the passage."""

    key: str
    start: int
    end: int


def reaches(text: str, mentions: Sequence[Mention]) -> list[KeyReach]:
    """All keys of a passage, each at its first place."""
    by_key: dict[str, KeyReach] = {}
    for reach in _all(text, mentions):
        if reach.key and len(reach.key) <= _LONGEST:
            by_key.setdefault(reach.key, reach)
    return list(by_key.values())


def _all(text: str, mentions: Sequence[Mention]) -> Iterator[KeyReach]:
    for mention in mentions:
        yield KeyReach(mention.key, mention.start, mention.end)
    for mention in mentions:
        if mention.label != "DATE":
            yield from (KeyReach(form, mention.start, mention.end) for form in _forms(mention.key))
    for first, second in pairwise(mentions):
        between = text[first.end : second.start]
        if between in _LINKS and "DATE" not in (first.label, second.label):
            yield KeyReach(key_of(text[first.start : second.end]), first.start, second.end)
    if not text.isascii() and CASELESS.search(text):
        yield from _caseless(text)


def _forms(key: str) -> Iterator[str]:
    words = key.split(" ")
    if len(words) > 2:
        yield " ".join(words[1:])
        yield " ".join(words[:-1])
        joints = [at for at, word in enumerate(words) if word in JOINERS or word == "the"]
        if joints and joints[-1] + 1 < len(words):
            yield " ".join(words[joints[-1] + 1 :])


def _caseless(text: str) -> Iterator[KeyReach]:
    for run in _HAN.finditer(text):
        for size in (2, 3, 4):
            yield from _pieces(text, run.start(), run.end(), size)
    for run in _UNSPACED.finditer(text):
        yield from _kept_pieces(text, run.start(), run.end())
    for run in _SPACED.finditer(text):
        yield KeyReach(_bare(run[0]), *run.span())
    yield from _pairs(text)


def title_keys_of(title: str) -> list[str]:
    """The keys of a title in a script without capitals: pairs of words, or pieces."""
    if title.isascii() or not CASELESS.search(title):
        return []
    runs = [(run.start(), run.end()) for run in _UNSPACED.finditer(title)]
    pieces = [piece for start, end in runs for piece in _kept_pieces(title, start, end)]
    return [reach.key for reach in (*pieces, *_pairs(title))]


def _pairs(text: str) -> Iterator[KeyReach]:
    """Pairs of adjacent words: without capitals, most names are two words."""
    for first, second in pairwise(_SPACED.finditer(text)):
        if second.start() - first.end() == 1:
            yield KeyReach(f"{_bare(first[0])} {_bare(second[0])}", first.start(), second.end())


def _bare(word: str) -> str:
    """A word without a leading article, preposition or conjunction."""
    return str(_CLITIC.sub("", folded(word)))


def _kept_pieces(text: str, start: int, end: int) -> Iterator[KeyReach]:
    """A quarter of all pieces, the same in every text."""
    for piece in _pieces(text, start, end, _PIECE):
        if zlib.crc32(piece.key.encode()) % _KEPT_OF == 0:
            yield piece


def _pieces(text: str, start: int, end: int, size: int) -> Iterator[KeyReach]:
    for at in range(start, end - size + 1):
        yield KeyReach(text[at : at + size], at, at + size)
