"""Locks between all processes of an installation that outlast a transaction.

Files beside a SQLite database (`flock(2)`), session-level advisory locks on PostgreSQL. A killed process
releases both.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TextIO

from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from kernel.db.engine import Database
from kernel.db.wakeups import ended

LockName = Literal["migrating", "serving", "archiving", "restoring", "sealing"]
"""``migrating``: held to change tables. ``serving``: shared by all serving processes, and exclusive while
data is replaced. ``archiving``: held to write or remove archives. ``restoring``: held by a command that
prepares a restore. ``sealing``: held to change the key of stored secrets.
"""

_KEYS: dict[LockName, int] = {
    "migrating": 0x706C6174,
    "serving": 0x706C6175,
    "archiving": 0x706C6176,
    "restoring": 0x706C6177,
    "sealing": 0x706C6178,
}
_POLL = 0.2  # seconds


@asynccontextmanager
async def installation_lock(
    database: Database, name: LockName, *, shared: bool = False, seconds: float | None = None
) -> AsyncIterator[None]:
    """Hold the lock during the block. Raises TimeoutError if it can't be taken within `seconds`."""
    async with AsyncExitStack() as stack:
        lock = _file_lock if database.is_sqlite else _advisory_lock
        async with asyncio.timeout(seconds):
            await stack.enter_async_context(lock(database, name, shared))
        yield


@asynccontextmanager
async def _file_lock(database: Database, name: LockName, shared: bool) -> AsyncIterator[None]:
    path = Path(make_url(database.url).database or "platform.db").with_suffix(f".{name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        while not _try_flock(handle, shared):  # noqa: ASYNC110 - held by another process
            await asyncio.sleep(_POLL)
        yield


def _try_flock(handle: TextIO, shared: bool) -> bool:
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@asynccontextmanager
async def _advisory_lock(database: Database, name: LockName, shared: bool) -> AsyncIterator[None]:
    if not shared:
        async with _session_lock(database, name, shared=False):
            yield
        return
    # A restarting server or a dropped network ends sessions, and their locks with them. Serving processes
    # continue meanwhile and take the lock again as soon as they can.
    keeper = _Keeper(database, name)
    await keeper.start()
    try:
        yield
    finally:
        await keeper.stop()


class _Keeper:
    """Holds a shared lock; takes it again on a new connection whenever the old one ends."""

    def __init__(self, database: Database, name: LockName) -> None:
        self._database = database
        self._name = name
        self._wake = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take the lock; if cancelled meanwhile, it is not held."""
        has_lock = asyncio.Event()
        self._task = asyncio.create_task(self._keep(has_lock), name=f"lock {self._name}")
        waiting = asyncio.create_task(has_lock.wait())
        try:
            await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            raise
        finally:
            waiting.cancel()
        if self._task.done():
            self._task.result()  # raises the error that prevented taking it

    async def stop(self) -> None:
        """Release the lock."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await ended(self._task)

    async def _keep(self, has_lock: asyncio.Event) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                async with _session_lock(self._database, self._name, shared=True, lost=self._wake.set):
                    has_lock.set()
                    await self._wake.wait()
            except (SQLAlchemyError, OSError):
                if not has_lock.is_set():
                    raise
            if not self._stopping:
                await asyncio.sleep(_POLL)


@asynccontextmanager
async def _session_lock(
    database: Database, name: LockName, *, shared: bool, lost: Callable[[], None] | None = None
) -> AsyncIterator[None]:
    """Hold the lock in a session of its own; `lost()` is called if that session ends unexpectedly."""
    # Outside any transaction, and polled instead of awaited: building an index concurrently waits for every
    # open snapshot, including that of a statement waiting for this lock.
    kind = "_shared" if shared else ""
    async with database.session_connection() as connection:
        if lost is not None:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            driver.add_termination_listener(lambda _: lost())
        take = text(f"SELECT pg_try_advisory_lock{kind}(:key)")
        while not await connection.scalar(take, {"key": _KEYS[name]}):  # noqa: ASYNC110 - held elsewhere
            await asyncio.sleep(_POLL)
        try:
            yield
        finally:
            await _release(connection, f"SELECT pg_advisory_unlock{kind}(:key)", _KEYS[name])
            await connection.invalidate()  # takes two seconds at most, even if the server is gone


async def _release(connection: AsyncConnection, statement: str, key: int) -> None:
    """Release the lock; a server that went away has already done so."""
    with suppress(SQLAlchemyError, OSError):
        await connection.execute(text(statement), {"key": key})
