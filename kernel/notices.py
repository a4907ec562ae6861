"""Notices: "this changed", heard by every process within a moment of the commit.

A notice is a row written in the transaction of the change itself, so it can't be lost or come early; every
process looks for new rows several times a second, on SQLite only after somebody wrote anything at all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.exc import SQLAlchemyError

from kernel.db.base import utc_now
from kernel.db.changes import Changes
from kernel.db.engine import Database, Unit
from kernel.db.tables import Notice
from kernel.errors import FAULTS

log = logging.getLogger("platform.notices")

INTERVAL = 0.2
_KEEP = timedelta(hours=1)
_SWEEP_EVERY = 3000
# Ids are not in the order of commits on PostgreSQL: look back this far, and remember what was delivered.
_OVERLAP = 200

Listener = Callable[[str], None]


async def write_notice(unit: Unit, topic: str, key: str) -> None:
    """Add a notice to the unit; this process hears of it right after the commit."""
    unit.session.add(Notice(topic=topic, key=key))
    notices = unit.database.notices
    if notices is not None:
        unit.after_commit(lambda: notices.deliver(topic, key))


class Notices:
    """Delivers notices of all processes to this one's listeners."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changes = Changes(database.url)
        self._listeners: dict[str, list[Listener]] = {}
        self._last = 0
        self._seen: set[int] = set()
        self._rounds = 0
        self._task: asyncio.Task[None] | None = None

    def listen(self, topic: str, listener: Listener) -> None:
        """Call `listener(key)` for each notice of `topic`; it must be quick and may hear twice."""
        self._listeners.setdefault(topic, []).append(listener)

    async def deliver(self, topic: str, key: str) -> None:
        """Tell this process's listeners."""
        for listener in self._listeners.get(topic, ()):
            try:
                listener(key)
            except FAULTS:  # boundary: one listener must not silence the others
                log.exception("a listener of '%s' failed", topic)

    async def start(self) -> None:
        """Begin to look for notices of other processes."""
        async with self._database.read() as session:
            self._last = int(await session.scalar(select(func.max(Notice.id))) or 0)
            recent = await session.scalars(select(Notice.id).where(Notice.id > self._last - _OVERLAP))
            self._seen = set(recent)
        self._task = asyncio.create_task(self._run(), name="notices")

    async def stop(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._changes.close()

    async def _run(self) -> None:
        reading = True
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                if self._changes.since_last_time() or not reading:
                    await self._look()
                await self._sweep()
            except (SQLAlchemyError, OSError) as error:
                if reading:
                    log.warning("notices can't be read until the database is back: %s", type(error).__name__)
                reading = False
            else:
                reading = True

    async def _look(self) -> None:
        async with self._database.read() as session:
            query = select(Notice.id, Notice.topic, Notice.key).where(Notice.id > self._last - _OVERLAP)
            rows = (await session.execute(query.order_by(Notice.id))).all()
        fresh = [row for row in rows if row.id not in self._seen]
        for row in fresh:
            await self.deliver(row.topic, row.key)
        self._seen = {row.id for row in rows}
        self._last = max(self._seen, default=self._last)

    async def _sweep(self) -> None:
        self._rounds += 1
        if self._rounds % _SWEEP_EVERY == 0:
            async with self._database.unit() as unit:
                await unit.session.execute(delete(Notice).where(Notice.created_at < utc_now() - _KEEP))
