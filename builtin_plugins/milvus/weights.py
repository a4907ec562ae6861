"""Words as sparse vectors: their inner product is BM25.

A point has, for each of its terms, the part of BM25 that depends on the text; a question has the rarity of
its terms. The length of a text counts relative to a fixed one, not to the average of all: a point's vector
never changes because of others, and scores tell nothing about points that a filter leaves out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

_K1, _B = 1.2, 0.75
_USUAL_LENGTH = 200
"""Terms of a passage of 1,500 characters."""

_NUMBERS = 2**32 - 2
PRESENCE = 0
"""The number that every point has, as a vector must not be empty."""

FORM = "weights 1"
"""Changes with what is computed here."""


def number_of(term: str) -> int:
    """The dimension of a term. Two of a million terms share one now and then, which does little harm."""
    digest = hashlib.blake2b(term.encode(), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "big") % _NUMBERS


def weights_of(terms: Sequence[str]) -> dict[int, float]:
    """The sparse vector of a text."""
    length = _K1 * (1 - _B + _B * len(terms) / _USUAL_LENGTH)
    vector = {PRESENCE: 1.0}
    for term, times in Counter(terms).items():
        number = number_of(term)
        vector[number] = vector.get(number, 0.0) + times * (_K1 + 1) / (times + length)
    return vector


def question_of(weights: Mapping[str, float]) -> dict[int, float]:
    """The sparse vector of a question."""
    vector: dict[int, float] = {}
    for term, weight in weights.items():
        vector[number_of(term)] = vector.get(number_of(term), 0.0) + weight
    return vector
