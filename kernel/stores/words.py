"""Prepares texts for the text index: words of every script in a comparable form.

English needs nothing here. Other texts are normalized (NFKC) and case-folded; scripts that are written
without spaces become overlapping pairs of characters; words of other scripts get the Snowball stemmer that
their script suggests, Latin words that of their text's language if it is known; a Latin word with accents
counts with and without them. An identifier counts as a whole as well as by its parts.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import regex

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}ー々〆]+"
)
_LATIN = regex.compile(r"\p{Latin}")
_ACCENTED_OR_FOREIGN = regex.compile(r"[^\x00-\x7F\p{P}\p{S}\p{Z}]")
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]++(?:[_.:/-][^\W_]++)+")  # matched only at the start of words
_INVISIBLE = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+")
_TELLING = re.compile(r"[\d_]")  # matches CK-381, v4.2 and max_connections, but not well-known
_JOINT = re.compile(r"[_.:/-]")
_MOST_IDENTIFIER = 64

# By the first letter's Unicode name, which begins with its script.
_STEMMERS = {
    "CYRILLIC": "russian",
    "ARABIC": "arabic",
    "DEVANAGARI": "hindi",
    "GREEK": "greek",
    "ARMENIAN": "armenian",
    "TAMIL": "tamil",
}
# Languages of Latin script, by ISO 639 code: only the text's language tells their words from English.
LATIN_STEMMERS = {
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "es": "spanish",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hu": "hungarian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "sv": "swedish",
    "tr": "turkish",
}


class InLanguage(NamedTuple):
    """A text and the ISO 639 code of its language; None if that is unknown."""

    text: str
    language: str | None


class Words:
    """Prepares texts. May be called from any thread: the stemmers, which may not, are used under a lock."""

    def __init__(self) -> None:
        self._stemmers: dict[str, Any] = {}
        self._turn = threading.Lock()

    def prepare(self, text: str, language: str | None = None) -> str:
        """`text` as words that the index splits at spaces and punctuation and compares literally.

        `language` is an ISO 639 code; a question is prepared once for each language of the texts.
        """
        text = text if text.isascii() else _INVISIBLE.sub("", text)  # a soft hyphen would split a word
        stemmer = LATIN_STEMMERS.get(language or "")
        foreign = stemmer or (not text.isascii() and _ACCENTED_OR_FOREIGN.search(text))
        plain = self._folded(text, stemmer) if foreign else text
        return " ".join((plain, *_identifiers(text)))

    def _folded(self, text: str, stemmer: str | None) -> str:
        folded = unicodedata.normalize("NFKC", text).casefold()
        with self._turn:
            return " ".join(term for word in _WORD.findall(folded) for term in self._terms(word, stemmer))

    def _terms(self, word: str, stemmer: str | None) -> Iterator[str]:
        if not (word.isascii() or _LATIN.match(word)):
            yield from self._foreign(word)
            return
        forms = (word,) if word.isascii() else _with_and_without_accents(word)
        for form in forms:
            yield form if stemmer is None else self._by(stemmer, form)

    def _foreign(self, word: str) -> Iterator[str]:
        at = 0
        for run in _UNSPACED.finditer(word):
            if run.start() > at:
                yield self._stemmed(word[at : run.start()])
            yield from _pairs(run[0])
            at = run.end()
        if at < len(word):
            yield self._stemmed(word[at:])

    def _stemmed(self, word: str) -> str:
        language = _STEMMERS.get(unicodedata.name(word[0], "").partition(" ")[0])
        if language is None:
            return word
        return self._by(language, word)

    def _by(self, language: str, word: str) -> str:
        if language not in self._stemmers:
            import Stemmer

            self._stemmers[language] = Stemmer.Stemmer(language)
        stem: str = self._stemmers[language].stemWord(word)
        return stem


def _identifiers(text: str) -> Iterator[str]:
    """Each identifier in one piece: `CK-381` as ck381."""
    if not _TELLING.search(text):
        return
    for found in _COMPOUND.findall(text):
        if len(found) <= _MOST_IDENTIFIER and _TELLING.search(found):
            yield _JOINT.sub("", found).casefold()


def _with_and_without_accents(word: str) -> Iterator[str]:
    """The word as written, and as typed on a keyboard without the accents."""
    decomposed = unicodedata.normalize("NFD", word)
    bare = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    bare = bare.translate(_LETTERS)
    yield bare
    if bare != word:
        yield word


_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})


def _pairs(run: str) -> Iterator[str]:
    """Overlapping pairs of letters, each with its combining marks; a single letter by itself."""
    letters = regex.findall(r"\p{L}\p{M}*|\p{N}", run)
    if len(letters) < 2:
        yield from letters
    for one, other in pairwise(letters):
        yield one + other
