"""What begins the readings of permissions that are due: more often than schedules, which count minutes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.sources.models import SourceRecord
from builtin_plugins.sources.services.rights.refreshing import begin_refreshes
from kernel.sdk import Platform, ResourceKey, lasting, shared_moment

_FEWEST_SECONDS, _MOST_SECONDS = 0.5, 10.0


class RightsClock:
    """Begins readings when they are due; what became due meanwhile is found within ten seconds."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def run(self) -> None:
        """Until it is cancelled."""
        seconds = _MOST_SECONDS
        while True:
            await asyncio.sleep(seconds)
            seconds = await self._platform.database.read(_seconds_left)
            if seconds <= 0:
                await self._platform.database.write(begin_refreshes)
            seconds = min(max(seconds, _FEWEST_SECONDS), _MOST_SECONDS)


def _seconds_left(session: Session) -> float:
    """Until the next reading is due; more than the clock waits if there is none."""
    mine = SourceRecord.is_guarded & SourceRecord.leaving.is_(None)
    due = session.scalar(select(func.min(SourceRecord.rights_due_at)).where(mine))
    if due is None:
        return _MOST_SECONDS
    now = session.scalars(select(shared_moment(session))).one()
    return float((due - now).total_seconds())


RIGHTS_CLOCK: ResourceKey[RightsClock] = ResourceKey("readings of permissions")


@asynccontextmanager
async def open_clock(platform: Platform) -> AsyncIterator[RightsClock]:
    """The resource `RIGHTS_CLOCK`."""
    clock = RightsClock(platform)
    task = lasting("permissions at sources", clock.run)
    try:
        yield clock
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
