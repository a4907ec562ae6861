"""What kind of answer a question asks for, and whether a text has anything of that kind.

"How many volts has it?" can't be answered by sentences without a number, however near their topic is.
"""

from __future__ import annotations

import re
from enum import Enum

from builtin_plugins.rag.answering.words import content_stems, fold, has_number, stem, word_list, words


class Expected(Enum):
    """The kinds that can be told apart without a model."""

    ANYTHING = "anything"
    NUMBER = "number"
    TIME = "time"
    NAME = "name"
    MONEY = "money"


_NUMBER = re.compile(
    r"\b(how (many|much|long|old|often|large|big|tall|high|fast|far|deep|heavy|wide)|what (price|percentage)"
    r"|wie (viele?|lange|oft|hoch|gross|alt)|wieviele?|combien|cuant[oa]s?|kac)\b"
)
_TIME = re.compile(r"\b(when|(what|which) (time|year|date|day|month)|wann|quand|cuando|ne zaman)\b")
_MONEY = re.compile(
    r"\b(price|costs?|fee|fare|toll|salary|bonus|rent|dividend|kostet|kosten|preis|gebuhr|fiyat\w*"
    r"|ucret\w*|prix|precio)\b"
)
_CURRENCY = re.compile(
    r"[$€£¥₺₹]|\b(eur|usd|gbp|chf|tl|try|euros?|dollars?|pounds?|francs?|lira|cents?|free|charge|kostenlos|gratis"
    r"|gratuit|ucretsiz|bedava)\b|\d ?%"
)
_NAME = re.compile(r"\bwho(?:m)? (is|was|were|are|wrote|won|made|built|led|did|\w+ed) |\bwho\w* \w+ed\b")
_ASKS = re.compile(r"(how much|what|was |wie (viel|hoch|teuer)|ne kadar|kac|combien|quel|cuant)")
_NUMBER_WORDS = word_list(
    """
    one two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred thousand
    million half once twice daily weekly monthly yearly annual annually none never always every each ein
    zwei drei vier fuenf sechs sieben acht neun zehn zwolf hundert tausend einmal zweimal jede jeden nie
    iki uc dort bes alti yedi sekiz dokuz on yuz bin deux trois quatre cinq sept huit dix cent mille dos
    tres cuatro cinco seis siete ocho nueve diez cien mil
    """
)
_TIME_WORDS = word_list(
    """
    january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday today tomorrow yesterday morning noon evening night
    midnight daily before after until during once when weekend week month year quarter
    """
)


def expected(question: str) -> Expected:
    """The kind of answer that a question asks for."""
    folded = fold(question)
    if _TIME.search(folded):
        return Expected.TIME
    if _MONEY.search(folded) and _ASKS.match(folded):
        return Expected.MONEY
    if _NUMBER.search(folded):
        return Expected.NUMBER
    return Expected.NAME if _NAME.search(folded) else Expected.ANYTHING


def offers(question: str, text: str) -> bool:
    """Whether the text has something of the kind that the question asks for; true where any kind will do."""
    kind = expected(question)
    if kind is Expected.NUMBER:
        return _has_new_number(question, text) or _has_any(text, _NUMBER_WORDS)
    if kind is Expected.TIME:
        return _has_new_number(question, text) or _has_any(text, _TIME_WORDS | _NUMBER_WORDS)
    if kind is Expected.MONEY:
        return _CURRENCY.search(fold(text)) is not None
    return kind is Expected.ANYTHING or _has_new_name(question, text)


def _has_any(text: str, wanted: frozenset[str]) -> bool:
    return any(fold(word) in wanted for word in words(text))


def _has_new_number(question: str, text: str) -> bool:
    asked = set(content_stems(question))
    return any(has_number(word) and stem(word) not in asked for word in words(text))


def _has_new_name(question: str, text: str) -> bool:
    """A capitalised word past the start that the question didn't hold, or two of them at the start."""
    asked = set(content_stems(question))
    tokens = words(text)
    capital = [token[0].isupper() and stem(token) not in asked for token in tokens]
    return any(capital[1:])
