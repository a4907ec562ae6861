"""Stopping a running job that a person cancelled; a stopping worker ends its jobs in another way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernel.libs.background import set_within


class Cancelled(Exception):
    """A person cancelled the job."""


class StopSignal:
    """Whether a running job was cancelled, and how its handler learns of it."""

    def __init__(self) -> None:
        self._requested = asyncio.Event()
        self._limit: asyncio.Timeout | None = None

    @property
    def requested(self) -> bool:
        """Whether a person cancelled the job."""
        return self._requested.is_set()

    def request(self) -> None:
        """Cancel the job."""
        self._requested.set()
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def stops(self) -> AsyncIterator[None]:
        """If the job is cancelled, cancel the block (CancelledError inside it) and raise Cancelled."""
        if self.requested:
            raise Cancelled
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limit = limit
                yield
        except TimeoutError:
            if limit.expired():
                raise Cancelled from None
            raise
        finally:
            self._limit = None

    async def pause(self, seconds: float) -> None:
        """Wait; ends early if the job is cancelled."""
        await set_within(self._requested, seconds)
