"""Uses of licenses, counted in memory and written together, to avoid a write for each call.

A killed process loses the uses of the last seconds; nothing is charged by them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple, TypeVar

from sqlalchemy import update

from kernel.sdk import Platform, ResourceKey, Tally, Unit, repeating, utc_now

from ..models import License
from ..settings import LicensingSettings

T = TypeVar("T")


class Uses(NamedTuple):
    """How often a license was used, and the latest time."""

    number: int
    last: datetime


def _sum(earlier: Uses, later: Uses) -> Uses:
    return Uses(earlier.number + later.number, later.last)


class LicenseUsage:
    """What this process has counted but not written yet."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._waiting: Tally[str, Uses] = Tally(platform.database, "uses of licenses", _write, _sum)
        self._writing = asyncio.Lock()
        self._writes = 0

    def count(self, license_id: str) -> None:
        """Count one more use, now."""
        self._waiting.add(license_id, Uses(1, utc_now()))

    def pending(self, license_id: str) -> int:
        """Uses that are not written yet."""
        uses = self._waiting.get(license_id)
        return 0 if uses is None else uses.number

    def last(self, license_id: str) -> datetime | None:
        """The time of the latest use."""
        uses = self._waiting.get(license_id)
        return None if uses is None else uses.last

    async def between_writes(self, read: Callable[[], Awaitable[T]]) -> T:
        """The result of `read`, with no write in between: each use is either in a row or `pending`."""
        while True:
            async with self._writing:
                writes = self._writes
            result = await read()
            if writes == self._writes:
                return result

    async def flush(self) -> None:
        """Write the counts; those that can't be written are kept for the next time."""
        async with self._writing:
            if self._waiting:
                self._writes += 1
                await self._waiting.flush()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LicenseUsage]:
        """Write every few seconds within the block, and at its end."""
        seconds = self._platform.settings_of(LicensingSettings).flush_seconds
        async with repeating("licensing usage", self.flush, seconds):
            yield self


def _write(unit: Unit, waiting: Mapping[str, Uses]) -> None:
    for license_id, (number, moment) in sorted(waiting.items()):
        change = update(License).where(License.id == license_id)
        unit.session.execute(change.values(usage_count=License.usage_count + number, last_used_at=moment))


USAGE: ResourceKey[LicenseUsage] = ResourceKey("licensing usage")
