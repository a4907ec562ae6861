"""Hands results from threads to the event loop in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

Settle = Callable[[], None]


class Handover:
    """Runs in the loop what threads hand over; under load, one wake-up of the loop serves many."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Settle] = deque()
        self._called = False

    def give(self, *settle: Settle) -> None:
        """From any thread: have each `settle()` run in the loop; calls keep their order."""
        self._waiting.extend(settle)
        if not self._called:
            self._called = True
            try:
                self._loop.call_soon_threadsafe(self._take)
            except RuntimeError:  # the loop is closed: nobody is waiting any more
                self._waiting.clear()

    def _take(self) -> None:
        self._called = False  # first: a later `give` wakes the loop again
        while self._waiting:
            self._waiting.popleft()()


def settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    """Settle the caller's future, if it is still waiting."""
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):  # a future can't carry it
        future.set_exception(RuntimeError("a unit of work raised StopIteration"))
    else:
        future.set_exception(error)
