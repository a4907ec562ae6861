"""PostgreSQL restarted, and networks that drop or stall, while clients read and write.

Nothing that was acknowledged is lost, every answer is honest, and no process has to be started again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from kernel.testing import eventually
from tests.fakes.clusters import Cluster, own_cluster
from tests.fakes.network import Wire, wire_to
from tests.fakes.processes import Served, served_platform, without_plugins

pytestmark = [pytest.mark.long, pytest.mark.durability]

log = logging.getLogger("figures")  # shown by --log-cli-level=INFO

HONEST = {200, 503, 504}
CLIENTS = 6
BASES = "/v1/rag/knowledge-bases"


@dataclass
class Load:
    """Clients that make knowledge bases and list them, and what they were told."""

    served: Served
    account: dict[str, str]
    acknowledged: set[str] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)
    dishonest: set[str] = field(default_factory=set)
    longest: float = 0.0
    last_success: float = 0.0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ask and write for the length of the block."""
        stop = asyncio.Event()
        tasks = [asyncio.create_task(self._client(number, stop)) for number in range(CLIENTS)]
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*tasks)

    async def _client(self, number: int, stop: asyncio.Event) -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            name = f"base {number}-{turn}"
            if (await self._ask("POST", json={"name": name})) == 200:
                self.acknowledged.add(name)
            await self._ask("GET")

    async def _ask(self, method: str, **options: object) -> int:
        started = time.monotonic()
        url, timeout = self.served.url + BASES, aiohttp.ClientTimeout(total=60)
        async with self.served.session.request(
            method, url, headers=self.account, timeout=timeout, **options
        ) as answer:
            said = (await answer.read())[:300]
        self.longest = max(self.longest, time.monotonic() - started)
        self.statuses[answer.status] += 1
        if answer.status not in HONEST:
            self.dishonest.add(f"{answer.status} {said!r}")
        if answer.status == 200:
            self.last_success = time.monotonic()
        else:
            await asyncio.sleep(0.02)  # as clients do that are refused
        return answer.status

    async def goes_on(self) -> float:
        """Wait until requests succeed again; the seconds that this took."""
        asked = time.monotonic()
        await eventually(lambda: self.last_success > asked)
        return time.monotonic() - asked

    async def check(self) -> None:
        """Only honest answers, and each acknowledged row is there once."""
        assert not self.dishonest, (self.statuses, self.dishonest)
        found: Counter[str] = Counter()
        page = 1
        while True:
            async with self.served.session.get(
                f"{self.served.url}{BASES}", params={"page": page, "limit": 100}, headers=self.account
            ) as answer:
                body = await answer.json()
                assert answer.status == 200, body
            found.update(item["name"] for item in body["items"])
            if len(body["items"]) < 100:
                break
            page += 1
        assert self.acknowledged, "nothing was acknowledged: the test tested nothing"
        assert self.acknowledged <= set(found)
        assert max(found.values()) == 1


@asynccontextmanager
async def under_load(home: Path, env: dict[str, str]) -> AsyncIterator[Load]:
    """A platform in its own process, with a worker, and clients."""
    values = {**without_plugins("rag", "embeddings"), **env}
    async with served_platform(home, env=values) as served:
        load = Load(served, await served.sign_up())
        async with load.running():
            await load.goes_on()
            yield load
            await load.goes_on()
        await load.check()
        assert served.process.returncode is None


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """How often each fault comes."""
    return int(request.config.getoption("rounds"))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with own_cluster() as found:
        yield found


async def test_postgresql_restarted(platform_home: Path, cluster: Cluster, rounds: int) -> None:
    """Stopped in an orderly way, and crashed: 503 meanwhile, then all goes on by itself."""
    async with under_load(platform_home, {"DATABASE_URL": cluster.url}) as load:
        for _ in range(rounds):
            for how in ("fast", "immediate"):
                await asyncio.to_thread(cluster.stop, how)
                before = load.statuses[503]
                await eventually(lambda before=before: load.statuses[503] > before)
                await asyncio.to_thread(cluster.start)
                took = await load.goes_on()
                log.info("%s", f"PostgreSQL stopped ({how}): requests go on {took:.2f} s after its start")
        status, health = await load.served.get("/health")
        assert (status, health["checks"]["database"]) == (200, "healthy")
    told, made = dict(load.statuses), len(load.acknowledged)
    log.info("statuses %s, %s acknowledged, the longest took %.2f s", told, made, load.longest)


@asynccontextmanager
async def wired(url: str) -> AsyncIterator[tuple[Wire, str]]:
    """A network to the server of this address, and the address on its other end."""
    parts = urlsplit(url)
    async with wire_to(parts.hostname or "", parts.port or 0) as wire:
        yield wire, parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{wire.port}")).geturl()


@pytest.mark.long
async def test_the_network_to_postgresql(platform_home: Path, postgres_url: str, rounds: int) -> None:
    """Connections that are reset are opened again; what was held back continues where it left off."""
    async with wired(postgres_url) as (wire, url), under_load(platform_home, {"DATABASE_URL": url}) as load:
        for _ in range(rounds):
            await wire.drop()
            before = load.statuses[503]
            await eventually(lambda before=before: load.statuses[503] > before)
            wire.restore()
            log.info("%s", f"PostgreSQL dropped: requests go on after {await load.goes_on():.2f} s")
            wire.stall()
            assert (await load.served.get("/livez"))[0] == 200
            assert (await load.served.get("/health"))[0] == 503
            wire.restore()
            log.info("%s", f"PostgreSQL stalled: requests go on after {await load.goes_on():.2f} s")


@pytest.mark.long
async def test_postgresql_that_vanishes(platform_home: Path, postgres_url: str, rounds: int) -> None:
    """No packet arrives any more, no connection ends: requests are refused soon, and go on by themselves."""
    async with wired(postgres_url) as (wire, url), under_load(platform_home, {"DATABASE_URL": url}) as load:
        for _ in range(rounds):
            before = load.statuses[503]
            wire.vanish()
            took = await eventually(lambda before=before: load.statuses[503] >= before + CLIENTS)
            log.info("%s", f"PostgreSQL vanished: all clients are told within {took:.2f} s")
            assert (await load.served.get("/livez"))[0] == 200
            assert (await load.served.get("/health"))[0] == 503
            wire.come_back()
            log.info("%s", f"PostgreSQL back: requests go on after {await load.goes_on():.2f} s")
    log.info("%s", f"{load.statuses}, the longest took {load.longest:.2f} s")


async def test_the_network_to_redis(
    platform_home: Path, database_url: str | None, redis_url: str, rounds: int
) -> None:
    """Without the cache, which limits requests, everything is served; nobody waits for it."""
    async with wired(redis_url) as (wire, url):
        env = {"REDIS_URL": url, "RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_ACCOUNT_PER_MINUTE": "1000000"}
        if database_url is not None:
            env["DATABASE_URL"] = database_url
        async with under_load(platform_home, env) as load:
            for _ in range(rounds):
                await wire.drop()
                log.info("%s", f"Redis dropped: requests go on after {await load.goes_on():.2f} s")
                wire.restore()
                wire.stall()
                log.info("%s", f"Redis stalled: requests go on after {await load.goes_on():.2f} s")
                wire.restore()
        assert set(load.statuses) == {200}, load.statuses
