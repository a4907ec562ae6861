"""The counters that processes share through the database."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import func, select, text

from builtin_plugins.shared_counters.counters import SharedCounters
from builtin_plugins.shared_counters.models import RateWindow
from kernel.db.engine import Database, Unit
from kernel.stores.cache import MemoryCache
from kernel.stores.protocols import Cache
from kernel.testing import Start
from kernel.testing.conformance import CacheConformance
from tests.fakes.own_clock import OwnClock
from tests.fakes.rows import execute
from tests.fakes.waiting import eventually


@pytest.fixture
async def database(start_platform: Start, database_url: str | None) -> Database:
    """A migrated database."""
    return (await start_platform(env={"DATABASE_URL": database_url})).platform.database


def _add(unit: Unit, row: RateWindow) -> None:
    unit.session.add(row)


class TestSharedCounters(CacheConformance):
    @pytest.fixture
    async def cache(self, database: Database) -> AsyncIterator[Cache]:
        """One process's counters, in a real database."""
        counters = SharedCounters(database)
        yield counters
        await counters.close()

    async def test_stopping_hands_over_every_call(self, database: Database) -> None:
        """What one process counted until it stopped, another that starts then continues from."""
        one, two = SharedCounters(database), SharedCounters(database)
        for _ in range(7):
            await one.increment("handed-over", 86_400)
        await one.close()
        assert await two.count("handed-over", 86_400) == 7
        await two.increment("handed-over", 86_400)
        await two.close()
        assert await one.count("handed-over", 86_400) == 8

    async def test_sums_reach_whoever_counts(self, database: Database) -> None:
        """A process soon knows what another counted of the same key, and no call is lost or counted twice."""
        one, two = SharedCounters(database), SharedCounters(database)
        for _ in range(50):
            await one.increment("shared", 86_400)
        calls = 0

        async def heard() -> bool:
            nonlocal calls
            calls += 1
            return (await two.increment("shared", 86_400))[0] == 50 + calls

        await eventually(heard, 10)
        await one.close()
        await two.close()
        assert await one.count("shared", 86_400) == 50 + calls

    async def test_calls_during_an_outage_are_told_after_it(
        self, database: Database, caplog: pytest.LogCaptureFixture
    ) -> None:
        """What a process counted while the table could not be written reaches the others once it can."""
        one, two = SharedCounters(database), SharedCounters(database)
        await execute(database, text("ALTER TABLE shared_counters_window RENAME TO out_of_reach"))
        for _ in range(3):
            await one.increment("meanwhile", 86_400)
        await eventually(lambda: "until the database is back" in caplog.text, 10)
        await execute(database, text("ALTER TABLE out_of_reach RENAME TO shared_counters_window"))
        await one.close()
        assert await two.count("meanwhile", 86_400) == 3

    async def test_windows_gone_by_are_removed(self, database: Database) -> None:
        """The table keeps no window that is over, nor a name; one that ends soon is another process's."""
        now = int(time.time())
        ends = {5: now - 1, 7: now + 600}
        for count, end in ends.items():
            row = RateWindow(key_hash=secrets.token_hex(16), window_end=end, count=count)
            await database.write(_add, row)
        cache = SharedCounters(database)
        await cache.increment("ratelimit:203.0.113.9", 86_400)
        await cache.close()
        left = await database.read(lambda session: session.scalars(select(RateWindow)).all())
        assert sorted(row.count for row in left) == [1, 7]
        assert not any("203.0.113.9" in row.key_hash for row in left)

    async def test_more_keys_than_one_transaction_takes(self, database: Database) -> None:
        """A crowd of callers reaches the table in several turns, each once."""
        cache = SharedCounters(database)
        for number in range(2_500):
            await cache.increment(f"crowd-{number}", 86_400)

        async def written() -> bool:
            counted = select(func.sum(RateWindow.count))
            return await database.read(lambda session: session.scalar(counted)) == 2_500

        await eventually(written, 20)
        await cache.close()


async def test_a_machine_that_is_ahead_removes_no_window_of_others(
    start_platform: Start, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where machines share a server, its clock says which windows are over."""
    database = (await start_platform(env={"DATABASE_URL": postgres_url})).platform.database
    one, two, clock = SharedCounters(database), SharedCounters(database), OwnClock(monkeypatch)
    await one.increment("counted", 86_400)
    await one.close()
    clock.by(2 * 86_400.0)
    await two.increment("elsewhere", 86_400)
    await two.close()
    clock.by(0)
    assert await SharedCounters(database).count("counted", 86_400) == 1


async def test_a_flood_in_the_table(start_platform: Start) -> None:
    """Past 200,000 rows, what ends within the hour goes, counted or not; longer windows stay."""
    database = (await start_platform()).platform.database
    flood = text(
        "INSERT INTO shared_counters_window (key_hash, window_end, count) WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200001) SELECT 'flood-' || i, :soon, 1 FROM n"
    )
    await execute(database, flood.bindparams(soon=int(time.time()) + 600))
    cache = SharedCounters(database)
    await cache.increment("a whole day", 86_400 * 365)
    await cache.close()
    left = await database.read(lambda session: session.scalars(select(RateWindow.count)).all())
    assert left == [1]


async def test_database_that_does_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    """Each process counts on alone, says so once, and stops without waiting for the database."""
    cache = SharedCounters(Database("postgresql+asyncpg://nobody@127.0.0.1:1/nothing"))
    assert [(await cache.increment("key", 86_400))[0] for _ in range(3)] == [1, 2, 3]
    assert await cache.count("key", 86_400) == 3
    await cache.close()
    assert (await cache.increment("key", 86_400))[0] == 4
    assert [record.levelname for record in caplog.records if record.name == "platform.cache"] == ["WARNING"]


class SilentDatabase(Database):
    """A server that was there and says nothing more."""

    async def read(self, *_arguments: Any, **_options: Any) -> Any:
        await asyncio.Event().wait()


async def test_database_that_falls_silent() -> None:
    """A question to it ends soon, with what is known here."""
    cache = SharedCounters(SilentDatabase("postgresql+asyncpg://nobody@127.0.0.1:1/nothing"))
    async with asyncio.timeout(10):
        assert await cache.count("key", 86_400) == 0


@pytest.mark.parametrize(
    ("store", "workers", "kind"),
    [("auto", "2", SharedCounters), ("auto", "1", MemoryCache), ("database", "1", SharedCounters)],
)
async def test_who_counts_there(start_platform: Start, store: str, workers: str, kind: type[Cache]) -> None:
    """Several processes, and one whose setting demands it; one alone needs no table."""
    running = await start_platform(env={"PLATFORM_CACHE_STORE": store, "PLATFORM_WORKERS": workers})
    assert isinstance(running.platform.cache, kind)


async def test_flood_of_keys_is_bounded() -> None:
    """A caller who changes its name with each request can't fill the memory."""
    cache = SharedCounters(Database("postgresql+asyncpg://nobody@127.0.0.1:1/nothing"))
    for number in range(120_000):
        await cache.increment(f"key-{number}", 60)
    assert cache.size <= 50_001
    await cache.close()
