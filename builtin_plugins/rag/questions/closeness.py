"""How closely a text fits a question: which of its words the text has, how rare and how near each other they
are.

Rarity is counted among the compared texts, so a word that all of them share decides nothing.
Nearness follows the idea of span-based proximity (Tao and Zhai 2007, "An Exploration of Proximity Measures
in Information Retrieval").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from builtin_plugins.rag.answering.matching import places
from builtin_plugins.rag.answering.words import content_stems, same_word, stem

_COVERAGE, _NEARNESS, _ORDER = 0.6, 0.25, 0.15
_WINDOW = 40


class Closeness:
    """Compares texts with a question, by the positions of their words."""

    def __init__(self, question: str, texts: Sequence[Mapping[str, Sequence[int]]]) -> None:
        self._wanted = content_stems(question)
        meant = _meant(self._wanted, frozenset[str]().union(*texts))
        self._lines = [
            sorted((at, meant[word]) for word in text.keys() & meant.keys() for at in text[word])
            for text in texts
        ]

    def scores(self, first: int | None = None) -> list[float]:
        """A score for each text, or for the first `first` as if there were no others: from 0 (no word of the
        question) to 1 (all of them, side by side, in order).
        """
        lines, count = self._lines[:first], len(self._wanted)
        weights = _weights(count, lines)
        return [round(_score(count, weights, line), 6) for line in lines]


def closeness(question: str, texts: Sequence[str]) -> list[float]:
    """The scores of texts, for a single comparison."""
    return Closeness(question, [places(text) for text in texts]).scores()


def _meant(wanted: Sequence[str], known: Collection[str]) -> dict[str, int]:
    """Map known words that are forms of a word in the question to that word's index."""
    found, heads = dict[str, int](), {one[:1] for one in wanted}
    for word in known:
        root = stem(word)
        if root[:1] in heads and (which := _which(wanted, root)) is not None:
            found[word] = which
    return found


def _weights(count: int, lines: Sequence[Sequence[tuple[int, int]]]) -> list[float]:
    """The weight of each word of the question; they add up to 1."""
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
    """The index of the question's word that `word` is a form of."""
    return next((at for at, one in enumerate(wanted) if one[:1] == word[:1] and same_word(one, word)), None)


def _nearness(at: Sequence[tuple[int, int]], weights: Sequence[float]) -> float:
    """The greatest total weight of different words within one window of the text."""
    best, first, held = 0.0, 0, Counter[int]()
    for place, which in at:
        while place - at[first][0] > _WINDOW:
            held[at[first][1]] -= 1
            first += 1
        held[which] += 1
        if held[which] == 1:
            best = max(best, sum(weights[one] for one, count in held.items() if count))
    return best


def _order(at: Sequence[tuple[int, int]], count: int) -> float:
    """The share of neighboring words in the question that are neighbors in the text."""
    pairs = {
        which
        for (place, which), (following, other) in pairwise(at)
        if following - place <= 3 and other == which + 1
    }
    return len(pairs) / max(count - 1, 1)
