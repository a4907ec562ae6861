"""Rate limits of several API processes without Redis: one allowance for all of them, through the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr
from sqlalchemy import func, select

from builtin_plugins.shared_counters.models import RateWindow
from kernel.db.engine import Database
from kernel.settings.loading import KernelSettings
from kernel.stores.cache import MemoryCache
from kernel.testing import Running, Start
from tests.fakes.echo import EchoPlugin
from tests.fakes.processes import listening, served_platform, without_plugins
from tests.fakes.waiting import eventually, room_in_the_minute
from tests.kernel.test_outage import Server

SECRET = {"JWT_SECRET": "a secret of at least thirty-two bytes, for tests"}
LIMIT = 20
ON = {**SECRET, "RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_PER_MINUTE": str(LIMIT)}
SEVERAL = {**ON, "PLATFORM_WORKERS": "2"}
AT_ONCE = 4


async def signed_in_is_told(running: Running) -> bool:
    """Whether the table holds the note of a sign-in, the only window that lasts for days."""
    lasting = select(func.count()).where(RateWindow.window_end > time.time() + 86_400)
    return bool(await running.platform.database.read(lambda session: session.scalar(lasting)))


async def status(running: Running) -> int:
    return (await running.anonymous.get("/v1/echo/open")).status


async def until_refused(running: Running) -> int:
    """How many requests one process lets through before the first 429."""
    passed = 0

    async def refused() -> bool:
        nonlocal passed
        if await status(running) == 429:
            return True
        passed += 1
        return False

    await eventually(refused, 10)
    return passed


class TestTwoPlatforms:
    async def test_one_allowance(self, start_platform: Start, database_url: str | None) -> None:
        """What one process let through is used up in the other, but for what came before it heard of it."""
        await room_in_the_minute(15)
        env = {**SEVERAL, "DATABASE_URL": database_url}
        one, two = await start_platform(EchoPlugin, env=env), await start_platform(EchoPlugin, env=env)
        assert [await status(one) for _ in range(LIMIT + 1)] == [200] * LIMIT + [429]
        assert await until_refused(two) < LIMIT
        found = [await each.anonymous.get("/v1/echo/open") for each in (one, two) * 10]
        assert {answer.status for answer in found} == {429}
        left = 60 - time.time() % 60
        assert all(left - 2 <= int(answer.headers["Retry-After"]) <= left + 2 for answer in found[-2:])

    async def test_a_known_address_is_known_to_all(
        self, start_platform: Start, database_url: str | None
    ) -> None:
        """Who signed in through one process is not slowed down by guesses that reach another."""
        await room_in_the_minute(20)
        env = {**SEVERAL, "DATABASE_URL": database_url, "RATE_LIMIT_PER_MINUTE": "1000"}
        env["AUTH_RATE_LIMIT_PER_MINUTE"] = "1000"
        one, two = await start_platform(env=env), await start_platform(env=env)
        await one.user("ana")
        await eventually(lambda: signed_in_is_told(two), 10)
        guess = {"username": "ana", "password": "a wrong guess"}

        async def guesses(running: Running) -> set[int]:
            return {(await running.anonymous.post("/v1/auth/login", json=guess)).status for _ in range(12)}

        assert await guesses(two) == {401}

    async def test_database_that_goes_away(self, start_platform: Start, postgres_url: str) -> None:
        """Each process goes on counting by itself, and nobody gets a 5xx for it."""
        await room_in_the_minute(15)
        running = await start_platform(EchoPlugin, env={**SEVERAL, "DATABASE_URL": postgres_url})
        server = Server(postgres_url)
        assert await status(running) == 200
        await server.close()
        found = [await status(running) for _ in range(LIMIT)]
        await server.open()
        assert found == [200] * (LIMIT - 1) + [429]

    async def test_one_process_counts_in_memory(self, start_platform: Start) -> None:
        running = await start_platform(EchoPlugin, env=ON)
        assert isinstance(running.platform.cache, MemoryCache)


async def fresh(url: str) -> tuple[int, Any]:
    """A request over its own connection: whichever process takes it."""
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, answer.headers.get("Retry-After")


@asynccontextmanager
async def database_of(home: Path, url: str | None) -> AsyncIterator[Database]:
    """The database of a platform in processes of its own."""
    settings = KernelSettings(home=home, database_url=SecretStr(url) if url else None)
    database = Database(settings.sqlalchemy_url)
    try:
        yield database
    finally:
        await database.close()


async def is_counted(database: Database, requests: int) -> bool:
    """Whether so many have been added to the table this minute."""
    soon = RateWindow.window_end <= time.time() + 60
    query = select(func.sum(RateWindow.count)).where(soon)
    return (await database.read(lambda session: session.scalar(query)) or 0) >= requests


@pytest.mark.long
async def test_processes_on_one_port(tmp_path: Path, database_url: str | None) -> None:
    """`serve --workers 2`: past the limit every connection is refused, whichever process it reaches."""
    env = {**ON, **without_plugins(), **({"DATABASE_URL": database_url} if database_url else {})}
    home = tmp_path / "home"
    async with served_platform(home, "--workers", "2", "--no-worker", env=env) as served:
        await eventually(lambda: len(listening(served.process)) == 2, 30)
        url = f"{served.url}/v1/auth/capabilities"
        await room_in_the_minute(30)
        found: list[tuple[int, Any]] = []
        async with database_of(home, database_url) as database:
            while {status for status, _ in found[-LIMIT:]} != {429} and len(found) < LIMIT * 10:
                found += await asyncio.gather(*(fresh(url) for _ in range(AT_ONCE)))
                # However slow the disk is, one process hears of the other before the next requests.
                await eventually(partial(is_counted, database, len(found)), 25)
    passed = sum(status == 200 for status, _ in found)
    assert LIMIT <= passed <= LIMIT + 3 * AT_ONCE, passed
    assert {status for status, _ in found[-LIMIT:]} == {429}
    assert all(1 <= int(left) <= 60 for _, left in found[-LIMIT:])
