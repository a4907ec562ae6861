"""Results on their way from threads to the event loop, many at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

Settle = Callable[[], None]


class Handover:
    """Runs what threads hand over in the loop; under load one wake-up of the loop serves many."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Settle] = deque()
        self._called = False

    def give(self, settle: Settle) -> None:
        """From any thread: run `settle()` in the loop, in the order of giving."""
        self._waiting.append(settle)
        if not self._called:
            self._called = True
            try:
                self._loop.call_soon_threadsafe(self._take)
            except RuntimeError:  # the loop is closed: nobody waits any longer
                self._waiting.clear()

    def _take(self) -> None:
        self._called = False  # first: whoever comes after this line calls again
        while self._waiting:
            self._waiting.popleft()()


def settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    """Notify the caller, if it still waits."""
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):  # a future can't carry it
        future.set_exception(RuntimeError("a unit of work raised StopIteration"))
    else:
        future.set_exception(error)
