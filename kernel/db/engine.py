"""The database: units that read or write, then commit and publish; connections for schema changes.

SQLite runs in WAL mode; every acknowledged write is synced (`synchronous=FULL`).
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import AsyncAdaptedQueuePool

from kernel.db.outages import Outage
from kernel.db.outbox import NoOutbox, Outbox
from kernel.db.postgres import PostgresUnits, postgres_engine, unpooled_engine
from kernel.db.sqlite import SqliteUnits, prepare_sqlite
from kernel.db.units import Unit as Unit
from kernel.process.machine_faults import machine_fault, public_error

log = logging.getLogger("platform.db")

_SCRUB_PATIENCE = 30.0
_SCRUB_PAUSE = 0.2

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseClosed(RuntimeError):
    """The database was used after it was closed."""

    def __init__(self) -> None:
        super().__init__("the database is closed")


class BrokenReferences(Exception):
    """A schema change leaves rows with dangling references."""


class Database:
    """A platform's database: units that read and write, and bare connections."""

    def __init__(self, url: str, outbox: Outbox | None = None, *, pool_size: int = 10) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")
        self._outbox = outbox or NoOutbox()
        self._closed = False
        self.damaged = False
        """Whether an error or a check has shown that the database is damaged; until the next start."""
        self._units: SqliteUnits | PostgresUnits
        if self.is_sqlite:
            self._lasting, self._writer = _sqlite_engines(url)
            self._units = SqliteUnits(url, self._outbox)
        else:
            self._lasting, self._writer = unpooled_engine(url), postgres_engine(url, pool_size)
            self._units = PostgresUnits(self._writer, self._outbox)

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self._writer.dialect.name

    def read(
        self, fn: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        """Run the plain function `fn(session, …)`, which only reads; returns its result.

        On SQLite it sees one snapshot, a write fails, and it runs in a thread: it must not touch what belongs
        to the event loop. Raises DatabaseClosed.
        """
        return self._open.read(fn, *args, **kwargs)

    def snapshot(
        self, fn: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        """Like `read`, but all statements see one state of the database on PostgreSQL, too.

        For longer reads: on SQLite, they have threads of their own.
        """
        return self._open.snapshot(fn, *args, **kwargs)

    async def write(self, fn: Callable[Concatenate[Unit, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the plain function `fn(unit, …)` in one transaction; returns once it is durable and published.

        An error that it raises rolls back. If the caller is cancelled, a unit still finishes on SQLite once
        it has begun, on PostgreSQL once it is being committed. Raises DatabaseClosed.
        """
        return await self._open.write(fn, *args, **kwargs)

    def outage(self, log: logging.Logger, what: str) -> Outage:
        """For work that is tried again until the database is back; `what` says what is not done meanwhile."""
        return Outage(log, what)

    @property
    def _open(self) -> SqliteUnits | PostgresUnits:
        if self._closed:
            raise DatabaseClosed
        return self._units

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """A bare connection in a write transaction."""
        async with self._writer.begin() as connection:
            yield connection

    @asynccontextmanager
    async def schema_change(self) -> AsyncIterator[AsyncConnection]:
        """A connection in a write transaction for schema changes. Raises BrokenReferences.

        SQLite alters a table by dropping and rebuilding it, which would delete the rows that refer to it:
        meanwhile foreign keys are off; all are checked before the commit.
        """
        async with (
            self._writer.connect() as connection,
            self._resting_references(connection),
            connection.begin(),
        ):
            yield connection
            await self._check_references(connection)

    @asynccontextmanager
    async def _resting_references(self, connection: AsyncConnection) -> AsyncIterator[None]:
        if not self.is_sqlite:
            yield
            return
        # Bypasses SQLAlchemy, which would begin a transaction first: inside one, the pragma has no effect.
        driver: Any = (await connection.get_raw_connection()).driver_connection
        await driver.execute("PRAGMA foreign_keys=OFF")
        try:
            yield
        finally:
            await driver.execute("PRAGMA foreign_keys=ON")

    async def _check_references(self, connection: AsyncConnection) -> None:
        if self.is_sqlite:
            broken: Any = (await connection.exec_driver_sql("PRAGMA foreign_key_check")).first()
            if broken is not None:
                raise BrokenReferences(
                    f"rows of '{broken[0]}' refer to rows of '{broken[2]}' that don't exist"
                )

    @asynccontextmanager
    async def session_connection(self) -> AsyncIterator[AsyncConnection]:
        """A connection outside any transaction, for locks and for statements that can't run in one.

        On PostgreSQL it is not from the pool and is closed afterwards.
        """
        autocommit = self._lasting.execution_options(isolation_level="AUTOCOMMIT")
        async with autocommit.connect() as connection:
            yield connection

    async def ping(self) -> None:
        """Raise an error if the database does not answer."""
        await self.read(_ping)

    def note(self, error: BaseException) -> None:
        """Remember that the database is damaged, if that is what an error says."""
        self.damaged = self.damaged or machine_fault(error) == "damaged"

    def require_sound(self) -> None:
        """Raise Unavailable if the database is known to be damaged, before more is entrusted to it."""
        if self.damaged:
            raise public_error("damaged")

    async def find_damage(self) -> str | None:
        """Look for damage in SQLite's whole file, which takes about a second per GB; what is wrong, if
        anything. PostgreSQL has tools of its own.
        """
        if not self.is_sqlite:
            return None
        try:
            async with self.session_connection() as connection:
                rows = (await connection.exec_driver_sql("PRAGMA quick_check(3)")).scalars().all()
        except DBAPIError as error:
            if machine_fault(error) != "damaged":
                raise
            rows = [str(error.orig)]
        return None if list(rows) == ["ok"] else "; ".join(map(str, rows))

    async def is_read_only(self) -> bool:
        """Whether PostgreSQL refuses writes, as a standby does; SQLite can write if its disk can."""
        return not self.is_sqlite and await self.read(_takes_no_writes)

    async def scrub(self) -> None:
        """Purge deleted data from SQLite's write-ahead log; PostgreSQL vacuums by itself.

        Waits at most 30 s for readers that still see it, such as a backup; each try blocks writers for at
        most 20 ms.
        """
        if not self.is_sqlite:
            return
        until = time.monotonic() + _SCRUB_PATIENCE
        async with self.session_connection() as connection:
            await connection.exec_driver_sql("PRAGMA busy_timeout=20")
            try:
                while (await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")).scalar():
                    if time.monotonic() > until:
                        log.warning("deleted rows stay in the write-ahead log until a long read ends")
                        break
                    await asyncio.sleep(_SCRUB_PAUSE)
            finally:
                if not connection.invalidated:  # it is if its statement was cancelled
                    await connection.exec_driver_sql("PRAGMA busy_timeout=30000")

    async def close(self) -> None:
        """Finish running units and close every connection; an open one would keep the process alive."""
        self._closed = True
        await self._units.close()
        await self._writer.dispose()
        await self._lasting.dispose()


def _ping(session: Session) -> None:
    session.execute(text("SELECT 1"))


def _takes_no_writes(session: Session) -> bool:
    setting: str | None = session.scalar(text("SELECT current_setting('transaction_read_only')"))
    return setting == "on"


def _sqlite_engines(url: str) -> tuple[AsyncEngine, AsyncEngine]:
    shared: dict[str, Any] = {"poolclass": AsyncAdaptedQueuePool, "hide_parameters": True}
    reader = create_async_engine(url, pool_size=8, max_overflow=8, **shared)
    writer = create_async_engine(url, pool_size=1, max_overflow=0, pool_timeout=60, **shared)
    for engine in (reader, writer):
        event.listen(engine.sync_engine, "do_connect", _try)
    prepare_sqlite(reader.sync_engine, "BEGIN", "query_only=ON")
    prepare_sqlite(writer.sync_engine, "BEGIN IMMEDIATE")
    return reader, writer


def _try(_dialect: Any, _record: Any, arguments: Any, _options: Any) -> None:
    # If a file can't be opened, aiosqlite's thread reports that to an event loop that may be closed by then.
    sqlite3.connect(arguments[0]).close()
