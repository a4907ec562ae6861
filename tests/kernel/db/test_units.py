"""Units of work: committed or not at all, published afterwards, and unharmed by clients that leave."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from kernel.db.base import UtcDateTime
from kernel.db.engine import Database
from kernel.db.tables import Notice
from kernel.errors import StartupError
from kernel.sdk import PLUGIN_STATES, PUBLIC, Context, Event, Platform, Plugin, RouteTable, Unit, hookimpl
from kernel.testing import Running, Start, postgres_database
from tests.fakes.network import raw_client
from tests.fakes.rows import execute
from tests.fakes.waiting import eventually


class Happened(Event):
    """Something that is told at once."""

    event_name = "listener.happened"

    what: str


class Listener(Plugin):
    """Hears events, and has routes that emit them."""

    name = "listener"

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.hearing = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    @hookimpl
    async def on_event(self, event: Event) -> None:
        if isinstance(event, Happened):
            self.hearing.set()
            await self.go_on.wait()
            self.heard.append(event.what)

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Listener")

        @table.post("/v1/listener", access=PUBLIC, returns=int)
        async def write(ctx: Context) -> int:
            """Write a row in several steps."""
            await ctx.write(_write_three)
            return 1

        return [table]


def _write_three(unit: Unit) -> None:
    for _ in range(3):
        unit.session.add(Notice(topic="written", key="x"))
        unit.session.flush()
    unit.emit(Happened(what="written"))


@pytest_asyncio.fixture
async def listener() -> Listener:
    return Listener()


@pytest_asyncio.fixture
async def running(
    start_platform: Start, database_url: str | None, listener: Listener
) -> AsyncIterator[Running]:
    """A platform on each database."""
    yield await start_platform(listener, env={"DATABASE_URL": database_url})


async def count(database: Database, topic: str) -> int:
    query = select(func.count()).where(Notice.topic == topic)
    return await database.read(lambda session: session.scalar(query) or 0)


class TestUnit:
    async def test_commit(self, running: Running) -> None:
        """What a unit wrote is there when it has ended."""
        database = running.platform.database
        await database.write(lambda unit: unit.session.add(Notice(topic="t", key="k")))
        assert await count(database, "t") == 1

    async def test_rollback(self, running: Running, listener: Listener) -> None:
        """A unit that raises leaves nothing: no row, no event, no callback."""
        database, called = running.platform.database, []

        async def callback() -> None:
            called.append(1)

        def fail(unit: Unit) -> None:
            unit.session.add(Notice(topic="t", key="k"))
            unit.session.flush()
            unit.emit(Happened(what="never"))
            unit.after_commit(callback)
            raise ValueError

        with pytest.raises(ValueError):
            await database.write(fail)
        assert (await count(database, "t"), called, listener.heard) == (0, [], [])

    async def test_events_after_the_commit(self, running: Running, listener: Listener) -> None:
        def emit_two(unit: Unit) -> None:
            unit.emit(Happened(what="first"))
            unit.emit(Happened(what="second"))
            assert listener.heard == []

        await running.platform.database.write(emit_two)
        assert listener.heard == ["first", "second"]

    async def test_a_callback_that_fails(self, running: Running) -> None:
        """A callback that fails after the commit stops no other, and the commit stands."""
        called = []

        async def bad() -> None:
            raise RuntimeError("too late")

        async def good() -> None:
            called.append(1)

        def change(unit: Unit) -> None:
            unit.session.add(Notice(topic="t", key="k"))
            unit.after_commit(bad)
            unit.after_commit(good)

        await running.platform.database.write(change)
        assert (called, await count(running.platform.database, "t")) == ([1], 1)

    async def test_many_writers(self, running: Running) -> None:
        """Tasks that write at once wait for each other and lose nothing."""
        database = running.platform.database

        async def write(number: int) -> None:
            await database.write(lambda unit: unit.session.add(Notice(topic="many", key=str(number))))

        await asyncio.gather(*map(write, range(100)))
        assert await count(database, "many") == 100


class TestCancellation:
    async def test_a_client_that_leaves_after_the_commit(self, running: Running, listener: Listener) -> None:
        """Events of a commit are sent, even if the client leaves meanwhile."""
        listener.go_on.clear()
        async with raw_client(running.url) as client:
            await client.send(b"POST /v1/listener HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            await asyncio.wait_for(listener.hearing.wait(), 5)
        await asyncio.sleep(0.05)  # the server has to notice that the client left
        listener.go_on.set()
        await eventually(lambda: listener.heard == ["written"], 5)

    async def test_clients_that_leave_at_any_moment(self, running: Running, listener: Listener) -> None:
        """Wherever requests are cut off, rows and events agree, and writing goes on."""
        random.seed(7)
        head = b"POST /v1/listener HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"

        async def leave_early() -> None:
            async with raw_client(running.url) as client:
                await client.send(head)
                await asyncio.sleep(random.random() * 0.03)
                client.writer.transport.abort()

        for _ in range(8):
            await asyncio.gather(*(leave_early() for _ in range(6)))
        assert (await asyncio.wait_for(running.anonymous.post("/v1/listener"), 10)).status == 200
        database = running.platform.database

        async def agree() -> bool:
            return await count(database, "written") == 3 * len(listener.heard)

        await eventually(agree, 10)
        assert listener.heard


class TestReading:
    async def test_a_reader_does_not_wait_for_a_writer(self, running: Running) -> None:
        """Reading continues while a unit of work is open."""
        database = running.platform.database
        async with database.connection() as writing:
            await writing.execute(insert(Notice).values(topic="t", key="k"))
            assert await asyncio.wait_for(count(database, "t"), 2) == 0

    async def test_writing_through_a_reader(self, start_platform: Start) -> None:
        """On SQLite a read session can't write: it would escape the queue of writers."""
        running = await start_platform()
        with pytest.raises(Exception, match="readonly"):
            await running.platform.database.read(Session.execute, text("DELETE FROM kernel_notice"))


class TestTimes:
    async def test_utc_on_every_database(self, running: Running) -> None:
        """A time comes back as it went in, aware and in UTC, to the microsecond."""
        moment = datetime(2026, 11, 20, 12, 34, 56, 789012, UTC)
        row = Notice(topic="time", key="k", created_at=moment)
        await running.platform.database.write(lambda unit: unit.session.add(row))
        query = select(Notice.created_at).where(Notice.topic == "time")
        found = await running.platform.database.read(Session.scalar, query)
        assert (found, found.tzinfo if found else None) == (moment, UTC)

    def test_a_naive_time(self) -> None:
        from sqlalchemy.dialects import sqlite

        with pytest.raises(ValueError, match="utc_now"):
            UtcDateTime().process_bind_param(datetime(2026, 11, 20), sqlite.dialect())


class TestSettings:
    async def test_sqlite_is_durable_and_strict(self, start_platform: Start) -> None:
        """WAL, synced commits, foreign keys: as design.md section 2 decided."""
        running = await start_platform()
        wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        found = await running.platform.database.write(
            lambda unit: {name: unit.session.execute(text(f"PRAGMA {name}")).scalar() for name in wanted}
        )
        assert found == wanted

    async def test_no_values_in_errors(self, running: Running, caplog: pytest.LogCaptureFixture) -> None:
        """An error of the database does not carry the row's values into the log."""
        caplog.set_level(logging.DEBUG, "platform")
        statement = text("INSERT INTO nowhere VALUES (:v)").bindparams(v="hunter22")
        with pytest.raises(SQLAlchemyError) as caught:
            await execute(running.platform.database, statement)
        assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("url", ["mysql://me@host/db", "nonsense", "postgresql://me:pw@host:notaport/db"])
async def test_an_unfit_address(start_platform: Start, url: str) -> None:
    """An address of no database that we know is refused at start, naming the variable and the remedy."""
    from kernel.errors import StartupError

    with pytest.raises(StartupError, match=r"DATABASE_URL.*postgresql://") as caught:
        await start_platform(env={"DATABASE_URL": url})
    assert "pw" not in str(caught.value)


async def test_a_database_that_does_not_answer(start_platform: Start) -> None:
    """A start without a database fails with the cause, the setting with its address, and no password."""
    from kernel.errors import StartupError

    address = "postgresql://me:hunter22@127.0.0.1:9/db?password=hunter22"
    with pytest.raises(StartupError, match="DATABASE_URL") as caught:
        await start_platform(env={"DATABASE_URL": address})
    assert "(DATABASE_URL: postgresql://127.0.0.1:9/db)" in str(caught.value)
    assert "hunter22" not in str(caught.value)


async def test_options_of_other_drivers(start_platform: Start, postgres_url: str) -> None:
    """`sslmode`, as libpq spells it and every host hands it out, is understood."""
    running = await start_platform(env={"DATABASE_URL": postgres_url + "?sslmode=disable"})
    await running.platform.database.ping()


async def test_the_smallest_pool(start_platform: Start, postgres_url: str) -> None:
    """A process's lock and notifications take no connection away from requests."""
    env = {"DATABASE_URL": postgres_url, "PLATFORM_DATABASE_POOL_SIZE": "1"}
    running = await start_platform(env=env)
    async with asyncio.timeout(10):
        await asyncio.gather(*(running.platform.database.ping() for _ in range(20)))


async def test_events_of_two_plugins(start_platform: Start) -> None:
    """One plugin's error in `on_event` stops no other's delivery, and is kept with its record."""

    class Bad(Plugin):
        name = "bad"

        @hookimpl
        def on_event(self, platform: Platform, event: Event) -> None:
            raise RuntimeError("no ears")

    listener = Listener()
    running = await start_platform(Bad, listener)
    await running.platform.database.write(lambda unit: unit.emit(Happened(what="first")))
    assert listener.heard == ["first"]
    problems: list[Any] = running.platform.resource(PLUGIN_STATES).records["bad"].failures
    assert problems == ["on_event raised RuntimeError: no ears"]


def test_a_limit_of_the_address_that_is_no_number() -> None:
    """The start names the setting, the option and its unit."""
    expected = r"DATABASE_URL: tcp_user_timeout must be one whole number of milliseconds, not '5s'"
    with pytest.raises(StartupError, match=expected):
        Database("postgresql+asyncpg://localhost/x?tcp_user_timeout=5s")


@pytest.mark.asyncio
async def test_limits_of_the_address_that_are_switched_off() -> None:
    """0 and less mean what libpq takes them for: no limit, or what the system has."""
    with postgres_database() as url:
        address = url.replace("postgresql://", "postgresql+asyncpg://")
        database = Database(f"{address}?connect_timeout=-1&tcp_user_timeout=0&keepalives_idle=0&keepalives=0")
        try:
            assert await database.read(lambda session: session.scalar(text("SELECT 7"))) == 7
        finally:
            await database.close()
