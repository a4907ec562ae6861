"""Turns a runtime's lists of numbers into a normalized matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from builtin_plugins.models.runtimes.errors import AnswerMalformed
from builtin_plugins.models.runtimes.protocol import Embeddings


def normalized(vectors: object, count: int) -> Embeddings:
    """``vectors`` as float32 [count, d] with L2 norm 1; a zero vector stays zero.

    Raises ``AnswerMalformed`` unless it is ``count`` lists of the same length, all numbers finite.
    """
    import numpy as np

    try:
        matrix = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise AnswerMalformed("its embeddings are not lists of numbers of one length") from error
    if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] == 0:
        raise AnswerMalformed(f"it should contain {count} embeddings")
    if not np.isfinite(matrix).all():
        raise AnswerMalformed("its embeddings contain numbers that are not finite")
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Embeddings = np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)
    return unit


def batches(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """``texts`` in order, at most ``size`` at a time."""
    return (texts[start : start + size] for start in range(0, len(texts), size))


def is_count(value: object) -> TypeGuard[int]:
    """Whether a JSON value is an integer; ``true`` is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def stacked(batches: Sequence[Embeddings]) -> Embeddings:
    """Batches stacked vertically; [0, 0] for none. Raises ``AnswerMalformed`` if their lengths differ."""
    import numpy as np

    if len({batch.shape[1] for batch in batches}) > 1:
        raise AnswerMalformed("its embeddings differ in length between batches")
    return np.concatenate(batches) if batches else np.zeros((0, 0), dtype=np.float32)
