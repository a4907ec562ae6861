"""The results of a search, from any index."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


Labels: TypeAlias = "npt.NDArray[np.int64]"
Scores: TypeAlias = "npt.NDArray[np.float32]"


class Ranked(NamedTuple):
    """Labels int64 [n] with their scores float32 [n], best first.

    `full` is the score of a plain full match: 1 for a cosine; for BM25, that of a text of average length with
    each word of the question once. A BM25 score means something only relative to it.
    """

    labels: Labels
    scores: Scores
    full: float = 1.0

    @classmethod
    def empty(cls) -> Ranked:
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
    def by_cosine(cls, found: Ranked) -> Judged:
        """A ranking by the dense leg alone."""
        return cls(found.labels, found.scores, found.scores)


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
