"""The kind of a name, by its words and those around it."""

from __future__ import annotations

import re
from typing import Final

from builtin_plugins.graph_rag.extraction.mentions import NOUN_PHRASE, folded
from builtin_plugins.graph_rag.extraction.wordlists import COUNTRIES, ENDINGS, HONORIFICS, PEOPLES

_LIFE: Final = re.compile(
    r"\s*(?:\((?:née[^()]{1,30}|born|b\.|geb\.|geboren|né|nacid[oa]|\*|[^()]{0,40}?\d{4}\s?[–—-]\s?[^()]{0,40}?\d{4}\))"
    r"|,?\s(?:was|is) (?:born|an? [\w -]{0,40}?(?:actor|actress|singer|writer|author|politician|player|"
    r"director|composer|poet|painter|scientist|physicist|engineer|architect|footballer|journalist|musician|historian|"
    r"philosopher|lawyer|professor|producer|novelist|businessman|businesswoman|chemist|mathematician|"
    r"biologist|sculptor|explorer|botanist|photographer)\b))"
)
_PLACE_BEFORE: Final = re.compile(
    r"\b(?:born|lives?|lived|located|situated|died|based|city|town|village|capital) (?:in|at|near|of)\s$"
)
_HEADS: Final = {
    "university": "ORG",
    "institute": "ORG",
    "ministry": "ORG",
    "bank": "ORG",
    "battle": "EVENT",
    "treaty": "LAW",
    "lake": "LOC",
    "mount": "LOC",
    "cape": "LOC",
    "gulf": "LOC",
    "isle": "LOC",
    "republic": "GPE",
    "kingdom": "GPE",
    "museum": "ORG",
    "college": "ORG",
}
_AROUND = 40


def label_of(text: str, start: int, end: int) -> str:
    """The NER label of the capitalized run `text[start:end]`, or NOUN_PHRASE."""
    words = folded(text[start:end]).replace(".", "").split()
    first, last = words[0], words[-1]
    if len(words) == 1:
        return _of_one(text, start, end, first)
    if first in HONORIFICS:
        return "PERSON"
    if label := ENDINGS.get(last) or _HEADS.get(first):
        return label
    return "PERSON" if _LIFE.match(text, end) else _by_place(text, start)


def _of_one(text: str, start: int, end: int, word: str) -> str:
    if word in COUNTRIES:
        return "GPE"
    if word in PEOPLES:
        return "NORP"
    before = text[max(0, start - 12) : start].split()
    if before and before[-1].rstrip(".").casefold() in HONORIFICS:
        return "PERSON"
    return "PERSON" if _LIFE.match(text, end) else _by_place(text, start)


def _by_place(text: str, start: int) -> str:
    return "GPE" if _PLACE_BEFORE.search(text[max(0, start - _AROUND) : start]) else NOUN_PHRASE
