"""The rankings of indexes, and the fusion of two: vectors know meaning, BM25 knows words.

A convex combination of scores (Bruch, Gai and Ingber 2023, "An Analysis of Fusion Functions for Hybrid
Retrieval"), because ranks alone discard how confident a leg is: on all evaluation sets in `tests/benchmarks`,
reciprocal rank fusion falls behind the better leg. The normalizations were chosen there, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Labels: TypeAlias = "npt.NDArray[np.int64]"
Scores: TypeAlias = "npt.NDArray[np.float32]"


class Ranking(NamedTuple):
    """Labels int64 [n] with their scores float32 [n], best first.

    `full` is the score of a plain full match: 1 for a cosine; for BM25, that of a text of average length with
    each word of the question once. A BM25 score means something only relative to it.
    """

    labels: Labels
    scores: Scores
    full: float = 1.0

    @classmethod
    def empty(cls) -> Ranking:
        import numpy as np

        return cls(np.empty(0, np.int64), np.empty(0, np.float32))

    @property
    def size(self) -> int:
        """How many were found."""
        return len(self.labels)


class Judged(NamedTuple):
    """A ranking with each leg's scores, float32 [n] like the labels; `words` is None without a text leg.

    `cosines` are the plain cosines. `words` are shares of a full match, 0 to 1.
    """

    labels: Labels
    scores: Scores
    cosines: Scores
    words: Scores | None = None

    @property
    def size(self) -> int:
        """How many were found."""
        return len(self.labels)

    @classmethod
    def by_cosine(cls, ranking: Ranking) -> Judged:
        """A ranking by the dense leg alone."""
        return cls(ranking.labels, ranking.scores, ranking.scores)


def as_labels(labels: npt.ArrayLike) -> Labels:
    """`labels` as a contiguous int64 [n] array.

    Raises:
        ValueError: `labels` is not a flat list of integers.
    """
    import numpy as np

    array = np.asarray(labels)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"labels must be a flat list of integers, not {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array, np.int64)


def is_among(labels: Labels, among: Labels) -> npt.NDArray[np.bool_]:
    """Which of a few `labels` [n] are in the many `among`, which need not be sorted: bool [n]."""
    import numpy as np

    if not len(among):
        return np.zeros(len(labels), np.bool_)
    ordered = among if bool((among[1:] >= among[:-1]).all()) else np.sort(among)
    at = np.searchsorted(ordered, labels).clip(max=len(ordered) - 1)
    is_member: npt.NDArray[np.bool_] = ordered[at] == labels
    return is_member


MEANING_WEIGHT = 0.8
"""The share of the dense leg for a question in plain words, unless the model names its own."""

IDENTIFIER_WEIGHT = 0.3
"""The share of the dense leg for a question with an identifier, whose exact spelling matters."""

LEAST_DEPTH = 60
DEPTH_FACTOR = 3

_HUGE = 3.4028234663852886e38  # the largest float32

Search: TypeAlias = "Callable[[int, Labels | None], Ranking]"
"""A leg with its question already bound: (k, allowed) to a ranking."""

# A digit, an underscore or a capital inside a word: CK-381, v4.2, max_connections, ECONNRESET, errorCode.
_IDENTIFIER = re.compile(r"\d|\w_\w|\w[A-Z]")
_YEAR = re.compile(r"(?<![\w./:-])(?:FY ?)?(?:19|20)\d\d(?![\w/-]|[.:]\w)")


def weight_for(question: str, meaning: float = MEANING_WEIGHT) -> float:
    """The share of the dense leg that suits the words of `question`: `meaning` for plain ones, 0 to 1.

    A year is no identifier: as one, 0.29 of the questions about annual reports find their passage first, else
    0.37.
    """
    return min(meaning, IDENTIFIER_WEIGHT) if _IDENTIFIER.search(_YEAR.sub("", question)) else meaning


def hybrid(
    dense: Search,
    text: Search,
    k: int,
    *,
    weight: float,
    unrelated: float = 0.0,
    allowed: npt.ArrayLike | None = None,
) -> Judged:
    """The `k` best of two legs; each candidate of one leg is scored by the other as well.

    Otherwise a text found by only one leg would score 0 in the other. Each leg is asked twice: for its own
    best, and for its scores of what only the other found.
    """
    among = None if allowed is None else as_labels(allowed)
    return fuse(*both_legs(dense, text, k, among), k, weight, unrelated)


def both_legs(dense: Search, text: Search, k: int, among: Labels | None = None) -> tuple[Ranking, Ranking]:
    """The two legs of `hybrid`, each completed with the other's candidates and ready for `fuse`."""
    depth = depth_for(k)
    near, worded = dense(depth, among), text(depth, among)
    return _completed(near, worded, dense), _completed(worded, near, text)


def depth_for(k: int) -> int:
    """How many results to read from each leg to find the `k` best overall."""
    return max(LEAST_DEPTH, DEPTH_FACTOR * k)


def missing(own: Ranking, other: Ranking) -> Labels:
    """The labels in `other` but not in `own`: ask `own`'s leg about them, then call `joined`."""
    import numpy as np

    return np.setdiff1d(other.labels, own.labels)


def joined(own: Ranking, more: Ranking) -> Ranking:
    """`own`, followed by the same leg's results for the `missing`."""
    import numpy as np

    labels = np.concatenate([own.labels, more.labels])
    return Ranking(labels, np.concatenate([own.scores, more.scores]), own.full if own.size else more.full)


def fuse(
    dense: Ranking, text: Ranking, k: int, weight: float = MEANING_WEIGHT, unrelated: float = 0.0
) -> Judged:
    """The `k` best by `weight` * dense + (1 - `weight`) * text, 0 to 1; equal ones by cosine, then by label.

    A cosine counts relative to the best one, both measured from `unrelated`, the model's cosine of two
    unrelated texts; below that it counts 0. BM25 counts relative to a full match, or to the best match if
    that is better. What a leg does not list counts 0 in it; if one leg is empty, the other's order stays.

    Raises:
        ValueError: `weight` is not within 0 to 1.
    """
    import numpy as np

    if not 0.0 <= weight <= 1.0:
        raise ValueError(f"weight must be within 0 to 1, not {weight}")
    labels = np.union1d(dense.labels, text.labels)
    words = _spread(_by_full_match(text), text.labels, labels)
    scores = weight * _spread(_by_best(dense, unrelated), dense.labels, labels) + (1.0 - weight) * words
    cosines = _spread(dense.scores, dense.labels, labels)
    order = np.lexsort((-cosines, -scores))[: max(0, k)]
    return Judged(labels[order], _single(scores[order]), _single(cosines[order]), _single(words[order]))


def _single(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    import numpy as np

    return scores.clip(-_HUGE, _HUGE).astype(np.float32)


def _completed(own: Ranking, other: Ranking, search: Search) -> Ranking:
    unseen = missing(own, other)
    return joined(own, search(len(unseen), unseen)) if len(unseen) else own


def _by_best(dense: Ranking, unrelated: float) -> npt.NDArray[np.float64]:
    import numpy as np

    above = (dense.scores.astype(np.float64) - unrelated).clip(min=0.0)
    best = float(above.max(initial=0.0))
    return above / (best if best > 0.0 else 1.0)


def _by_full_match(text: Ranking) -> npt.NDArray[np.float64]:
    import numpy as np

    return text.scores.astype(np.float64) / max(text.full, float(text.scores.max(initial=0.0)))


def _spread(scores: npt.NDArray[np.floating], labels: Labels, over: Labels) -> npt.NDArray[np.float64]:
    """`scores` of `labels`, aligned with the sorted labels `over`; 0 if a label has none."""
    import numpy as np

    laid = np.zeros(len(over))
    laid[np.searchsorted(over, labels)] = scores
    return laid
