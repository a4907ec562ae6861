"""How closely a text's words fit a question: which of them it has, how rare they are, how near together.

Rarity is counted among the texts that are compared, so a word that all of them share decides nothing.
Nearness follows the idea of span-based proximity (Tao and Zhai 2007, "An Exploration of Proximity Measures
in Information Retrieval").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

from builtin_plugins.rag.answering.words import content_stems, same_word, stem, words

_COVERAGE, _NEARNESS, _ORDER = 0.6, 0.25, 0.15
_WINDOW = 40


def closeness(question: str, texts: Sequence[str]) -> list[float]:
    """For each text a score from 0 (no word of the question) to 1 (all of them, side by side, in order)."""
    wanted = content_stems(question)
    if not wanted:
        return [0.0] * len(texts)
    texts_words = [words(text) for text in texts]
    meant = _meant(wanted, frozenset[str]().union(*texts_words))
    lines = [[(at, meant[word]) for at, word in enumerate(line) if word in meant] for line in texts_words]
    weights = _weights(len(wanted), lines)
    return [round(_score(len(wanted), weights, line), 6) for line in lines]


def _meant(wanted: Sequence[str], known: Collection[str]) -> dict[str, int]:
    """Of those words that are forms of one of the question's, which one that is."""
    found = ((word, _which(wanted, stem(word))) for word in known)
    return {word: which for word, which in found if which is not None}


def _weights(count: int, lines: Sequence[Sequence[tuple[int, int]]]) -> list[float]:
    """How much each word of the question counts; together 1."""
    held = Counter(which for line in lines for which in {which for _, which in line})
    raw = [math.log(1.0 + (len(lines) + 0.5) / (0.5 + held[which])) for which in range(count)]
    return [one / sum(raw) for one in raw]


def _score(count: int, weights: Sequence[float], at: Sequence[tuple[int, int]]) -> float:
    covered = {which for _, which in at}
    share = sum(weights[which] for which in covered)
    if len(covered) < 2:
        return _COVERAGE * share
    return _COVERAGE * share + _NEARNESS * _nearness(at, weights) + _ORDER * _order(at, count)


def _which(wanted: Sequence[str], word: str) -> int | None:
    """The question's word that `word` is a form of."""
    return next((at for at, one in enumerate(wanted) if one[:1] == word[:1] and same_word(one, word)), None)


def _nearness(at: Sequence[tuple[int, int]], weights: Sequence[float]) -> float:
    """The greatest weight of different words within one window of the text."""
    best, first = 0.0, 0
    for last, (place, _) in enumerate(at):
        while place - at[first][0] > _WINDOW:
            first += 1
        best = max(best, sum(weights[which] for which in {one for _, one in at[first : last + 1]}))
    return best


def _order(at: Sequence[tuple[int, int]], count: int) -> float:
    """The share of the question's neighbouring words that are neighbours in the text."""
    pairs = {
        which
        for (place, which), (following, other) in pairwise(at)
        if following - place <= 3 and other == which + 1
    }
    return len(pairs) / max(count - 1, 1)
