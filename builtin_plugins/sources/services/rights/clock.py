"""What begins the readings of permissions that are due: more often than schedules, which count minutes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.sources.models import SourceRecord
from builtin_plugins.sources.services.rights.refreshing import begin_refreshes
from kernel.sdk import Platform, ResourceKey, lasting, shared_moment

_EVERY_SECONDS: Final = 10.0


class RightsClock:
    """Looks every ten seconds whether the permissions at a source are to be read again."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            if await self._platform.database.read(_is_due):
                await self._platform.database.write(begin_refreshes)


def _is_due(session: Session) -> bool:
    due = SourceRecord.is_guarded & (SourceRecord.rights_due_at <= shared_moment(session))
    return (
        session.scalar(select(SourceRecord.id).where(due, SourceRecord.leaving.is_(None)).limit(1))
        is not None
    )


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
