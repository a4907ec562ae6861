"""Counters that several API processes share through the platform's database, if there is no Redis."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import SQLAlchemyError

from builtin_plugins.shared_counters.models import RateWindow
from kernel.sdk import Database, Unit, set_within

log = logging.getLogger("platform.cache")

_INTERVAL = 0.1
_PATIENCE = 2.0
_LAST_TRY = 5.0
_REST = 1.0
_WARN_EVERY = 60.0
_SWEEP_EVERY = 60.0
_MOST_KEYS = 50_000  # in this process; beyond that, all are dropped, which fails open
_MOST_ROWS = 200_000  # in the table, checked once a minute
_ROWS_AT_ONCE = 1_000  # per transaction; the rest waits for the next
_SHORT = 3600  # windows that end within an hour; those are what a flood makes

_TABLE: Any = RateWindow.__table__
_UNAVAILABLE = (SQLAlchemyError, OSError, TimeoutError)


class _Window:
    """A key in a window: the sum last read from the table, and what this process has yet to add to it."""

    __slots__ = ("end", "key", "own", "stored")

    def __init__(self, key: str, end: int) -> None:
        self.key = key
        self.end = end
        self.stored = 0
        self.own = 0

    @property
    def count(self) -> int:
        """The count, as far as this process knows."""
        return self.stored + self.own


class SharedCounters:
    """Counts in memory and adds the differences to a table, which returns the sums of all processes.

    The first call after a pause is written at once, later ones ten times a second with many keys per
    transaction; without calls, nothing runs. Windows follow the clock, so all processes of a machine end them
    together.

    The overshoot: a process learns of the others' calls when it writes its own. Once all processes together
    have reached a limit, each still admits what it receives until its second write after that is done (two
    intervals and two transactions, about 0.25 s), and refuses the rest of the window. A shorter burst may use
    up the limit once in each process, never more.

    While the database does not answer, each process counts alone. A transaction whose outcome was lost with
    the connection is repeated: its calls may count twice until their window ends.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._windows: dict[str, _Window] = {}
        self._changed: set[_Window] = set()
        self._flushing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._warned: float | None = None
        self._swept: float | None = None

    async def increment(self, key: str, window: int) -> tuple[int, int]:
        now = time.time()
        end = (int(now // window) + 1) * window
        counter = self._windows.get(key)
        if counter is None or counter.end != end:
            counter = self._begin(key, end, now)
        counter.own += 1
        self._changed.add(counter)
        if self._flushing is None and not self._closing.is_set():
            self._flushing = asyncio.create_task(self._flush_while_changing(), name="shared-counters")
        return counter.count, max(1, int(end - now + 0.999))

    async def count(self, key: str, window: int) -> int:
        """The count of all processes; reads the table, because only another process may know the key."""
        end = (int(time.time() // window) + 1) * window
        counter = self._windows.get(key)
        here = counter.count if counter is not None and counter.end == end else 0
        query = select(_TABLE.c.count).where(_TABLE.c.key_hash == _hash(key), _TABLE.c.window_end == end)
        try:
            async with self._patience():
                return max(here, await self._database.read(lambda session: session.scalar(query)) or 0)
        except _UNAVAILABLE as error:
            self._warn(error)
            return here

    @property
    def size(self) -> int:
        """How many keys are being counted here."""
        return len(self._windows)

    async def ping(self) -> None:
        """Never fails: without the database, each process counts alone; the database's check reports that."""

    async def close(self) -> None:
        """Write what isn't written yet: one last try, bounded in time if the database hangs."""
        self._closing.set()
        if self._flushing is not None:
            done, hanging = await asyncio.wait([self._flushing], timeout=_LAST_TRY)
            for task in hanging:
                task.cancel()
            for task in done:
                task.result()

    def _begin(self, key: str, end: int, now: float) -> _Window:
        if len(self._windows) >= _MOST_KEYS:
            self._windows = {k: w for k, w in self._windows.items() if w.end > now}
            if len(self._windows) > _MOST_KEYS // 2:
                self._windows.clear()
                self._changed.clear()
        counter = self._windows[key] = _Window(key, end)
        return counter

    async def _flush_while_changing(self) -> None:
        try:
            while self._changed:
                last = self._closing.is_set()
                pause = _INTERVAL if await self._flush() else _REST
                if last:
                    break
                await set_within(self._closing, pause)
        finally:
            self._flushing = None

    async def _flush(self) -> bool:
        """Add the changes to the table and read the sums; returns whether the database accepted them."""
        now = time.time()
        batch = list(islice(self._changed, _ROWS_AT_ONCE))
        self._changed.difference_update(batch)
        current = [(window, window.own) for window in batch if window.end > now]
        try:
            async with self._patience():
                sums = await self._add(current)
        except _UNAVAILABLE as error:
            self._warn(error)
            if len(self._changed) < _MOST_KEYS:
                self._changed.update(window for window, _ in current)
            return False
        for window, added in current:
            window.stored = sums[_hash(window.key), window.end]
            window.own -= added
        await self._sweep()
        return True

    async def _add(self, current: Sequence[tuple[_Window, int]]) -> dict[tuple[str, int], int]:
        if not current:
            return {}
        rows = [
            {"key_hash": _hash(window.key), "window_end": window.end, "count": added}
            for window, added in current
        ]
        # In the same order everywhere; otherwise, two processes could deadlock.
        rows.sort(key=lambda row: (row["key_hash"], row["window_end"]))
        insert: Any = (sqlite_insert if self._database.is_sqlite else postgresql_insert)(_TABLE)
        statement = insert.on_conflict_do_update(
            index_elements=[_TABLE.c.key_hash, _TABLE.c.window_end],
            set_={"count": _TABLE.c.count + insert.excluded.count},
        ).returning(_TABLE.c.key_hash, _TABLE.c.window_end, _TABLE.c.count)
        sums = await self._database.write(lambda unit: unit.session.execute(statement, rows).all())
        return {(key_hash, end): count for key_hash, end, count in sums}

    async def _sweep(self) -> None:
        """Once a minute, remove past windows; in a flood, all that end soon (fails open)."""
        if self._swept is not None and time.monotonic() - self._swept < _SWEEP_EVERY:
            return
        self._swept = time.monotonic()
        try:
            async with self._patience():
                await self._database.write(_remove_old)
        except _UNAVAILABLE as error:
            self._warn(error)

    def _patience(self) -> asyncio.Timeout:
        """A time limit for a silent server; SQLite has its own, and abandoned work would keep its lock."""
        return asyncio.timeout(None if self._database.is_sqlite else _PATIENCE)

    def _warn(self, error: BaseException) -> None:
        """Log a warning once a minute; one per try would flood the log."""
        if self._warned is None or time.monotonic() - self._warned > _WARN_EVERY:
            self._warned = time.monotonic()
            log.warning(
                "each process counts rate limits on its own until the database is back: %s",
                type(error).__name__,
            )


def _remove_old(unit: Unit) -> None:
    """Remove past windows by the database's clock: a machine ahead of it must not remove current ones."""
    now = int(unit.now().timestamp())
    unit.lock("rate-windows")
    _remove_until(unit, now)
    if (unit.session.scalar(select(func.count()).select_from(_TABLE)) or 0) > _MOST_ROWS:
        _remove_until(unit, now + _SHORT)


def _remove_until(unit: Unit, end: int) -> None:
    unit.session.execute(delete(_TABLE).where(_TABLE.c.window_end <= end))


def _hash(key: str) -> str:
    """A hash of the key, which contains client addresses and has any length; the table needs neither."""
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
