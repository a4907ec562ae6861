"""Uses of licenses, counted in memory and written together, to avoid a write for each call.

A killed process loses the uses of the last seconds; nothing is charged by them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TypeVar

from sqlalchemy import update
from sqlalchemy.exc import SQLAlchemyError

from kernel.sdk import Platform, ResourceKey, Unit, lasting, utc_now

from ..models import License
from ..settings import LicensingSettings

T = TypeVar("T")

log = logging.getLogger("platform.licensing")


class Usage:
    """What this process has counted but not written yet."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._waiting: dict[str, tuple[int, datetime]] = {}
        self._writing = asyncio.Lock()
        self._writes = 0
        self._stopping = asyncio.Event()

    def count(self, license_id: str) -> None:
        """Count one more use, now."""
        self._waiting[license_id] = (self.pending(license_id) + 1, utc_now())

    def pending(self, license_id: str) -> int:
        """Uses that are not written yet."""
        return self._waiting.get(license_id, (0,))[0]

    def last(self, license_id: str) -> datetime | None:
        """The time of the latest use."""
        found = self._waiting.get(license_id)
        return None if found is None else found[1]

    async def between_writes(self, read: Callable[[], Awaitable[T]]) -> T:
        """The result of `read`, with no write in between: each use is either in a row or `pending`."""
        while True:
            async with self._writing:
                writes = self._writes
            found = await read()
            if writes == self._writes:
                return found

    async def flush(self) -> None:
        """Write the counts; those that can't be written are kept for the next time."""
        async with self._writing:
            if self._waiting:
                self._writes += 1
                await self._write()

    async def _write(self) -> None:
        waiting, self._waiting = self._waiting, {}
        try:
            await self._platform.database.write(_add, waiting)
        except (SQLAlchemyError, OSError) as error:
            log.warning("uses of licenses can't be written: %s", type(error).__name__)
            for license_id, (number, moment) in waiting.items():
                known, latest = self._waiting.get(license_id, (0, moment))
                self._waiting[license_id] = (known + number, latest)

    async def _write_now_and_then(self) -> None:
        pause = self._platform.settings_of(LicensingSettings).flush_seconds
        while not self._stopping.is_set():
            try:
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            except TimeoutError:
                pass
            await self.flush()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Usage]:
        """Write every few seconds within the block, and at its end."""
        task = lasting("licensing usage", self._write_now_and_then)
        try:
            yield self
        finally:
            self._stopping.set()
            await task


def _add(unit: Unit, waiting: dict[str, tuple[int, datetime]]) -> None:
    for license_id, (number, moment) in sorted(waiting.items()):
        change = update(License).where(License.id == license_id)
        unit.session.execute(change.values(usage_count=License.usage_count + number, last_used_at=moment))


USAGE: ResourceKey[Usage] = ResourceKey("licensing usage")
