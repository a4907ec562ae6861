"""Which sentences an answer quotes, in which order, and how."""

from __future__ import annotations

import re
from collections.abc import Sequence

from builtin_plugins.rag.answering.candidate import Candidate, count_words
from builtin_plugins.rag.answering.ends import asks, is_closed

MAX_SENTENCES = 3
_ENOUGH_WORDS = 34
_SAME_WORDS = 0.7
_SAME_SHAPE = 0.5
_INNER_CITATION = re.compile(r"\[(\d+(?:\s*[,;–-]\s*\d+)*)\]")


def pick(
    numbers: frozenset[str], found: Sequence[Candidate], scores: Sequence[float], near: float
) -> list[Candidate]:
    """The best sentence and those nearly as good that add to it, in an order that reads well."""
    best, picked, room = found[0], [found[0]], _ENOUGH_WORDS - count_words(found[0].text)
    for one, score in zip(found[1:], scores[1:], strict=True):
        if len(picked) == MAX_SENTENCES or score < scores[0] - near or room <= 0:
            break
        if (
            _answers_another(one, best)
            or _is_sibling(one, best, numbers)
            or any(_repeats(one, other) for other in picked)
        ):
            continue
        picked.append(one)
        room -= count_words(one.text)
    return _readable(picked)


def said(picked: Sequence[Candidate]) -> list[str]:
    """The texts of consecutive sentences, with a shared heading only once."""
    heads = [(one.passage, one.under) if one.headed else None for one in picked]
    pairs = zip(picked, heads, [None, *heads], strict=False)
    return [one.text[one.headed :] if head and head == before else one.text for one, head, before in pairs]


def _readable(picked: list[Candidate]) -> list[Candidate]:
    """The best sentence's passage first; within a passage, as written."""
    first = {one.passage: -rank for rank, one in reversed(list(enumerate(picked)))}
    return sorted(picked, key=lambda one: (-first[one.passage], one.start))


def _is_sibling(one: Candidate, best: Candidate, numbers: frozenset[str]) -> bool:
    """Whether a sentence says the same about another number: the Aurora 2's row below the Aurora 3's."""
    if not numbers <= best.stems or numbers <= one.stems:
        return False
    return len(one.stems & best.stems) >= _SAME_SHAPE * len(one.stems | best.stems)


def _answers_another(one: Candidate, best: Candidate) -> bool:
    """Whether the document gives the sentence as the answer to a different question."""
    return one.under != best.under and asks(one.under) and asks(best.under)


def _repeats(one: Candidate, other: Candidate) -> bool:
    """Whether two sentences say nearly the same, or one is a piece of the other.

    Numbers that differ make a different sentence of the same words.
    """
    if one.text.casefold() in other.text.casefold() or other.text.casefold() in one.text.casefold():
        return True
    shared, either = one.stems & other.stems, one.stems | other.stems
    differ = any(char.isdigit() for stem in one.stems ^ other.stems for char in stem)
    return not differ and len(shared) >= _SAME_WORDS * len(either)


def quoted(text: str) -> str:
    """Put the document's own bracketed numbers in parentheses, so they are not mistaken for our citations."""
    plain = _INNER_CITATION.sub(r"(\1)", text).rstrip(" ,;:")
    return plain if is_closed(plain) else f"{plain}."
