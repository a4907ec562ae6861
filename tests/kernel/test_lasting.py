"""Work that nobody awaits, and that must not end unnoticed."""

from __future__ import annotations

import asyncio

import pytest

from kernel.sdk import lasting, repeating, set_within


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
    assert [message.startswith("looking around: ") for message in caplog.messages] == [True, True]
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


async def test_repeating() -> None:
    """The work is done again and again during the block, and once at its end."""
    done, thrice = 0, asyncio.Event()

    async def work() -> None:
        nonlocal done
        done += 1
        if done == 3:
            thrice.set()

    async with repeating("counting", work, 0):
        await thrice.wait()
        during = done
    assert done > during
    seldom = 0

    async def at_last() -> None:
        nonlocal seldom
        seldom += 1

    async with repeating("counting slowly", at_last, 3600):
        pass
    assert seldom == 1


async def test_a_wait_with_a_limit() -> None:
    event = asyncio.Event()
    assert not await set_within(event, 0)
    event.set()
    assert await set_within(event, 0)
    assert await set_within(event, 3600)
