"""What extraction finds, and the normalized form of names."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

NOUN_PHRASE: Final = "NOUN_PHRASE"
"""The label for everything that no rule knows more about."""

LABELS: Final = frozenset(
    {
        "PERSON",
        "NORP",
        "FAC",
        "ORG",
        "GPE",
        "LOC",
        "PRODUCT",
        "EVENT",
        "WORK_OF_ART",
        "LAW",
        "LANGUAGE",
        "DATE",
        "TIME",
        "PERCENT",
        "MONEY",
        "QUANTITY",
        "ORDINAL",
        "CARDINAL",
        NOUN_PHRASE,
    }
)
"""All labels: those of OntoNotes 5, which spaCy's pipelines use, and NOUN_PHRASE."""

_SPACE = re.compile(r"\s+")
_POSSESSIVE = re.compile(r"['’]s?$")
_INITIAL = re.compile(r"(?<![^\W_])([^\W\d_])\.")
_UNDECOMPOSED = str.maketrans(
    {"İ": "i", "ı": "i", "ł": "l", "Ł": "l", "ø": "o", "Ø": "o", "đ": "d", "Đ": "d", "æ": "ae", "Æ": "ae"}
)
_EDGES = " \t\n.,;:!?'’‘`\"“”„«»()[]{}<>《》〈〉「」『』…-–—_*#|/"


class Mention(NamedTuple):
    """A place in a text, `text == passage[start:end]`, that names something.

    Mentions with the same `key` (`key_of`) name the same thing, judged by spelling. `label` is one of
    `LABELS`.
    """

    start: int
    end: int
    text: str
    key: str
    label: str


def folded(text: str) -> str:
    """NFKC, case-folded, without accents on Latin, Greek and Cyrillic letters, one space between words."""
    if text.isascii():
        return _SPACE.sub(" ", text).lower()
    plain = unicodedata.normalize("NFKC", text).translate(_UNDECOMPOSED).casefold()
    return _SPACE.sub(" ", unicodedata.normalize("NFC", _without_accents(plain)))


def key_of(text: str) -> str:
    """The name in `text` for comparison: folded, without possessive, outer punctuation and dots of initials.

    Empty if there is only punctuation.
    """
    plain = _POSSESSIVE.sub("", folded(text).strip(_EDGES)).strip(_EDGES)
    if plain.startswith("the ") and len(plain) > 4:
        plain = plain[4:]
    return _INITIAL.sub(r"\1", plain) if "." in plain else plain


def _without_accents(text: str) -> str:
    """Marks of other scripts are kept: vowels in Devanagari or Arabic, a change of sound in kana."""
    chars: list[str] = []
    base = ""
    for char in unicodedata.normalize("NFKD", text):
        if not unicodedata.combining(char):
            base = char
        elif base < "\u0530":
            continue
        chars.append(char)
    return "".join(chars)
