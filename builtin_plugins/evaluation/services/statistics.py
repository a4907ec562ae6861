"""Intervals and significance: bootstrap (Efron 1979), paired sign-flip permutations (Fisher 1935)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_SAMPLES = 2000
_FLIPS = 5000
_CELLS = 2_000_000
_SEED = 20_240_229  # the same figures each time


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean of at least one value."""
    import numpy as np

    numbers = np.asarray(values, dtype=np.float64)
    if len(numbers) < 2:
        return float(numbers[0]), float(numbers[0])
    random = np.random.default_rng(_SEED)
    means = [
        numbers[random.integers(0, len(numbers), (rows, len(numbers)))].mean(axis=1)
        for rows in _batches(_SAMPLES, len(numbers))
    ]
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return float(low), float(high)


def paired_p(differences: Sequence[float]) -> float:
    """How likely a mean so far from zero is if each difference could as well have the other sign."""
    import numpy as np

    numbers: npt.NDArray[np.float64] = np.asarray(differences, dtype=np.float64)
    numbers = numbers[numbers != 0]
    if not len(numbers):
        return 1.0
    seen, random, extreme = abs(numbers.sum()) - 1e-12, np.random.default_rng(_SEED), 0
    for rows in _batches(_FLIPS, len(numbers)):
        signs = random.integers(0, 2, (rows, len(numbers)), dtype=np.int8) * 2 - 1
        extreme += int((np.abs(signs @ numbers) >= seen).sum())
    return (extreme + 1) / (_FLIPS + 1)


def _batches(rows: int, width: int) -> list[int]:
    """Rows in parts that need little memory."""
    most = max(1, _CELLS // width)
    return [min(most, rows - at) for at in range(0, rows, most)]
