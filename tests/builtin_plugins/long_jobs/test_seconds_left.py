"""The time that a job still takes, as its progress tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from builtin_plugins.long_jobs.schemas import seconds_left


@pytest.mark.parametrize(
    ("done", "before", "total", "later", "expected"),
    [
        pytest.param(50, 0, 100, 0, 100, id="half done"),
        pytest.param(50, 0, 100, 30, 70, id="half done a while ago"),
        pytest.param(50, 0, 100, 900, 1, id="overdue: it still runs"),
        pytest.param(50, 40, 100, 0, 500, id="only this run counts"),
        pytest.param(50, 0, None, 0, None, id="no end known"),
        pytest.param(40, 40, 100, 0, None, id="no pace known"),
    ],
)
def test_seconds_left(done: int, before: int, total: int | None, later: int, expected: int | None) -> None:
    """After 100 seconds of this run."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    written = start + timedelta(seconds=100)
    now = written + timedelta(seconds=later)
    assert seconds_left(done, before, total, start, written, now) == expected
