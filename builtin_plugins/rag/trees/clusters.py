"""Group similar texts by k-means on their vectors, deterministically."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


SIZE = 5
_LARGEST = 2 * SIZE
_ROUNDS = 20

Vectors: TypeAlias = "npt.NDArray[np.float32]"


def clusters(vectors: Vectors) -> list[list[int]]:
    """Groups of about 5 rows in a similar direction, each sorted, and ordered by their first row.

    `vectors` are rows of unit length. No group has more than 10 rows.
    """
    import numpy as np

    count = math.ceil(len(vectors) / SIZE)
    if count <= 1:
        return [list(range(len(vectors)))]
    centres = vectors[_spread(vectors, count)]
    nearest = np.zeros(len(vectors), dtype=np.intp)
    for _ in range(_ROUNDS):
        before, nearest = nearest, np.argmax(vectors @ centres.T, axis=1)
        if np.array_equal(before, nearest):
            break
        centres = np.stack([_centre(vectors[nearest == at], centres[at]) for at in range(count)])
    groups = [np.flatnonzero(nearest == at).tolist() for at in range(count)]
    return sorted(part for group in groups for part in _parts(group))


def _spread(vectors: Vectors, count: int) -> list[int]:
    """Rows far from each other: the first, then repeatedly the one least similar to those taken."""
    import numpy as np

    rows = [0]
    nearness = vectors @ vectors[0]
    while len(rows) < count:
        rows.append(int(np.argmin(nearness)))
        nearness = np.maximum(nearness, vectors @ vectors[rows[-1]])
    return rows


def _centre(members: Vectors, before: Vectors) -> Vectors:
    import numpy as np

    if not len(members):
        return before
    mean = members.mean(axis=0)
    length = float(np.linalg.norm(mean))
    return before if length == 0.0 else (mean / length).astype(np.float32)


def _parts(group: list[int]) -> list[list[int]]:
    """A group, cut into equal parts if it is too large."""
    parts = math.ceil(len(group) / _LARGEST)
    size = math.ceil(len(group) / parts) if parts else 0
    return [group[start : start + size] for start in range(0, len(group), size)] if size else []
