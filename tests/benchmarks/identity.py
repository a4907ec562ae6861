"""Identity under pressure: how soon a revocation bites, what times tell, and what a flood of sign-ins costs.

`python -m tests.benchmarks.identity [revocation] [times] [flood]` (default: all). Two API processes share one
database; PostgreSQL and Redis are those of the tests, and are left out where they do not answer. A revocation
whose notice is lost is one that was written past the platform, straight into the table.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import jwt
import psutil
from aiohttp import web

from kernel.testing import REDIS, postgres_database
from tests.benchmarks.load import load
from tests.benchmarks.serving import Served, account, free_port, platform
from tests.benchmarks.table import Row, print_table

SECRET = "a secret of at least thirty-two bytes, for benchmarks"
PASSWORD = "a long enough password"
ACCOUNTS, ROUNDS = 10, 6  # at the same moment, and one after another
PAUSE = 0.02  # between two requests with one token: what the measured times are exact to
TRIES = 200
CLIENTS, RUNS, RUN_SECONDS, OFFERED = 200, 5, 4.0, 50.0
FLOOD_SECONDS = 4 + RUNS * (RUN_SECONDS + 1)
PATH = "/v1/permissions"
HASH = 64  # MiB that one argon2 hash takes


@dataclass
class World:
    """Two processes on one database, and somebody who may deactivate others in the first."""

    here: Served
    there: Served
    session: aiohttp.ClientSession
    admin: dict[str, str]
    lose: Callable[[int], Coroutine[Any, Any, None]]
    epochs: dict[int, int] = field(default_factory=dict)

    def token(self, number: int) -> dict[str, str]:
        """The header of a live session of an account."""
        now = int(time.time())
        claims = {"sub": str(number), "iat": now, "exp": now + 900, "epoch": self.epochs[number]}
        return bearer(jwt.encode(claims, SECRET, "HS256"))

    async def revoke(self, number: int, heard: bool) -> float:
        """End the sessions of an account; returns the moment at which that was acknowledged."""
        self.epochs[number] += 1
        if not heard:
            await self.lose(number)
            return time.perf_counter()
        await self.set_active(number, False)
        return time.perf_counter()

    async def set_active(self, number: int, is_active: bool) -> None:
        url = f"{self.here.url}/v1/auth/users/{number}/status"
        async with self.session.patch(url, json={"is_active": is_active}, headers=self.admin) as answer:
            assert answer.status == 200, await answer.text()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def two_processes(
    folder: Path, database: str | None, redis: str | None, upstream: int
) -> AsyncIterator[World]:
    home = folder / "home"
    env = {"JWT_SECRET": SECRET, "PLATFORM_SERVICE_URLS": f"tts-stt=http://127.0.0.1:{upstream}"}
    env |= {"DATABASE_URL": database} if database else {}
    env |= {"REDIS_URL": redis} if redis else {}
    await make_administrator(home, env)
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(platform(home, "--no-worker", env=env))
        there = await stack.enter_async_context(platform(home, "--no-worker", env=env))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        admin = bearer(await sign_in(session, here, "admin"))
        world = World(here, there, session, admin, writer(home, database))
        for number in range(ACCOUNTS):
            claims = jwt.decode(await account(here, f"user{number}"), SECRET, ["HS256"])
            world.epochs[int(claims["sub"])] = claims["epoch"]
        yield world


async def make_administrator(home: Path, env: dict[str, str]) -> None:
    command = (sys.executable, "-m", "cli", "users", "create", "admin", "--admin", "--password-stdin")
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "PLATFORM_HOME": str(home), **env},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    await process.communicate(PASSWORD.encode())
    assert process.returncode == 0


async def sign_in(session: aiohttp.ClientSession, served: Served, name: str) -> str:
    body = {"username": name, "password": PASSWORD}
    async with session.post(f"{served.url}/v1/auth/login", json=body) as answer:
        return str((await answer.json())["access_token"])


def writer(home: Path, database: str | None) -> Callable[[int], Coroutine[Any, Any, None]]:
    """Raises an epoch in the table, and tells nobody."""
    statement = "UPDATE kernel_account SET epoch = epoch + 1 WHERE id = {}"

    async def in_sqlite(number: int) -> None:
        def write() -> None:
            with sqlite3.connect(home / "platform.db", timeout=30) as connection:
                connection.execute(statement.format(int(number)))
            connection.close()

        await asyncio.to_thread(write)

    async def in_postgres(number: int) -> None:
        connection = await asyncpg.connect(database)
        await connection.execute(statement.format(int(number)))
        await connection.close()

    return in_postgres if database else in_sqlite


async def last_accepted(world: World, number: int, heard: bool) -> float:
    """Seconds from the acknowledged revocation to the last answer that still accepted the token, there."""
    token, accepted = world.token(number), 0.0
    warm, refused = asyncio.Event(), asyncio.Event()

    async def ask() -> None:
        nonlocal accepted
        while not refused.is_set():
            async with world.session.get(world.there.url + PATH, headers=token) as answer:
                status = answer.status
            if status == 401 and warm.is_set():
                refused.set()
            elif status == 200:
                accepted = time.perf_counter()
                warm.set()
            await asyncio.sleep(PAUSE)

    asking = asyncio.create_task(ask())
    await warm.wait()
    await asyncio.sleep(random.uniform(0.0, 2.0))
    acknowledged = await world.revoke(number, heard)
    await asking
    if heard:
        await world.set_active(number, True)
    return max(0.0, accepted - acknowledged)


async def stream_lasted(world: World, number: int, heard: bool) -> float:
    """Seconds from the acknowledged revocation to the end of a stream that the other process passes on."""
    ended = 0.0
    url, opened = world.there.url + "/v1/tts/endless", asyncio.Event()

    async def listen() -> None:
        nonlocal ended
        while not opened.is_set():  # a reactivation takes its time to get there, too
            with suppress(aiohttp.ClientError):
                async with world.session.get(url, headers=world.token(number)) as answer:
                    async for _ in answer.content.iter_any():
                        if answer.status == 200:
                            opened.set()
        ended = time.perf_counter()

    listening = asyncio.create_task(listen())
    await opened.wait()
    await asyncio.sleep(random.uniform(0.0, 2.0))
    acknowledged = await world.revoke(number, heard)
    await listening
    if heard:
        await world.set_active(number, True)
    return max(0.0, ended - acknowledged)


@asynccontextmanager
async def endless() -> AsyncIterator[int]:
    """A service that streams until its caller leaves; its port."""

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b"tick\n")
                await asyncio.sleep(PAUSE)
        return response

    app = web.Application()
    app.router.add_get("/{path:.*}", stream)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield port
    await runner.cleanup()


async def revocation() -> list[Row]:
    """In each setting: requests and streams, with the notice heard and lost."""
    rows: list[Row] = []
    for database in ("SQLite", "PostgreSQL"):
        for cache in ("embedded", "Redis"):
            with ExitStack() as stack, tempfile.TemporaryDirectory() as name:
                url = stack.enter_context(postgres_database()) if database == "PostgreSQL" else None
                redis = os.environ.get("PLATFORM_TEST_REDIS", REDIS) if cache == "Redis" else None
                async with endless() as port, two_processes(Path(name), url, redis, port) as world:
                    rows += await _in_one_setting(world, f"{database}, {cache}")
    return rows


async def _in_one_setting(world: World, setting: str) -> list[Row]:
    rows = []
    for what, measure in (("request", last_accepted), ("stream", stream_lasted)):
        for notice in ("heard", "lost"):
            found: list[float] = []
            for _ in range(ROUNDS):
                found += await asyncio.gather(*(measure(world, n, notice == "heard") for n in world.epochs))
            said = "last accepted request" if what == "request" else "end of a forwarded stream"
            rows.append(_revoked(f"{said}, {setting}, notice {notice}", found))
    return rows


def _revoked(what: str, found: Sequence[float]) -> Row:
    p99, worst = statistics.quantiles(found, n=100, method="inclusive")[98], max(found)
    lost = what.endswith("lost")
    met = worst < 3 and (lost or p99 < 1)
    figure = f"p50 {statistics.median(found):.2f} s, p99 {p99:.2f} s, longest {worst:.2f} s of {len(found)}"
    return Row("identity", what, figure, "never 3 s" if lost else "p99 < 1 s, never 3 s", met)


async def times() -> list[Row]:
    """Whether the time of an answer tells if an account exists: 200 tries of each, in random order."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        env = {
            "RATE_LIMIT_ENABLED": "false",
            "PLATFORM_SMTP_HOST": "127.0.0.1",
            "PLATFORM_MAIL_FROM": "platform@example.org",
        }
        async with platform(home, "--no-worker", env=env) as served, aiohttp.ClientSession() as session:
            await account(served, "known")
            log_in, reset = "/v1/auth/login", "/v1/auth/password-reset/request"
            logins = await _timed(
                session, served.url + log_in, lambda who: {"username": who, "password": "wrong"}
            )
            resets = await _timed(session, served.url + reset, lambda who: {"email": f"{who}@example.org"})
    return [_told("sign-in with a wrong password", logins), _told("request of a password reset", resets)]


async def _timed(
    session: aiohttp.ClientSession, url: str, body: Callable[[str], dict[str, str]]
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"known": [], "nobody": []}
    order = list(found) * TRIES
    random.shuffle(order)
    for who in ("known", "nobody", *order):
        started = time.perf_counter()
        async with session.post(url, json=body(who)) as answer:
            await answer.read()
        found[who].append(time.perf_counter() - started)
    return {who: taken[1:] for who, taken in found.items()}


def _told(what: str, found: dict[str, list[float]]) -> Row:
    """The chance that of one time of each kind the longer is that of the known account; 0.5 tells nothing."""
    known, nobody = found["known"], found["nobody"]
    longer = sum((a > b) + (a == b) / 2 for a in known for b in nobody) / (len(known) * len(nobody))
    medians = f"medians {statistics.median(known) * 1000:.1f} and {statistics.median(nobody) * 1000:.1f} ms"
    # Three standard errors of a rank statistic of two samples of 200.
    met = abs(longer - 0.5) < 0.087
    figure = f"known takes longer in {longer:.0%} of pairs ({medians})"
    return Row("identity", f"{what}, known against unknown, {TRIES} each", figure, "50 % ± 8.7", met)


FLOOD = """
import asyncio, aiohttp, sys, time
url, clients, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
stop, counts = time.monotonic() + seconds, {}
async def client(session, number):
    await asyncio.sleep(number / clients)
    while time.monotonic() < stop:
        body = {"username": f"user{number}", "password": "wrong"}
        async with session.post(url, json=body) as answer:
            await answer.read()
            counts[answer.status] = counts.get(answer.status, 0) + 1
            await asyncio.sleep(float(answer.headers.get("Retry-After", 0)))
async def main():
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(client(session, number) for number in range(clients)))
    print(counts)
asyncio.run(main())
"""


async def flood() -> list[Row]:
    """200 clients that sign in over and over, as soon as they are told they may; and what others notice.

    Median of runs before and during it; a machine that does other work shows in both.
    """
    with tempfile.TemporaryDirectory() as name:
        env = {"RATE_LIMIT_ENABLED": "false"}
        async with platform(Path(name) / "home", "--no-worker", env=env) as served:
            token = await account(served)
            process = psutil.Process(served.process.pid)
            calm = [await _p99(served, token) for _ in range(RUNS)]
            before = process.memory_info().rss
            flooding = asyncio.create_task(_flood(served))
            await asyncio.sleep(2)
            busy = [await _p99(served, token) for _ in range(RUNS)]
            said = await flooding
            peak = max(process.memory_info().rss, _high_water(process)) - before
    ratio = statistics.median(busy) / statistics.median(calm)
    threads = max(1, (os.cpu_count() or 2) // 2)
    bound = threads * HASH + 64
    figure = f"{ratio:.1f} x ({statistics.median(busy):.1f} ms against {statistics.median(calm):.1f} ms)"
    grown = peak / 2**20
    return [
        Row(
            "identity",
            f"p99 of other routes, {CLIENTS} sign-ins at once ({said})",
            figure,
            "<= 3",
            ratio <= 3,
        ),
        Row("identity", "memory that they take", f"{grown:.0f} MB", f"<= {bound} MB", grown <= bound),
    ]


async def _p99(served: Served, token: str) -> float:
    result = await load(served.port, PATH, token=token, connections=8, seconds=RUN_SECONDS, rate=OFFERED)
    return result.p99


async def _flood(served: Served) -> str:
    command = (sys.executable, "-c", FLOOD, f"{served.url}/v1/auth/login", str(CLIENTS), str(FLOOD_SECONDS))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return output.decode().strip()


def _high_water(process: psutil.Process) -> int:
    """The most memory that the process ever held (Linux)."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return 0
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return int(lines.get("VmHWM", "0 kB").split()[0]) * 1024


async def main(wanted: Sequence[str]) -> None:
    """What the command line names, or all."""
    parts = {"revocation": revocation, "times": times, "flood": flood}
    rows: list[Row] = []
    for name in wanted or parts:
        rows += await parts[name]()
    print_table(rows)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
