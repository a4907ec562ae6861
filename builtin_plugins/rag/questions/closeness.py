"""How closely a text's words fit a question: which of them it has, how rare they are, how near together.

Rarity is counted among the texts that are compared, so a word that all of them share decides nothing.
Nearness follows the idea of span-based proximity (Tao and Zhai 2007, "An Exploration of Proximity Measures
in Information Retrieval").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from builtin_plugins.rag.answering.reading import places
from builtin_plugins.rag.answering.words import content_stems, same_word, stem

_COVERAGE, _NEARNESS, _ORDER = 0.6, 0.25, 0.15
_WINDOW = 40


class Closeness:
    """Texts that are compared with a question, by the places of their words."""

    def __init__(self, question: str, texts: Sequence[Mapping[str, Sequence[int]]]) -> None:
        self._wanted = content_stems(question)
        meant = _meant(self._wanted, frozenset[str]().union(*texts))
        self._lines = [
            sorted((at, meant[word]) for word in text.keys() & meant.keys() for at in text[word])
            for text in texts
        ]

    def scores(self, first: int | None = None) -> list[float]:
        """For each text, or each of the first `first` as if there were no others, a score from 0 (no word of
        the question) to 1 (all of them, side by side, in order).
        """
        lines, count = self._lines[:first], len(self._wanted)
        weights = _weights(count, lines)
        return [round(_score(count, weights, line), 6) for line in lines]


def closeness(question: str, texts: Sequence[str]) -> list[float]:
    """The scores of texts that are compared once."""
    return Closeness(question, [places(text) for text in texts]).scores()


def _meant(wanted: Sequence[str], known: Collection[str]) -> dict[str, int]:
    """Of those words that are forms of one of the question's, which one that is."""
    found, heads = dict[str, int](), {one[:1] for one in wanted}
    for word in known:
        root = stem(word)
        if root[:1] in heads and (which := _which(wanted, root)) is not None:
            found[word] = which
    return found


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
    """The share of the question's neighbouring words that are neighbours in the text."""
    pairs = {
        which
        for (place, which), (following, other) in pairwise(at)
        if following - place <= 3 and other == which + 1
    }
    return len(pairs) / max(count - 1, 1)
