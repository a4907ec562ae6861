"""Stopping a running job that a person cancelled; a stopping worker ends its jobs in another way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Cancelled(Exception):
    """A person cancelled the job."""


class StopSignal:
    """Whether a running job was cancelled, and how its handler learns of it."""

    def __init__(self) -> None:
        self.requested = False
        self._limit: asyncio.Timeout | None = None

    def request(self) -> None:
        """Cancel the job."""
        self.requested = True
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
