"""How well passages support an answer: one measure, of a few signs, for all answers and searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from builtin_plugins.extractive_answers.weights import BIAS, CONFIDENCE, WEIGHTS
from builtin_plugins.rag.api import AskedWords, Passage, QuotablePassage, bare_text

_CLEARLY = 0.12
"""Similarity from which a passage in another language counts as about the question."""
_TELLING = 4
"""Content words of a question that says enough for that."""
_MOST_LEAD = 0.25
"""Beyond this, a lead only tells that nothing else is about the subject: without the cap, 0.93 instead of
0.95 of the answers with a confidence of 0.8 are right."""
_UNRELATED = 0.15
"""What a single passage's similarity is compared with."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What tells passages that hold an answer from those that don't; each is told with what it brings.

    `near` is the similarity of the best passage, `lead` how much nearer the quoted passage is than the next,
    apart from other documents that say the same; `coverage` its share of the question's words. `unnamed` is
    the share of the question's names that no passage has, 1 if it lacks a code or number. `foreign` is 1 if
    the quoted passage is in another language, whose words can't match, and near the question.
    """

    near: float
    lead: float
    coverage: float
    unnamed: float
    foreign: float

    @classmethod
    def read(cls, question: AskedWords, passages: Sequence[QuotablePassage], quoted: int, text: str) -> Signs:
        """The signs of an answer from the passage `quoted`, by its index, whose sentences are `text`."""
        near, home = [one.passage.near or 0.0 for one in passages], passages[quoted]
        bare = bare_text(text)
        others = [
            near[at]
            for at, one in enumerate(passages)
            if at != quoted and not _says_same(one.passage, home.passage, bare)
        ]
        return cls(
            near=near[0],
            lead=min(_MOST_LEAD, near[quoted] - max(others, default=_UNRELATED)),
            coverage=len(home.words) / max(1, len(question.words)),
            unnamed=_unnamed(question, passages, translated=home.is_foreign),
            foreign=_foreign(question, home),
        )


def _says_same(passage: Passage, home: Passage, text: str) -> bool:
    """Whether a passage of another document has this text, too."""
    return passage.document_id != home.document_id and text in bare_text(passage.text)


def support_of(signs: Signs) -> float:
    """The probability that the passages hold an answer."""
    return _probability(BIAS + _weighted(signs))


def confidence_of(signs: Signs) -> float:
    """The probability that what is quoted is right: the same measure on another scale (Platt 1999)."""
    bias, slope = CONFIDENCE
    return _probability(bias + slope * _weighted(signs))


def _weighted(signs: Signs) -> float:
    values: tuple[float, ...] = astuple(signs)
    return sum(weight * value for weight, value in zip(WEIGHTS, values, strict=True))


def _probability(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


def _foreign(question: AskedWords, home: QuotablePassage) -> float:
    """A question of few words is near a passage in another language by chance."""
    if not home.is_foreign:
        return 0.0
    return min(1.0, max(0.0, home.passage.near or 0.0) / _CLEARLY) * min(1.0, len(question.words) / _TELLING)


def _unnamed(question: AskedWords, passages: Sequence[QuotablePassage], *, translated: bool) -> float:
    """The share of names that are missing; one code or number is enough for all.

    In a translation, only those count: names are spelled differently there.
    """
    missing = question.names.difference(*(one.names for one in passages))
    if any(char.isdigit() for one in missing for char in one):
        return 1.0
    return 0.0 if translated or not missing else len(missing) / len(question.names)
