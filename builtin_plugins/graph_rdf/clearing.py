"""Removes deleted graphs from stores derived from rows, retrying until it succeeds."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from kernel.sdk import set_within

log = logging.getLogger("platform.graph_rag")

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 60.0
_REST = 4.0
"""Rest this many times as long as a clearing took, so that many deletions don't keep a core busy."""


class Clearing:
    """Calls `clear` in the background after each change, and again with growing pauses if it fails.

    Each process begins with a call, in case the previous one left work undone. `pause` waits for a number of
    seconds, or until the given event.
    """

    def __init__(
        self,
        store: str,
        clear: Callable[[], Awaitable[None]],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[asyncio.Event, float], Awaitable[object]] = set_within,
    ) -> None:
        self._name = store
        self._clear = clear
        self._clock = clock
        self._pause = pause
        self._is_due = False
        self._awake = asyncio.Event()
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def note(self, _graph: str = "") -> None:
        """Note that a graph was replaced or dropped."""
        self._is_due = True
        self._awake.set()
        if (self._task is None or self._task.done()) and not self._ending.is_set():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Clear once more if needed; if that fails, it is left undone."""
        self._ending.set()
        self._awake.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        delay = _FIRST_DELAY
        while await self._awake.wait():
            self._awake.clear()
            started = self._clock()
            if not self._is_due or await self._succeeds(delay):
                rest, delay = _REST * (self._clock() - started), _FIRST_DELAY
            else:
                rest, delay = delay, min(2 * delay, _LONGEST_DELAY)
                self._awake.set()
            if self._ending.is_set():
                return
            await self._pause(self._ending, rest)

    async def _succeeds(self, delay: float) -> bool:
        """Clear once; returns whether that succeeded."""
        self._is_due = False
        try:
            await self._clear()
        except Exception as error:  # boundary: deleted data must be removed, whatever failed
            self._is_due = True
            log.warning(
                "deleted graphs could not be removed from %s (%s); nobody can query them; trying again "
                "in %d s",
                self._name,
                type(error).__name__,
                delay,
                exc_info=True,
            )
            return False
        return True
