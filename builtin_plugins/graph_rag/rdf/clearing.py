"""Removing what was deleted from stores that are derived from rows, until it is done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

log = logging.getLogger("platform.graph_rag")

_FIRST_DELAY = 1.0
_LONGEST_DELAY = 60.0


class Clearing:
    """Calls `clear` in the background after each change, and again with growing pauses where it fails.

    What a process leaves undone when it ends, the next one does: each begins with a call.
    """

    def __init__(
        self, store: str, clear: Callable[[], Awaitable[None]], failures: tuple[type[Exception], ...]
    ) -> None:
        self._name = store
        self._clear = clear
        self._failures = failures
        self._wanted = asyncio.Event()
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def note(self, _graph: str = "") -> None:
        """Something was written or dropped."""
        self._wanted.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Finish what is under way."""
        self._ending.set()
        self._wanted.set()
        if self._task is not None:
            await self._task

    async def _work(self) -> None:
        delay = _FIRST_DELAY
        while await self._wanted.wait():
            self._wanted.clear()
            try:
                await self._clear()
                delay = _FIRST_DELAY
            except self._failures as error:
                self._wanted.set()
                log.warning(
                    "deleted graphs could not be removed from %s (%s); nobody can ask for them, and the "
                    "removal is tried again in %d s",
                    self._name,
                    type(error).__name__,
                    delay,
                )
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), delay)
                delay = min(2 * delay, _LONGEST_DELAY)
            if self._ending.is_set():
                return
