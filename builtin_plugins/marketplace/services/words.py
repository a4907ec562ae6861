"""Words and trigrams of texts, the same for the index and for queries."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 3000
_LONGEST = 64


def words(text: str) -> list[str]:
    """The words of a text in lower case, without accents, in their order."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(char for char in plain if not unicodedata.combining(char))
    return [word[:_LONGEST] for word in _WORD.findall(letters)[:_MOST_WORDS]]


def grams(text: str) -> set[str]:
    """All runs of three letters in each word, with a blank before and after it."""
    trigrams = set()
    for word in words(text):
        padded = f" {word} "
        trigrams |= {padded[at : at + 3] for at in range(len(padded) - 2)}
    return trigrams


def likeness(first: set[str], second: set[str]) -> float:
    """The share of trigrams that two names have in common, from 0 to 1 (Dice's coefficient)."""
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0
