"""Removing what was deleted from stores that are derived from rows, until it is done."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

log = logging.getLogger("platform.graph_rag")

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 60.0
_REST = 4.0
"""After a clearing, rest this many times as long as it took: many deletions must not keep a core busy."""


async def _pause(ending: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(ending.wait(), seconds)


class Clearing:
    """Calls `clear` in the background after each change, and again with growing pauses where it fails.

    What a process leaves undone when it ends, the next one does: each begins with a call. `pause` waits so
    many seconds, or until the event that it is given.
    """

    def __init__(
        self,
        store: str,
        clear: Callable[[], Awaitable[None]],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[asyncio.Event, float], Awaitable[None]] = _pause,
    ) -> None:
        self._name = store
        self._clear = clear
        self._clock = clock
        self._pause = pause
        self._wanted = False
        self._awake = asyncio.Event()
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def note(self, _graph: str = "") -> None:
        """Something was replaced or dropped."""
        self._wanted = True
        self._awake.set()
        if (self._task is None or self._task.done()) and not self._ending.is_set():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Do what is wanted by now, once: where it fails, it is left undone."""
        self._ending.set()
        self._awake.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        delay = _FIRST_DELAY
        while await self._awake.wait():
            self._awake.clear()
            started = self._clock()
            if not self._wanted or await self._succeeds(delay):
                rest, delay = _REST * (self._clock() - started), _FIRST_DELAY
            else:
                rest, delay = delay, min(2 * delay, _LONGEST_DELAY)
                self._awake.set()
            if self._ending.is_set():
                return
            await self._pause(self._ending, rest)

    async def _succeeds(self, delay: float) -> bool:
        """Clear once; whether nothing failed."""
        self._wanted = False
        try:
            await self._clear()
        except Exception as error:  # boundary: whatever failed, what was deleted must not stay
            self._wanted = True
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
