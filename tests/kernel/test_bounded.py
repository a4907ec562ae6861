"""Threads that nobody waits for."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from kernel.libs.background import in_abandonable_thread


def test_a_loop_ends_before_its_abandoned_thread() -> None:
    """The caller gets its timeout, and closing the loop waits for nothing."""
    never = threading.Event()
    started = time.monotonic()
    try:
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(in_abandonable_thread(lambda: never.wait(30)), 0.05))
        assert time.monotonic() - started < 20
    finally:
        never.set()


async def test_what_it_answers() -> None:
    assert await in_abandonable_thread(lambda: 7) == 7
    with pytest.raises(ValueError, match="seven"):
        await in_abandonable_thread(lambda: int("seven"))
