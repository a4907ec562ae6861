"""Units on SQLite: plain functions run in threads; writes share commits.

One thread does the writing: units that wait together run one after the other in
one transaction, each under its own savepoint, and are committed with one sync of the disk. Nobody sees a
result before it is durable. `BEGIN IMMEDIATE` makes processes take turns.

Short reads run in the event loop itself, others in threads. SQLite reads a row by its key in 13 µs; handing
the request to a thread and the result back takes 50 µs, or 200 µs on two idle cores, which wake each other
for the interpreter. So a function that reads with one statement (`one_statement`) is tried in the loop first
and interrupted if it takes long: a thread then reads it, now and for a while after. A single slow disk access
can't be interrupted.

SQLite's driver releases the interpreter at each row. Threads that read side by side then mostly hand it to
each other (measured: a list of ten rows costs 205 µs of processor time with one thread, 428 µs with four). So
one thread has the turn and takes the waiting reads; a long read passes the turn on to the next thread.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, Engine, RootTransaction, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from kernel.db.outbox import Outbox
from kernel.db.units import Handover, Task, Unit, checked, settle, uninterrupted
from kernel.libs.prepared import Direct, Elsewhere, Guard, is_one_statement

T = TypeVar("T")

READERS = 4
LONG = 0.005
"""Seconds after which a read no longer keeps others waiting."""

STEPS = 20_000
"""Steps of SQLite's virtual machine that a read may take in the event loop: at most a millisecond."""
_STEPS_BETWEEN = 1000  # steps between checks
_WALL = 0.05  # seconds, if the disk is slow
_REST = 1.0  # seconds for which a slow statement is left to the threads


class NearReader:
    """The event loop's own read-only connection."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._session: Session | None = None
        self._driver: sqlite3.Connection | None = None
        self._steps = 0
        self._until = 0.0
        self._long: dict[object, float] = {}

    def read(self, fn: Callable[..., T], args: Any, kwargs: Any) -> T:
        """The result of `fn(session, …)`. Raises Elsewhere if a thread must read it."""
        if self._session is None:
            self._session = self._open()
        return checked(fn(self._session, *args, **kwargs))

    def begin(self, statement: object) -> None:
        """Start a statement's time. Raises Elsewhere if it was slow lately."""
        now = time.monotonic()
        self._steps, self._until = 0, now + _WALL
        if self._long.get(statement, 0.0) > now:
            raise Elsewhere

    def took_long(self, statement: object) -> None:
        """Leave the statement to the threads for a while."""
        self._long[statement] = time.monotonic() + _REST

    def close(self) -> None:
        """Close the file."""
        self._session = None
        if self._driver is not None:
            self._driver.close()
            self._driver = None

    def _open(self) -> Session:
        try:
            # Waiting for a lock here would block the event loop.
            self._driver = sqlite3.connect(
                f"file:{quote(self._file)}?mode=rw", uri=True, timeout=0, isolation_level=None
            )
            for pragma in ("query_only=ON", "temp_store=MEMORY", "cache_size=-16000"):
                self._driver.execute(f"PRAGMA {pragma}")
        except sqlite3.Error:
            self.close()
            raise Elsewhere from None
        self._driver.set_progress_handler(self._is_late, _STEPS_BETWEEN)
        # Bound to no engine: only prepared statements can be read here.
        return Session(info=Direct(self._driver, self).info)

    def _is_late(self) -> bool:
        self._steps += _STEPS_BETWEEN
        return self._steps > STEPS or time.monotonic() > self._until


class Readers:
    """The threads that run an event loop's reads; one at a time has the turn and takes what is waiting."""

    def __init__(self, engine: Engine, handover: Handover, name: str = "db-read") -> None:
        self._engine = engine
        self._handover = handover
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._turns = threading.Semaphore(1)
        self._more = threading.BoundedSemaphore(READERS - 1)  # turns that may be added for long reads
        self._begun = 0
        self._watch: asyncio.TimerHandle | None = None
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name}-{number}", daemon=True)
            for number in range(READERS)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, task: Task) -> None:
        """Run it soon."""
        self._tasks.put(task)
        if self._watch is None:
            self._watch_over()

    def stop(self) -> None:
        """End the threads once all queued reads are done."""
        for _ in self._threads:
            self._tasks.put(None)

    def join(self) -> None:
        """Wait until the threads have ended."""
        for thread in self._threads:
            thread.join()

    def _watch_over(self) -> None:
        self._watch = asyncio.get_running_loop().call_later(LONG, self._look, self._begun)

    def _look(self, begun: int) -> None:
        """In the loop: if no read has begun lately, those that run are long; add a turn."""
        self._watch = None
        if self._tasks.empty():
            return
        if self._begun == begun and self._more.acquire(blocking=False):
            self._turns.release()
        self._watch_over()

    def _serve(self) -> None:
        """In a thread: run reads until the queue's stop signal."""
        reader = _Reader(self._engine)
        self._turns.acquire()
        while (task := self._tasks.get()) is not None:
            if task.future.cancelled():
                continue
            self._begun += 1
            since = time.monotonic()
            result, error = None, None
            try:
                result = reader.read(task)
            except BaseException as caught:  # noqa: BLE001 - whoever waits hears of it
                error = caught
            self._handover.give(partial(settle, task.future, result, error))
            if time.monotonic() - since > LONG:
                with suppress(ValueError):  # no turn was added meanwhile
                    self._more.release()
                    self._turns.acquire()
        self._turns.release()
        reader.close()


class _Reader:
    """The connection of one thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self._direct: Direct
        self._light: Session

    def read(self, task: Task) -> Any:
        """The result of a task."""
        if self._connection is None:
            self._connection = self._engine.connect()
            driver: Any = self._connection.connection.driver_connection
            self._direct = Direct(driver)
            self._light = Session(self._connection, autoflush=False, info=self._direct.info)
        if is_one_statement(task.fn):
            try:
                return task.run(self._light)
            finally:
                if self._light.in_transaction():
                    self._light.close()
        options: dict[str, Any] = {"autoflush": False, "expire_on_commit": False, "close_resets_only": False}
        try:
            self._direct.driver.execute("BEGIN")  # takes no lock, so it can't fail
            with Session(self._connection, info=self._direct.info, **options) as session:
                return task.run(session)
        finally:
            if self._direct.driver.in_transaction:
                self._direct.driver.rollback()

    def close(self) -> None:
        """Close it."""
        if self._connection is not None:
            self._connection.close()


GROUP_SECONDS = 0.02
"""How long one transaction may gather units before others, in other processes too, get their turn."""
_PAUSE = 0.002  # seconds left to other processes after a group with units still waiting
_PATIENCE = 30.0  # seconds to wait for another process's transaction
_LOOK = 0.001  # seconds between checks whether it has ended
_BEGIN_WRITING = "BEGIN IMMEDIATE"

_PRAGMAS = (
    "busy_timeout=30000",
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "secure_delete=ON",
    "temp_store=MEMORY",
    "cache_size=-16000",
)


class UnitThreads(NamedTuple):
    """The threads for each kind of unit: a short read never waits for a snapshot, such as a search."""

    readers: Readers
    snapshots: Readers
    writer: threading.Thread

    def join(self) -> None:
        """Wait until all threads have ended."""
        for each in self:
            each.join()


class SqliteUnits:
    """Runs units of reading and writing for one event loop."""

    def __init__(self, url: str, outbox: Outbox) -> None:
        self._url = url
        self._outbox = outbox
        self._writes: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._reading = _engine(url, "BEGIN", "query_only=ON")
        self._near = NearReader(str(self._reading.url.database))
        self._threads: UnitThreads | None = None
        self._following: set[asyncio.Task[None]] = set()

    async def read(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `fn(session, …)` in one snapshot: in a reader thread, unless it is short."""
        if is_one_statement(fn):
            with suppress(Elsewhere):
                return self._near.read(fn, args, kwargs)
        task = Task(fn, args, kwargs)
        self._started().readers.put(task)
        result: T = await task.future
        return result

    async def snapshot(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The same, in one of the threads for longer reads."""
        task = Task(fn, args, kwargs)
        self._started().snapshots.put(task)
        result: T = await task.future
        return result

    async def write(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `fn(unit, …)` in the writer thread; returns once it is durable and its follow-ups have run."""
        task = Task(fn, args, kwargs)
        self._started()
        self._writes.put(task)
        try:
            result: T = await asyncio.shield(task.future)
        except asyncio.CancelledError:
            if not task.claim():  # it has begun: it will be committed and published in any case
                await uninterrupted(task.future)
            raise
        return result

    async def close(self) -> None:
        """Finish units that have begun and release the file."""
        self._near.close()  # before the last connection, which may take a while to close
        if self._threads is not None:
            self._writes.put(None)
            self._threads.readers.stop()
            self._threads.snapshots.stop()
            await asyncio.to_thread(self._threads.join)
        if self._following:
            await asyncio.wait(self._following)

    def _started(self) -> UnitThreads:
        """The threads, started with the first unit: only then is there a loop for the results."""
        if self._threads is None:
            handover = Handover(asyncio.get_running_loop())
            # The writer does its own waiting; see `_begin`.
            writer = _engine(self._url, _BEGIN_WRITING, "busy_timeout=0")
            serve = Writer(writer, self._writes, handover, self._outbox, self._follow).serve
            writing = threading.Thread(target=serve, name="db-write", daemon=True)
            writing.start()
            snapshots = Readers(self._reading, handover, "db-snapshot")
            self._threads = UnitThreads(Readers(self._reading, handover), snapshots, writing)
        return self._threads

    def _follow(self, task: Task, unit: Unit, result: Any) -> None:
        """Run what follows the commit; called in the loop."""
        unit.deliver_notices()
        if not unit.has_followers:
            settle(task.future, result, None)
            return
        following = asyncio.ensure_future(self._follow_up(task, unit, result))
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    async def _follow_up(self, task: Task, unit: Unit, result: Any) -> None:
        try:
            await unit.follow_up()
        except BaseException as error:  # noqa: BLE001 - whoever waits hears of it
            settle(task.future, None, error)
        else:
            settle(task.future, result, None)


class Writer:
    """The one writing thread of a process."""

    def __init__(
        self,
        engine: Engine,
        tasks: queue.SimpleQueue[Task | None],
        handover: Handover,
        outbox: Outbox,
        follow: Callable[[Task, Unit, Any], None],
    ) -> None:
        self._engine = engine
        self._guard = Guard(engine, _BEGIN_WRITING)
        self._tasks = tasks
        self._handover = handover
        self._outbox = outbox
        self._follow = follow
        self._connection: Connection | None = None
        self._stopping = False

    def serve(self) -> None:
        """Run writes until the queue's stop signal."""
        while not self._stopping and (task := self._tasks.get()) is not None:
            if task.claim():
                self._write_group(task)
        if self._connection is not None:
            self._connection.close()

    def _write_group(self, first: Task) -> None:
        """Run `first` and the units waiting behind it, and commit once."""
        try:
            transaction = self._begin()
        except BaseException as error:  # noqa: BLE001 - whoever waits hears of it
            self._fail([first, *self._waiting()], error)
            return
        done: list[tuple[Task, Unit, Any]] = []
        failed: list[tuple[Task, BaseException]] = []
        until = time.monotonic() + GROUP_SECONDS
        task: Task | None = first
        while task is not None:
            try:
                done.append((task, *self._run(task, transaction, nested=task is not first)))
            except BaseException as error:  # noqa: BLE001 - whoever waits hears of it
                failed.append((task, error))
            # The first has no savepoint: if it fails, its writes are undone by ending the group.
            goes_on = bool(done) and self._is_open(transaction) and time.monotonic() < until
            task = self._next() if goes_on else None
        self._end(transaction, done, failed)
        if time.monotonic() >= until:
            time.sleep(_PAUSE)

    def _run(self, task: Task, transaction: RootTransaction, *, nested: bool) -> tuple[Unit, Any]:
        """Run one unit; if it raises, only its own writes are undone. The first needs no savepoint."""
        options: dict[str, Any] = {"expire_on_commit": False, "close_resets_only": False}
        options["join_transaction_mode"] = "create_savepoint" if nested else "rollback_only"
        driver: Any = transaction.connection.connection.dbapi_connection
        options["info"] = Direct(driver, guard=self._guard).info
        session = Session(transaction.connection, **options)
        try:
            unit = Unit(session, self._outbox, is_sqlite=True)
            result = task.run(unit)
            task.context.run(unit.store_events)  # deliveries belong to the emitter's trace
            session.commit()
            return unit, result
        finally:
            # The unit's own error tells more than one of the savepoint that can't be rolled back to.
            with suppress(DBAPIError):
                session.close()

    def _end(
        self,
        transaction: RootTransaction,
        done: list[tuple[Task, Unit, Any]],
        failed: list[tuple[Task, BaseException]],
    ) -> None:
        """Commit, and only then notify everybody."""
        try:
            self._commit(transaction, done, failed)
        except BaseException as error:  # noqa: BLE001 - whoever waits hears of it
            self._drop_connection()
            self._fail([task for task, _, _ in done], error)
        else:
            self._handover.give(*(partial(self._follow, *each) for each in done))
        for task, why in failed:
            self._fail([task], why)

    def _commit(
        self,
        transaction: RootTransaction,
        done: list[tuple[Task, Unit, Any]],
        failed: list[tuple[Task, BaseException]],
    ) -> None:
        """Commit the units. Raises the error that made SQLite abandon the whole transaction."""
        if not done:
            if transaction.is_active:  # else a session did it after a failed flush
                transaction.rollback()
        elif self._is_open(transaction):
            transaction.commit()
        else:
            raise failed[-1][1] if failed else self._guard.ended()

    @staticmethod
    def _is_open(transaction: RootTransaction) -> bool:
        """Whether the transaction continues: some SQLite errors end all of it."""
        connection: Any = transaction.connection.connection.dbapi_connection
        return transaction.is_active and bool(connection.in_transaction)

    def _begin(self) -> RootTransaction:
        """Begin a transaction; waits for another process's."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                if self._connection is None:
                    self._connection = self._engine.connect()
                return self._connection.begin()
            except DBAPIError as error:
                if not _is_busy(error) or time.monotonic() > until:
                    self._drop_connection()
                    raise
            time.sleep(_LOOK)

    def _next(self) -> Task | None:
        """The next waiting unit, if there is one."""
        while True:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                return None
            if task is None:
                self._stopping = True
                return None
            if task.claim():
                return task

    def _waiting(self) -> list[Task]:
        tasks = []
        while (task := self._next()) is not None:
            tasks.append(task)
        return tasks

    def _fail(self, tasks: list[Task], error: BaseException) -> None:
        self._handover.give(*(partial(settle, task.future, None, error) for task in tasks))

    def _drop_connection(self) -> None:
        """Close a connection whose state is unknown."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except (SQLAlchemyError, sqlite3.Error):
                connection.invalidate()


def _is_busy(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _engine(url: str, begin: str, *pragmas: str) -> Engine:
    """A synchronous engine whose connections stay with the thread that opened them."""
    engine = create_engine(make_url(url).set(drivername="sqlite"), poolclass=NullPool, hide_parameters=True)
    prepare_sqlite(engine, begin, *pragmas)
    dialect: Any = engine.dialect
    # SQLAlchemy compiles its own statements each time: a third more processor time for each grouped write.
    dialect.do_savepoint = partial(_run_plain, "SAVEPOINT")
    dialect.do_release_savepoint = partial(_run_plain, "RELEASE SAVEPOINT")
    dialect.do_rollback_to_savepoint = _roll_back_to
    return engine


def _run_plain(statement: str, connection: Connection, name: str) -> None:
    driver: Any = connection.connection.driver_connection
    if driver.in_transaction:
        with suppress(sqlite3.Error):
            driver.execute(f"{statement} {name}")
            return
    connection.exec_driver_sql(f"{statement} {name}")  # meets the error again and raises SQLAlchemy's


def _roll_back_to(connection: Connection, name: str) -> None:
    driver: Any = connection.connection.driver_connection
    if driver.in_transaction:  # else SQLite has rolled back everything
        _run_plain("ROLLBACK TO SAVEPOINT", connection, name)


def prepare_sqlite(engine: Engine, begin: str, *pragmas: str) -> None:
    """Connections in WAL mode, synced and strict, whose transactions begin with `begin`."""

    @event.listens_for(engine, "connect")
    def _connect(dbapi_connection: Any, _record: Any) -> None:
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        for pragma in (*_PRAGMAS, *pragmas):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection) and begin == "BEGIN":
            if not driver.in_transaction:  # a reader thread may have begun it
                driver.execute(begin)  # takes no lock, so there is no error for SQLAlchemy to report
        else:
            connection.exec_driver_sql(begin)
