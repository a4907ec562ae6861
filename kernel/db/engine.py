"""The database: read sessions, and units of work that commit, then publish.

SQLite runs in WAL mode with one writer connection per process (its pool queues the writers fairly, and
`BEGIN IMMEDIATE` queues them across processes); every acknowledged write is synced (`synchronous=FULL`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel
from sqlalchemy import event, text
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from kernel.errors import FAULTS
from kernel.events import Event

if TYPE_CHECKING:
    from kernel.jobs.declarations import JobRef, Lane
    from kernel.notices import Notices

log = logging.getLogger("platform.db")

AfterCommit = Callable[[], Awaitable[None]]
Enqueue = Callable[["Unit", "JobRef", BaseModel, str | None, "Lane | None"], Awaitable[str]]
Publish = Callable[[Sequence[Event]], Awaitable[None]]
T = TypeVar("T")

_NOT_FOR_ASYNCPG = frozenset({"connect_timeout", "channel_binding"})


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end even if the caller is cancelled meanwhile; the cancellation comes after it."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        if task.done() and not task.cancelled() and task.exception() is not None:
            log.error("work for a client that left failed", exc_info=task.exception())
        raise


class Unit:
    """One unit of work: a session in one transaction, and what is to happen once it is committed."""

    def __init__(self, session: AsyncSession, database: Database) -> None:
        self.session = session
        self.database = database
        self.events: list[Event] = []
        self._after_commit: list[AfterCommit] = []

    def emit(self, event: Event) -> None:
        """Deliver `event` to `on_event` after the commit; a durable one is stored in this transaction."""
        self.events.append(event)

    def after_commit(self, callback: AfterCommit) -> None:
        """Await `callback()` once the transaction is committed; never when it is rolled back."""
        self._after_commit.append(callback)

    async def lock(self, name: str) -> None:
        """Wait until no other unit holds `name`, and hold it until the end of this one, in every process.

        For guards that look at several rows ("the last owner"). Who takes two locks takes them in the order
        of their names. SQLite's write transaction excludes all others already.
        """
        if not self.database.is_sqlite:
            key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
            await self.session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})

    async def enqueue(
        self, job: JobRef, payload: BaseModel, *, job_id: str | None = None, lane: Lane | None = None
    ) -> str:
        """Write a durable job in this transaction; answers its id. The same id twice is one job.

        `lane` is where it waits, if not in the job's own.
        """
        return await self.database.enqueue(self, job, payload, job_id, lane)

    async def notify(self, topic: str, key: str) -> None:
        """Tell every process, after the commit, that `key` of `topic` changed (see `kernel.notices`)."""
        from kernel.notices import write_notice

        await write_notice(self, topic, key)

    async def run_after_commit(self) -> None:
        """Run the callbacks; an error in one is logged and stops no other: the commit stands."""
        for callback in self._after_commit:
            try:
                await callback()
            except FAULTS:  # the transaction is durable already, the caller must hear of its success
                log.exception("a callback after commit failed")


class BrokenReferences(Exception):
    """A schema change leaves rows without what they refer to."""


class Database:
    """Engines and sessions of one platform. `enqueue` and `publish` are wired in at boot."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")
        self._reader, self._writer = (
            _sqlite_engines(url) if self.is_sqlite else _postgres_engines(url, pool_size)
        )
        self.enqueue: Enqueue = _no_jobs
        self.publish: Publish = _publish_nowhere
        self.has_listeners: Callable[[], bool] = lambda: True
        self.notices: Notices | None = None

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self._writer.dialect.name

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """A session that only reads, in one snapshot on SQLite; on SQLite a write through it fails."""
        async with AsyncSession(self._reader, expire_on_commit=False, autoflush=False) as session:
            yield session

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncSession]:
        """A session that only reads; all its statements see one state of the database."""
        async with self.read() as session:
            if not self.is_sqlite:
                await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            yield session

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        """A unit of work: committed when the block ends, rolled back when it raises; then published."""
        async with AsyncSession(self._writer, expire_on_commit=False) as session:
            unit = Unit(session, self)
            await session.begin()
            try:
                yield unit
            except BaseException:
                await uninterrupted(session.rollback())
                raise
            # A client that leaves cancels its request: between a commit and its callbacks there is no stop.
            await uninterrupted(self._complete(unit))

    async def _complete(self, unit: Unit) -> None:
        await self._store_durable_events(unit)
        await unit.session.commit()
        await unit.run_after_commit()
        await self.publish([event for event in unit.events if not event.durable])

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """A bare connection in a write transaction."""
        async with self._writer.begin() as connection:
            yield connection

    @asynccontextmanager
    async def schema_change(self) -> AsyncIterator[AsyncConnection]:
        """A connection in a write transaction in which tables may change. Raises BrokenReferences.

        SQLite alters a table by dropping and rebuilding it, which would delete the rows that refer to it: its
        foreign keys rest meanwhile, and are checked as a whole before the commit.
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
        # Past SQLAlchemy, which would open a transaction first: inside one the switch does nothing.
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
                    f"rows of '{broken[0]}' refer to rows of '{broken[2]}' that are not there"
                )

    @asynccontextmanager
    async def session_connection(self) -> AsyncIterator[AsyncConnection]:
        """A connection outside any transaction, for locks and statements that need one of their own."""
        autocommit = self._reader.execution_options(isolation_level="AUTOCOMMIT")
        async with autocommit.connect() as connection:
            yield connection

    async def ping(self) -> None:
        """Raise when the database does not answer."""
        async with self.read() as session:
            await session.execute(text("SELECT 1"))

    async def scrub(self) -> None:
        """Move what was deleted out of SQLite's write-ahead log; PostgreSQL vacuums by itself.

        Waits for readers that still see it, at most for the busy timeout.
        """
        if not self.is_sqlite:
            return
        async with self.session_connection() as connection:
            busy = (await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")).scalar()
        if busy:
            log.warning("a long reader keeps deleted rows in the write-ahead log until the next checkpoint")

    async def close(self) -> None:
        """Close every connection; an open one would keep the process alive."""
        await self._writer.dispose()
        if self._reader is not self._writer:
            await self._reader.dispose()

    async def _store_durable_events(self, unit: Unit) -> None:
        from kernel.jobs.events import store_event

        for item in unit.events:
            if item.durable and self.has_listeners():
                await store_event(unit, item)


def _postgres_engines(url: str, pool_size: int) -> tuple[AsyncEngine, AsyncEngine]:
    address = make_url(url)
    engine = create_async_engine(
        address.set(query={}),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args=_options(address),
    )
    return engine, engine


def _options(address: URL) -> dict[str, Any]:
    """The options of a PostgreSQL address as asyncpg takes them; addresses spell them as libpq does."""
    query = {name: value for name, value in address.query.items() if name not in _NOT_FOR_ASYNCPG}
    options: dict[str, Any] = {"dsn": "postgresql:///?" + urlencode(query)} if query else {}
    if "connect_timeout" in address.query:
        options["timeout"] = float(str(address.query["connect_timeout"]))
    return options


def _sqlite_engines(url: str) -> tuple[AsyncEngine, AsyncEngine]:
    shared: dict[str, Any] = {"poolclass": AsyncAdaptedQueuePool, "hide_parameters": True}
    reader = create_async_engine(url, pool_size=8, max_overflow=8, **shared)
    writer = create_async_engine(url, pool_size=1, max_overflow=0, pool_timeout=60, **shared)
    _prepare_sqlite(reader, begin="BEGIN", query_only=True)
    _prepare_sqlite(writer, begin="BEGIN IMMEDIATE", query_only=False)
    return reader, writer


def _prepare_sqlite(engine: AsyncEngine, *, begin: str, query_only: bool) -> None:
    pragmas = ["busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"]
    pragmas += ["secure_delete=ON", "temp_store=MEMORY", "cache_size=-16000"]
    pragmas += ["query_only=ON"] if query_only else []

    @event.listens_for(engine.sync_engine, "do_connect")
    def _try(_dialect: Any, _record: Any, arguments: Any, _options: Any) -> None:
        # The thread that aiosqlite starts for a file that can't be opened reports to a loop that may be gone.
        sqlite3.connect(arguments[0]).close()

    @event.listens_for(engine.sync_engine, "connect")
    def _connect(dbapi_connection: Any, _record: Any) -> None:
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        for pragma in pragmas:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)


async def _no_jobs(
    _unit: Unit, job: JobRef, _payload: BaseModel, _job_id: str | None, _lane: Lane | None
) -> str:
    raise RuntimeError(f"job '{job.name}' can't be enqueued: this platform was opened without jobs")


async def _publish_nowhere(_events: Sequence[Event]) -> None:
    return None
