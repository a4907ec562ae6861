"""Turns: a few sentences and recordings at a time, first come, first served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from builtin_plugins.speech.errors import TooBusy


class SpeechTurns:
    """A turn lasts for one sentence, so a long text doesn't keep out a short one."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._most_waiting = waiting
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and keep it. Raises TooBusy when too many wait already."""
        if self._free.locked() and self._waiting >= self._most_waiting:
            raise TooBusy()
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()
