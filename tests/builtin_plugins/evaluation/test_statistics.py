"""Intervals: of many columns at once, as of each alone."""

from __future__ import annotations

import statistics

import pytest

from builtin_plugins.evaluation.services.statistics import intervals

COLUMNS = [
    [at % 7 / 7 for at in range(60)],
    [1.0],
    [float(at % 2) for at in range(60)],
    [at % 5 / 5 for at in range(2000)],
    [0.25, 0.75],
]


def test_many_columns_at_once() -> None:
    """Columns come back in their order, whatever their lengths, with the figures that each has alone."""
    assert intervals(COLUMNS) == [pytest.approx(intervals([one])[0]) for one in COLUMNS]
    assert intervals([]) == []


@pytest.mark.parametrize("column", COLUMNS[:4])
def test_the_interval_of_a_mean(column: list[float]) -> None:
    low, high = intervals([column])[0]
    error = statistics.pstdev(column) / len(column) ** 0.5
    mean = statistics.mean(column)
    assert (low, high) == pytest.approx((mean - 1.96 * error, mean + 1.96 * error), abs=0.5 * error)
