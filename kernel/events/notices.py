"""Notices: "this changed", delivered to every process within moments of the commit.

A notice is a row written in the transaction of the change itself, so it can't be lost or come early. A
process that commits one wakes the others (`kernel.db.wakeups`), which then look for new rows; in case a
wake-up is lost, they also look every few seconds, which takes up to 0.2 ms of processor time on SQLite.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.orm import Session

from kernel.db.engine import Database, Unit
from kernel.db.tables import Notice
from kernel.db.wakeups import Wakeups, ended
from kernel.errors import ANY_ERROR
from kernel.libs.background import lasting, set_within
from kernel.libs.prepared import Prepared

log = logging.getLogger("platform.notices")

_KEEP = timedelta(hours=1)
# Seconds between checks, however often this process is woken.
_REST = 0.02
_AFTER_AN_ERROR = 0.2
# On PostgreSQL, ids are not in the order of commits: look back this far, and remember what was delivered.
_OVERLAP = 200

_COLUMNS: tuple[Any, ...] = (Notice.id, Notice.topic, Notice.key)
_AFTER = Prepared(select(*_COLUMNS).where(Notice.id > bindparam("last")).order_by(Notice.id))

Listener = Callable[[str], None]


class Notices:
    """Delivers the notices of all processes to this one's listeners."""

    def __init__(self, wakeups: Wakeups) -> None:
        self._wakeups = wakeups
        self._woken = asyncio.Event()
        self._telling: asyncio.Handle | None = None
        self._listeners: dict[str, list[Listener]] = {}
        self._last = 0
        self._recent_ids: set[int] = set()
        self._own: set[int] = set()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    def listen(self, topic: str, listener: Listener) -> None:
        """Call `listener(key)` once for each notice of `topic`; it must be quick."""
        self._listeners.setdefault(topic, []).append(listener)

    @contextmanager
    def listening(self, topic: str, listener: Listener) -> Iterator[None]:
        """Listen during the block."""
        self.listen(topic, listener)
        try:
            yield
        finally:
            self._listeners[topic].remove(listener)

    def deliver(self, topic: str, key: str) -> None:
        """Notify this process's listeners."""
        for listener in list(self._listeners.get(topic, ())):
            try:
                listener(key)
            except ANY_ERROR:  # boundary: one listener must not silence the others
                log.exception("a listener of '%s' failed", topic)

    def committed(self, topic: str, key: str, row: int | None) -> None:
        """This process committed a notice: call its own listeners and wake the other processes.

        On PostgreSQL, the wake-up may arrive before the commit returns; then the row was already found.
        """
        if row is None or row not in self._recent_ids:
            self.deliver(topic, key)
        if row is not None:
            self._own.add(row)
        if self._telling is None:  # once for all notices of a commit
            self._telling = asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._telling = None
        self._wakeups.tell()

    async def start(self, database: Database) -> None:
        """Start looking for notices of other processes."""
        await self._wakeups.start(database, self._woken.set)
        self._last, self._recent_ids = await database.read(_latest)
        self._task = lasting("notices", partial(self._follow, database))

    async def stop(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._stopping = True
            self._woken.set()
            await ended(self._task)
        if self._telling is not None:
            self._telling.cancel()
            self._tell()
        await self._wakeups.stop()

    async def _follow(self, database: Database) -> None:
        outage = database.outage(log, "notices can't be read")
        while not self._stopping:
            await set_within(self._woken, _AFTER_AN_ERROR if outage.lasts else self._wakeups.patience)
            self._woken.clear()
            if self._stopping:
                return
            with outage.tolerated():
                await self._look(database)
            await asyncio.sleep(_REST)

    async def _look(self, database: Database) -> None:
        rows = await database.read(_AFTER.all, {"last": self._last - _OVERLAP})
        for row in rows:
            if row["id"] not in self._recent_ids and row["id"] not in self._own:
                self.deliver(row["topic"], row["key"])
        self._recent_ids = {row["id"] for row in rows}
        self._last = max(self._recent_ids, default=self._last)
        self._own = {row for row in self._own if row > self._last - _OVERLAP}


def _latest(session: Session) -> tuple[int, set[int]]:
    last = session.scalar(select(func.max(Notice.id))) or 0
    return last, set(session.scalars(select(Notice.id).where(Notice.id > last - _OVERLAP)))


def forget_old_notices(unit: Unit) -> None:
    """Remove notices that every process received long ago."""
    unit.session.execute(delete(Notice).where(Notice.created_at < unit.now() - _KEEP))
