"""Whether two sentences contradict each other, and what the name of a document says that it is about."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*|\w+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_LEAST_SHARED: Final = 4
"""Words that two sentences must share: shorter ones are alike by chance."""
_NEGATION = re.compile(
    r"not|no|never|without|nicht|kein|keine|keinen|nie|ne|pas|aucun|aucune|sin|nunca|non|mai|niet|geen|nooit|não"
    r"|nem|не|нет|никогда|değil|ikke|aldri|inte|aldrig|ei|nu|fără"
)
_SPELLED = {
    word: str(number)
    for words in (
        "two three four five six seven eight nine ten eleven twelve",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "deux trois quatre cinq six sept huit neuf dix onze douze",
        "dos tres cuatro cinco seis siete ocho nueve diez",
    )
    for number, word in enumerate(words.split(), start=2)
}
_WORDS_OF_NAME = re.compile(r"[^\W\d_]+\d+\w*|[^\W\d_]+")
_VERSION = re.compile(
    r"v\d{1,2}|rev\d*|version|draft|final|copy|new|old|entwurf|kopie|neu|alt|txt|md|pdf|docx?|odt|html?"
)
"""What tells versions of a document apart in its name, beside numbers."""


def tokens_of(text: str) -> list[str]:
    """The words and numbers of a sentence, as they are compared: two is 2."""
    tokens = _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())
    return [_SPELLED.get(token, token) for token in tokens]


def subject_words(name: str) -> frozenset[str]:
    """The words of a document's name that say what it is, without what tells its versions apart."""
    words = _WORDS_OF_NAME.findall(unicodedata.normalize("NFKC", name).casefold())
    return frozenset(word for word in words if not _VERSION.fullmatch(word))


def contradict(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two sentences, as words and numbers, are the same but for one value or a negation.

    A value is a number, with a word on one side at most, or a date. If more differs, they may be about
    different things: "Drill 7 lasts 3 years", "Drill 8 lasts 4 years".
    """
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    shared = [*one[:start], *(one[len(one) - end :])]
    if sum(not token.isdecimal() for token in shared) < _LEAST_SHARED:
        return False
    own, others = one[start : len(one) - end], other[start : len(other) - end]
    if not own or not others:
        added = [*own, *others]
        return len(added) == 1 and _NEGATION.fullmatch(added[0]) is not None
    return _is_value(own) and _is_value(others)


def values_differ(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two sentences, as words and numbers, have other numbers, or only one of them a negation."""
    numbers, others = ({token for token in said if token[0].isdigit()} for said in (one, other))
    negated, other_negated = (any(map(_NEGATION.fullmatch, said)) for said in (one, other))
    return numbers != others or negated != other_negated


def _is_value(tokens: Sequence[str]) -> bool:
    """A number, with a word at most, or a day with its month and year."""
    numbers = [token for token in tokens if token[0].isdigit()]
    if len(tokens) - len(numbers) > 1:
        return False
    return len(numbers) == 1 or (len(numbers) == 2 and _YEAR.fullmatch(tokens[-1]) is not None)
