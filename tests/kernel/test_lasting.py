"""Work that nobody awaits, and that must not end unnoticed."""

from __future__ import annotations

import asyncio

import pytest

from kernel.lasting import lasting


async def test_an_unexpected_error_does_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    """An error is logged with the work's name, and the work starts again; returning and cancelling end it."""
    begun = 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            raise KeyError("nobody thought of this")

    task = lasting("looking around", work, pause=0)
    await task
    assert (begun, task.get_name()) == (3, "looking around")
    assert caplog.text.count("looking around: stopped by an unexpected error") == 2
    assert "nobody thought of this" in caplog.text
    cancelled = lasting("waiting", asyncio.Event().wait)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def test_an_error_while_it_is_being_stopped(caplog: pytest.LogCaptureFixture) -> None:
    """The process can end: the error is logged, and the work does not start again."""
    begun, again = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        if begun.is_set():
            again.set()
            return
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("the connection is gone")

    task = lasting("following", work, pause=0)
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not again.is_set()
    assert "the connection is gone" in caplog.text
