"""The parts of jobs that need no platform."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from kernel.jobs.progress import LONGEST_UNIT, Progress, seconds_left
from kernel.jobs.stopping import Cancelled, StopSignal


async def test_a_stop_ends_the_block() -> None:
    """A request ends what runs, by a CancelledError that its handler may clean up after."""
    signal, cleaned = StopSignal(), False
    asyncio.get_running_loop().call_soon(signal.request)
    with pytest.raises(Cancelled):
        async with signal.stops():
            try:
                await asyncio.Event().wait()
            finally:
                cleaned = True
    assert cleaned


async def test_a_stop_before_the_block() -> None:
    """It does not even begin."""
    signal = StopSignal()
    signal.request()
    with pytest.raises(Cancelled):
        async with signal.stops():
            pytest.fail("the block began")


async def test_a_timeout_of_the_handler_is_its_own() -> None:
    """A TimeoutError without a request is an error like any other."""
    with pytest.raises(TimeoutError):
        async with StopSignal().stops():
            raise TimeoutError


async def test_the_end_of_the_worker_is_no_cancel() -> None:
    """Cancelling the task passes through as it is."""

    async def work() -> None:
        async with StopSignal().stops():
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_pause_ends_with_a_stop() -> None:
    """Nobody waits for the next attempt of a job that was cancelled."""
    signal = StopSignal()
    asyncio.get_running_loop().call_soon(signal.request)
    async with asyncio.timeout(30):
        await signal.pause(600)


def test_progress_is_written_when_it_changed() -> None:
    """What was written once is not written again; what is left out of a report stays."""
    progress = Progress(3, 10, "pages")
    assert progress.unsaved() == {}
    progress.report(4, message="Reading")
    assert progress.unsaved() == {"done": 4, "total": 10, "unit": "pages", "message": "Reading"}
    assert progress.unsaved() == {}
    progress.advance(2)
    assert progress.unsaved()["done"] == 6


def test_progress_fits_its_columns() -> None:
    """Whatever a handler says."""
    progress = Progress()
    progress.report(unit="u" * 1000, message="m" * 10_000)
    assert len(progress.values()["unit"]) == LONGEST_UNIT


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
