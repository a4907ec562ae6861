"""Units as plain functions: one commit for many, nothing told before it is durable, one state to read."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import ForeignKey, String, func, insert, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError, InvalidRequestError, OperationalError, SAWarning
from sqlalchemy.orm import Mapped, Session, mapped_column

from kernel.db import sqlite
from kernel.db.engine import Database, DatabaseClosed
from kernel.db.sqlite import READERS
from kernel.db.tables import Notice
from kernel.libs.prepared import TransactionEnded
from kernel.process.machine_faults import machine_fault
from kernel.sdk import Tally, Unit, off_the_loop, plugin_base
from kernel.settings.loading import KernelSettings
from kernel.testing import eventually
from tests.fakes.other_client import PostgresClient

Base: Any = plugin_base("shelf")


class Shelf(Base):
    """Somewhere for books."""

    __tablename__ = "shelf_shelf"
    name: Mapped[str] = mapped_column(String(50), primary_key=True)


class Book(Base):
    """A book, whose shelf is looked for at the commit."""

    __tablename__ = "shelf_book"
    title: Mapped[str] = mapped_column(String(50), primary_key=True)
    shelf: Mapped[str | None] = mapped_column(
        ForeignKey(Shelf.name, deferrable=True, initially="DEFERRED"), default=None
    )


@pytest.fixture
async def database(tmp_path: Path, empty_database_url: str | None) -> AsyncIterator[Database]:
    """A fresh database with books."""
    async with _opened(tmp_path, empty_database_url) as opened:
        yield opened


@pytest.fixture
async def sqlite_database(tmp_path: Path) -> AsyncIterator[Database]:
    """The embedded one."""
    async with _opened(tmp_path, None) as opened:
        yield opened


class _opened:
    def __init__(self, home: Path, url: str | None, *, tables: bool = True) -> None:
        self._database = Database(KernelSettings(home=home, database_url=url).sqlalchemy_url)
        self._tables = tables

    async def __aenter__(self) -> Database:
        if not self._tables:
            return self._database
        async with self._database.schema_change() as connection:
            await connection.run_sync(Base.metadata.create_all)
            await connection.run_sync(Notice.__table__.create)  # type: ignore[attr-defined]
        return self._database

    async def __aexit__(self, *_: object) -> None:
        await self._database.close()


@contextmanager
def elsewhere(database: Database) -> Iterator[Callable[[str], Any]]:
    """Another client of the same database: runs a statement by itself, answers its first value if any."""
    if not database.is_sqlite:
        with closing(PostgresClient(database.url)) as client:
            yield client.run
        return
    connection = sqlite3.connect(str(make_url(database.url).database), timeout=0, isolation_level=None)

    def run(statement: str) -> Any:
        cursor = connection.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None

    with closing(connection):
        yield run


async def test_what_is_off_the_loop_ends_before_its_unit(database: Database) -> None:
    """A unit that is cancelled meanwhile keeps its transaction, and its locks, until the thread is done."""
    began, may_end, done = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        may_end.wait(30)
        done.set()

    def write(unit: Unit) -> None:
        unit.lock("shelf")
        off_the_loop(slow)

    writing = asyncio.create_task(database.write(write))
    try:
        assert await asyncio.to_thread(began.wait, 30)
        writing.cancel()
        await asyncio.wait({writing}, timeout=0.3)
        assert not writing.done()
    finally:
        may_end.set()
    await asyncio.wait({writing})
    assert writing.cancelled()
    assert done.is_set()


COUNT = "SELECT count(*) FROM shelf_book"
SLEEPING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND state = 'active' AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()"
)


def add(unit: Unit, title: str) -> str:
    unit.session.add(Book(title=title))
    return title


def titles(session: Session) -> list[str]:
    return list(session.scalars(select(Book.title).order_by(Book.title)))


class Busy:
    """Holds SQLite's writer, so that what is asked for meanwhile waits together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._began, self._go_on = threading.Event(), threading.Event()

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._database.write(self._hold))
        await asyncio.to_thread(self._began.wait, 5)

    async def __aexit__(self, *_: object) -> None:
        self._go_on.set()
        await self._task

    def _hold(self, unit: Unit) -> None:
        add(unit, "the first")
        self._began.set()
        self._go_on.wait(5)


class TestOnBoth:
    async def test_written_and_read(self, database: Database) -> None:
        """A unit answers what its function answers, once the rows are there for everybody."""
        assert await database.write(add, "Emma") == "Emma"
        with elsewhere(database) as other:
            assert other(COUNT) == 1
        assert await database.read(titles) == ["Emma"]

    async def test_a_unit_that_raises(self, database: Database) -> None:
        """Nothing of it stays: no row, no callback, no notice."""
        called = []

        def fail(unit: Unit) -> None:
            add(unit, "Emma")
            unit.notify("topic", "key")
            unit.session.flush()
            unit.after_commit(lambda: called.append(1))  # type: ignore[arg-type,return-value]
            raise ValueError("on purpose")

        with pytest.raises(ValueError, match="on purpose"):
            await database.write(fail)
        assert await database.read(titles) == []
        assert await database.read(lambda session: session.scalar(select(func.count(Notice.id)))) == 0
        assert not called

    async def test_a_row_that_is_there(self, database: Database) -> None:
        """The error of a statement that waited for the end reaches the caller, without the row's values."""
        await database.write(add, "Emma")
        with pytest.raises(IntegrityError) as caught:
            await database.write(add, "Emma")
        assert "Emma" not in str(caught.value).replace("[SQL", "").split("DETAIL")[0]
        assert await database.write(add, "Persuasion") == "Persuasion"

    async def test_many_at_once(self, database: Database) -> None:
        """Units that wait together are all done, each by itself."""
        await asyncio.gather(*(database.write(add, f"{number:03}") for number in range(100)))
        assert len(await database.read(titles)) == 100

    async def test_callbacks_in_the_loop(self, database: Database) -> None:
        """What follows the commit runs in the event loop, finds the rows, and is over before the answer."""
        seen = []

        async def look() -> None:
            seen.append((threading.current_thread(), await database.read(titles)))

        def write(unit: Unit) -> None:
            add(unit, "Emma")
            unit.after_commit(look)

        await database.write(write)
        assert seen == [(threading.main_thread(), ["Emma"])]

    async def test_one_state(self, database: Database) -> None:
        """All statements of a snapshot see the database as it was at its first."""

        def twice(session: Session) -> tuple[int, int]:
            before = len(titles(session))
            with elsewhere(database) as other:
                other("INSERT INTO shelf_book (title) VALUES ('Emma')")
            return before, len(titles(session))

        assert await database.snapshot(twice) == (0, 0)
        assert await database.read(titles) == ["Emma"]

    async def test_an_open_reader_and_a_writer(self, database: Database) -> None:
        """A reader in the middle of its unit holds up no writer, and the other way round."""
        async with database.connection() as writing:
            await writing.execute(insert(Book).values(title="unfinished"))
            assert await asyncio.wait_for(database.read(titles), 5) == []

    async def test_the_callers_context(self, database: Database) -> None:
        """A unit knows which request it belongs to, so that its log lines do."""
        from kernel.observe.logs import request_id_var

        token = request_id_var.set("r-1")
        try:
            assert await database.read(lambda _session: request_id_var.get()) == "r-1"
            assert await database.write(lambda _unit: request_id_var.get()) == "r-1"
        finally:
            request_id_var.reset(token)


class TestMisuse:
    async def test_a_coroutine_function(self, database: Database) -> None:
        """An asynchronous function is refused with the remedy, and writes nothing."""

        async def wrong(unit: Unit) -> None:
            add(unit, "Emma")

        with pytest.raises(TypeError, match="write 'def'"):
            await database.write(wrong)
        with pytest.raises(TypeError, match="write 'def'"):
            await database.read(wrong)  # type: ignore[arg-type]
        assert await database.read(titles) == []

    async def test_a_unit_within_a_unit(self, database: Database) -> None:
        """A unit that asks for another gets an error instead of waiting for itself."""

        def nested(unit: Unit) -> Any:
            add(unit, "Emma")
            return database.write(add, "Persuasion")

        with pytest.raises(TypeError, match="write 'def'"):
            await asyncio.wait_for(database.write(nested), 5)
        assert await database.read(titles) == []

    async def test_rows_that_were_not_fetched(self, database: Database) -> None:
        """A result that can be read within the unit only is refused with the remedy."""
        with pytest.raises(TypeError, match=r"\.all\(\)"):
            await database.read(lambda session: session.execute(select(Book.title)))
        with pytest.raises(TypeError, match=r"\.all\(\)"):
            await database.read(lambda session: session.scalars(select(Book.title)))

    async def test_a_session_after_its_unit(self, database: Database) -> None:
        session = await database.read(lambda session: session)
        with pytest.raises(InvalidRequestError, match="closed"):
            session.scalar(select(Book.title))

    async def test_a_closed_database(self, database: Database) -> None:
        await database.write(add, "Emma")
        await database.close()
        with pytest.raises(DatabaseClosed):
            await database.read(titles)
        with pytest.raises(DatabaseClosed):
            await database.write(add, "Persuasion")

    async def test_writing_through_a_reader(self, sqlite_database: Database) -> None:
        """On SQLite a unit of reading can't write: it would escape the queue of writers."""
        with pytest.raises(OperationalError, match="readonly"):
            await sqlite_database.read(
                lambda session: session.execute(insert(Book).values(title="x")).close()
            )
        assert await sqlite_database.read(titles) == []


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that no clock ends: on a busy machine the first unit alone may last as long as a group may."""
    monkeypatch.setattr(sqlite, "GROUP_SECONDS", 60.0)


def _add_by_the_session(unit: Unit, title: str) -> None:
    add(unit, title)
    unit.session.flush()


def _add_plainly(unit: Unit, title: str) -> None:
    unit.session.execute(insert(Book).values(title=title))


def _add_in_a_savepoint(unit: Unit, title: str) -> None:
    with unit.session.begin_nested():
        _add_plainly(unit, title)


def _add_counted(unit: Unit, books: Mapping[str, int]) -> None:
    for title in books:
        _add_plainly(unit, title)


def _fill_plainly(unit: Unit) -> None:
    _add_plainly(unit, "x" * 3_000_000)


def _fill_prepared(unit: Unit) -> None:
    _add_plainly(unit, "x" * 3_000_000)


def _fill_by_the_session(unit: Unit) -> None:
    _add_by_the_session(unit, "x" * 3_000_000)


def _fill_in_a_savepoint(unit: Unit) -> None:
    _add_in_a_savepoint(unit, "x" * 3_000_000)


def _shrink(unit: Unit) -> None:
    unit.session.connection().exec_driver_sql("PRAGMA max_page_count = 1")


def _ignore_a_full_disk(unit: Unit) -> None:
    _shrink(unit)
    with suppress(OperationalError):
        _fill_plainly(unit)


class TestGroups:
    """SQLite's writer."""

    @pytest.mark.usefixtures("unhurried")
    async def test_one_commit(self, sqlite_database: Database) -> None:
        """Units that wait together are committed at once, and their callers return after that."""
        database, seen = sqlite_database, []
        waiting: list[asyncio.Task[None]] = []

        def look(unit: Unit, title: str) -> None:
            add(unit, title)
            unit.session.flush()
            with elsewhere(database) as other:
                done = sum(task.done() for task in waiting)
                seen.append((len(titles(unit.session)), other(COUNT), done))

        async with Busy(database):
            for title in "abc":
                waiting.append(asyncio.create_task(database.write(look, title)))
                await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        assert seen == [(2, 0, 0), (3, 0, 0), (4, 0, 0)]
        assert await database.read(titles) == ["a", "b", "c", "the first"]

    async def test_one_that_fails(self, sqlite_database: Database) -> None:
        """A unit that raises, or breaks a constraint, is undone alone."""
        database = sqlite_database

        def fail(unit: Unit) -> None:
            add(unit, "undone")
            unit.session.flush()
            raise ValueError("on purpose")

        async with Busy(database):
            tasks = [database.write(add, "a"), database.write(fail), database.write(add, "a")]
            group = asyncio.gather(*tasks, database.write(add, "b"), return_exceptions=True)
            await asyncio.sleep(0)
        first, raised, broken, last = await group
        assert (first, last) == ("a", "b")
        assert isinstance(raised, ValueError)
        assert isinstance(broken, IntegrityError)
        assert await database.read(titles) == ["a", "b", "the first"]

    @pytest.mark.parametrize("write", [_add_by_the_session, _add_plainly])
    async def test_a_first_one_that_fails(
        self, sqlite_database: Database, write: Callable[[Unit, str], None]
    ) -> None:
        """So is one that nothing came before, with what it wrote, and the others go on."""

        def fail(unit: Unit, title: str) -> None:
            write(unit, title)
            raise ValueError

        results = await asyncio.gather(
            sqlite_database.write(fail, "undone"),
            sqlite_database.write(add, "a"),
            sqlite_database.write(fail, "undone, too"),
            sqlite_database.write(add, "b"),
            return_exceptions=True,
        )
        assert [isinstance(result, ValueError) for result in results] == [True, False, True, False]
        assert await sqlite_database.read(titles) == ["a", "b"]

    @pytest.mark.usefixtures("unhurried")
    async def test_a_commit_that_fails(self, sqlite_database: Database) -> None:
        """All who were to be committed hear that they were not, and the next is fine."""
        database = sqlite_database

        def misplace(unit: Unit) -> None:
            unit.session.add(Book(title="lost", shelf="nowhere"))

        results: list[Any] = []
        try:
            async with Busy(database):
                group = asyncio.gather(
                    database.write(add, "a"), database.write(misplace), return_exceptions=True
                )
                await asyncio.sleep(0)
        except IntegrityError as error:
            results.append(error)
        results += await group
        assert [type(result) for result in results] == [IntegrityError] * 3
        assert await database.read(titles) == []
        assert await database.write(add, "b") == "b"

    @pytest.mark.usefixtures("unhurried")
    @pytest.mark.parametrize(
        "fills", [_fill_plainly, _fill_prepared, _fill_by_the_session, _fill_in_a_savepoint]
    )
    async def test_a_disk_that_is_full(
        self, sqlite_database: Database, fills: Callable[[Unit], None]
    ) -> None:
        """It ends the whole transaction: all who were to be committed with it hear that the disk is full."""

        def fill(unit: Unit) -> None:
            _shrink(unit)
            fills(unit)

        with pytest.raises(OperationalError, match="full"):
            async with Busy(sqlite_database):
                group = asyncio.gather(
                    sqlite_database.write(add, "a"), sqlite_database.write(fill), return_exceptions=True
                )
                await asyncio.sleep(0)
        assert ["full" in str(error) for error in await group] == [True, True]
        assert await sqlite_database.read(titles) == []

    async def test_a_row_that_is_there_without_a_warning(
        self, sqlite_database: Database, recwarn: pytest.WarningsRecorder
    ) -> None:
        """The session has already rolled back after a failed flush: nothing is rolled back twice."""
        await sqlite_database.write(add, "Emma")
        with pytest.raises(IntegrityError):
            await sqlite_database.write(_add_by_the_session, "Emma")
        assert [str(warning.message) for warning in recwarn if issubclass(warning.category, SAWarning)] == []

    @pytest.mark.usefixtures("unhurried")
    @pytest.mark.parametrize("goes_on", [_add_plainly, _add_in_a_savepoint])
    @pytest.mark.parametrize("fills", [_fill_plainly, _fill_prepared])
    async def test_going_on_after_the_transaction_ended(
        self,
        sqlite_database: Database,
        fills: Callable[[Unit], None],
        goes_on: Callable[[Unit, str], None],
    ) -> None:
        """A unit that catches the error of a full disk, which ended its transaction, can't write outside it.

        Its statements fail with the remedy and the cause, and nothing of the group is kept.
        """

        def careless(unit: Unit) -> None:
            _shrink(unit)
            with suppress(OperationalError):
                fills(unit)
            goes_on(unit, "outside")

        with pytest.raises(TransactionEnded):
            async with Busy(sqlite_database):
                group = asyncio.gather(
                    sqlite_database.write(add, "a"), sqlite_database.write(careless), return_exceptions=True
                )
                await asyncio.sleep(0)
        errors = [error for error in await group if isinstance(error, TransactionEnded)]
        assert ["don't catch" in str(error) and machine_fault(error) for error in errors] == ["disk_full"] * 2
        assert await sqlite_database.read(titles) == []
        assert await sqlite_database.write(add, "b") == "b"
        with pytest.raises(TransactionEnded):
            await sqlite_database.write(careless)
        assert await sqlite_database.read(titles) == ["b"]

    async def test_a_unit_that_commits_by_itself(self, sqlite_database: Database) -> None:
        """It is refused, even after its next statement was."""

        def meddle(unit: Unit) -> None:
            unit.session.connection().exec_driver_sql("COMMIT")
            with suppress(TransactionEnded):
                _add_plainly(unit, "outside")

        with pytest.raises(TransactionEnded):
            await sqlite_database.write(meddle)
        assert await sqlite_database.read(titles) == []

    async def test_a_tally_whose_transaction_ended(self, sqlite_database: Database) -> None:
        """It keeps its values, as in an outage, and writes them the next time."""
        careless = [True]

        def write(unit: Unit, books: Mapping[str, int]) -> None:
            _add_counted(unit, books)
            if careless.pop():
                _ignore_a_full_disk(unit)

        tally: Tally[str, int] = Tally(sqlite_database, "books", write, max)
        tally.add("Emma", 1)
        await tally.flush()
        assert (len(tally), await sqlite_database.read(titles)) == (1, [])
        careless.append(False)
        await tally.flush()
        assert (len(tally), await sqlite_database.read(titles)) == (0, ["Emma"])

    async def test_a_tally_whose_flush_is_cancelled(self, sqlite_database: Database) -> None:
        """What waits to be written is written: nothing is lost."""
        tally: Tally[str, int] = Tally(sqlite_database, "books", _add_counted, max)
        tally.add("Emma", 1)
        async with Busy(sqlite_database):
            flush = asyncio.create_task(tally.flush())
            await asyncio.sleep(0)
            flush.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flush
        assert await sqlite_database.read(titles) == ["Emma", "the first"]

    async def test_two_flushes_of_a_tally(self, sqlite_database: Database) -> None:
        """The second waits for the first: what was counted before is there for whoever reads next."""
        tally: Tally[str, int] = Tally(sqlite_database, "books", _add_counted, max)
        tally.add("Emma", 1)

        async def look() -> list[str]:
            await tally.flush()
            return await sqlite_database.read(titles)

        async with Busy(sqlite_database):
            first = asyncio.create_task(tally.flush())
            await asyncio.sleep(0)
            second = asyncio.create_task(look())
            await asyncio.wait([second], timeout=0.05)
        assert await second == ["Emma", "the first"]
        await first

    async def test_another_process_that_writes(self, sqlite_database: Database) -> None:
        """Writers wait for another process's transaction, readers don't."""
        with elsewhere(sqlite_database) as other:
            other("BEGIN IMMEDIATE")
            writing = asyncio.create_task(sqlite_database.write(add, "a"))
            assert await asyncio.wait_for(sqlite_database.read(titles), 5) == []
            assert not writing.done()
            other("COMMIT")
        assert await asyncio.wait_for(writing, 5) == "a"

    async def test_another_process_gets_its_turn(self, sqlite_database: Database) -> None:
        """However many write here, another process's transaction begins soon."""
        going_on = True

        async def keep_writing(name: str) -> None:
            number = 0
            while going_on:
                await sqlite_database.write(add, f"{name}{number}")
                number += 1

        writers = [asyncio.create_task(keep_writing(name)) for name in "abcdefgh"]
        path = str(make_url(sqlite_database.url).database)
        for number in range(3):
            await asyncio.wait_for(asyncio.to_thread(_insert, path, str(number)), 10)
        going_on = False
        await asyncio.gather(*writers)


def _insert(path: str, title: str) -> None:
    with closing(sqlite3.connect(path, timeout=10)) as connection, connection:
        connection.execute("INSERT INTO shelf_book (title) VALUES (?)", (title,))


class TestReaders:
    async def test_a_long_read(self, sqlite_database: Database) -> None:
        """A reader that takes its time holds up no other."""
        go_on = threading.Event()
        slow = asyncio.create_task(sqlite_database.read(lambda _session: go_on.wait(10)))
        await asyncio.gather(*(asyncio.wait_for(sqlite_database.read(titles), 5) for _ in range(20)))
        assert not slow.done()
        go_on.set()
        assert await slow

    async def test_reads_that_wait_for_each_other(self, sqlite_database: Database) -> None:
        """Long reads hold up nobody: each lets the next one in, as many as there are threads."""
        together = threading.Barrier(READERS)
        waiting = [sqlite_database.read(lambda _session: together.wait(20)) for _ in range(READERS)]
        assert sorted(await asyncio.gather(*waiting)) == list(range(READERS))
        assert await asyncio.gather(*(sqlite_database.read(titles) for _ in range(20))) == [[]] * 20


class TestCancellation:
    async def test_before_it_began(self, sqlite_database: Database) -> None:
        """A unit that waits in the queue is dropped with its caller."""
        async with Busy(sqlite_database):
            waiting = asyncio.create_task(sqlite_database.write(add, "dropped"))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert await sqlite_database.read(titles) == ["the first"]

    async def test_after_it_began(self, sqlite_database: Database) -> None:
        """A unit that runs is committed, its events are sent, and only then is its caller cancelled."""
        began, go_on, told = threading.Event(), threading.Event(), []

        async def tell() -> None:
            told.append(1)

        def write(unit: Unit) -> None:
            add(unit, "kept")
            unit.after_commit(tell)
            began.set()
            go_on.wait(5)

        writing = asyncio.create_task(sqlite_database.write(write))
        await asyncio.to_thread(began.wait, 5)
        writing.cancel()
        await asyncio.sleep(0)
        assert not writing.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert (told, await sqlite_database.read(titles)) == ([1], ["kept"])

    async def test_a_statement_on_postgresql(self, tmp_path: Path, empty_postgres_url: str) -> None:
        """A unit that waits for the server is rolled back, at once, and its connection serves the next."""
        async with _opened(tmp_path, empty_postgres_url) as database:

            def wait(unit: Unit) -> None:
                add(unit, "undone")
                unit.session.flush()
                unit.session.execute(text("SELECT pg_sleep(30)"))

            for unit in (
                database.write(wait),
                database.read(lambda s: s.execute(text("SELECT pg_sleep(30)"))),
            ):
                running = asyncio.create_task(unit)
                with elsewhere(database) as other:
                    await eventually(lambda other=other: other(SLEEPING) == 1)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.wait_for(running, 5)
            assert await asyncio.wait_for(database.read(titles), 5) == []

    async def test_while_connecting(self, tmp_path: Path, postgres_url: str) -> None:
        """Whoever leaves while a connection is made for it leaves none behind that nobody looks after."""
        complaints: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: complaints.append(context))
        for milliseconds in range(25):
            async with _opened(tmp_path, postgres_url, tables=False) as database:
                reading = asyncio.create_task(database.read(lambda session: session.scalar(text("SELECT 1"))))
                await asyncio.sleep(milliseconds / 2000)
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
        gc.collect()
        await asyncio.sleep(0)
        assert complaints == []


class TestOutage:
    async def test_connections_that_died(self, tmp_path: Path, empty_postgres_url: str) -> None:
        """After a restart of the server the first read and the first write go through."""
        async with _opened(tmp_path, empty_postgres_url) as database:
            for unit in (database.write(add, "Emma"), database.read(titles), database.snapshot(titles)):
                await asyncio.gather(*(database.read(_nap) for _ in range(3)))
                with elsewhere(database) as other:
                    other(
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
                await asyncio.sleep(0.3)  # a connection used a moment ago is taken for alive
                await unit
            assert await database.read(titles) == ["Emma"]

    async def test_a_file_that_can_not_be_opened(self, tmp_path: Path) -> None:
        """The error is the driver's, and the next unit tries again."""
        database = Database(f"sqlite+aiosqlite:///{tmp_path}/missing/platform.db")
        for unit in (database.read(titles), database.write(add, "a"), database.write(add, "b")):
            with pytest.raises(OperationalError, match="unable to open"):
                await unit
        await database.close()


def _nap(session: Session) -> None:
    session.execute(text("SELECT pg_sleep(0.05)"))
