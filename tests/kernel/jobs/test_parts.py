"""The parts of jobs that need no platform."""

from __future__ import annotations

import asyncio

import pytest

from kernel.jobs.progress import LONGEST_UNIT, Progress
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
