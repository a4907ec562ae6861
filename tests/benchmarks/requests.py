"""B1 to B4 and B23: requests on the gateway, forwarding, start, idle memory, health (design.md section 4).

B1 asks for half of a bare handler's rate where the answer tells of declarations, and a quarter where rows are
read (one, and a list), with a p99 below three times that of the bare handler.

python -m tests.benchmarks.requests
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import aiohttp
import psutil

from tests.benchmarks.load import Result, load
from tests.benchmarks.serving import Served, account, bare, platform
from tests.benchmarks.table import Row, print_table

SECONDS = 2.0
ROUNDS = 3
CONNECTIONS = 32
BASES = "/v1/rag/knowledge-bases"
ITEMS = 10


@dataclass(frozen=True)
class Run:
    """What a load found, and the server's processor time for each request in microseconds."""

    result: Result
    cpu: float


async def requests(folder: Path) -> list[Row]:
    """B1: authenticated GETs against bare handlers that return the same bytes, in turns."""
    rows = list[Row]()
    async with platform(folder / "home", "--no-worker") as served:
        token = await account(served)
        routes = ("/v1/permissions", "/v1/auth/capabilities", await _fill(served, token), BASES)
        for path in routes:
            async with bare(await _body(served.url + path, token), folder) as baseline:
                full = [await _pair(baseline, served, path, token) for _ in range(ROUNDS)]
                rate = median(ours.result.rate for _, ours in full) / 3
                calm = [await _pair(baseline, served, path, token, rate) for _ in range(ROUNDS)]
            what = "one row" if path == routes[2] else path
            least = 0.25 if path in routes[2:] else 0.5
            rows += [_capacity(what, full, least), _p99(f"{what}, {_offered(rate)}", calm)]
        key = await _key(served, token)
        async with bare(await _body(served.url + routes[2], key), folder) as baseline:
            full = [await _pair(baseline, served, routes[2], key) for _ in range(ROUNDS)]
            rows.append(_capacity("one row, with a personal access token", full))
        for path in ("/health", "/readyz"):
            async with bare(await _body(served.url + path, None), folder) as baseline:
                full = [await _pair(baseline, served, path, None) for _ in range(ROUNDS)]
                rate = median(ours.result.rate for _, ours in full)
                row = _capacity(path, full)
                rows.append(replace(row, budget="B23", wanted=">= 3,000/s", met=rate >= 3000))
    return rows


async def _fill(served: Served, token: str) -> str:
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(served.url, headers=headers) as session:
        for number in range(ITEMS):
            async with session.post(BASES, json={"name": f"Shelf {number}"}) as answer:
                assert answer.ok, await answer.text()
                made = await answer.json()
    return f"{BASES}/{made['id']}"


async def _key(served: Served, token: str) -> str:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(served.url, headers=headers) as session,
        session.post("/v1/auth/tokens", json={"name": "benchmark"}) as answer,
    ):
        return str((await answer.json())["token"])


def _capacity(what: str, pairs: Sequence[tuple[Run, Run]], least: float = 0.0) -> Row:
    ratio = median(ours.result.rate / theirs.result.rate for theirs, ours in pairs)
    mine, bares = (median(pair[i].result.rate for pair in pairs) for i in (1, 0))
    errors = sum(ours.result.errors for _, ours in pairs)
    cpu = f"{median(o.cpu for _, o in pairs):.0f} us against {median(t.cpu for t, _ in pairs):.0f} us"
    figure = f"{ratio:.2f} ({mine:,.0f}/s against {bares:,.0f}/s, {errors} errors; {cpu})"
    wanted = f">= {least} of bare" if least else "-"
    return Row("B1", f"{what}, requests/s", figure, wanted, not errors and ratio >= least)


def _offered(rate: float) -> str:
    return f"open loop, {rate:,.0f}/s offered to both"


def _p99(how: str, pairs: Sequence[tuple[Run, Run]]) -> Row:
    ratio = median(ours.result.p99 / theirs.result.p99 for theirs, ours in pairs)
    mine, bares = (median(pair[i].result.p99 for pair in pairs) for i in (1, 0))
    figure = f"{ratio:.2f} x bare ({mine:.2f} ms against {bares:.2f} ms)"
    return Row("B1", f"{how}, p99", figure, "< 3 x", ratio < 3)


async def _pair(
    baseline: Served, served: Served, path: str, token: str | None, rate: float | None = None
) -> tuple[Run, Run]:
    theirs = await _run(baseline, "/bare", None, rate)
    return theirs, await _run(served, path, token, rate)


async def _run(served: Served, path: str, token: str | None, rate: float | None) -> Run:
    process = psutil.Process(served.process.pid)
    before = process.cpu_times()
    result = await load(served.port, path, token=token, connections=CONNECTIONS, seconds=SECONDS, rate=rate)
    after = process.cpu_times()
    used = after.user + after.system - before.user - before.system
    return Run(result, used / (result.rate * SECONDS) * 1e6)


async def _body(url: str, token: str | None) -> bytes:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as answer:
        return await answer.read()


async def forwarding(folder: Path) -> list[Row]:
    """B2: what the gateway adds to a call of a service on another port."""
    home = folder / "home-proxy"
    env = {"PLATFORM_HOME": str(home)}
    async with platform(home, "--no-worker") as first:
        token = await account(first)
    async with platform(home, "--no-worker", "--only", "rag-pipeline", env=env) as service:
        urls = {"PLATFORM_SERVICE_URLS": f"rag-pipeline={service.url}"}
        async with platform(home, "--no-worker", env=urls) as gateway:
            rows = []
            for _ in range(ROUNDS):
                direct = await load(
                    service.port, "/knowledge-bases", token=token, connections=1, seconds=SECONDS
                )
                path = "/v1/rag/knowledge-bases"
                through = await load(gateway.port, path, token=token, connections=1, seconds=SECONDS)
                rows.append((through.p50 - direct.p50, through.p99 - direct.p99))
    p50, p99 = median(r[0] for r in rows), median(r[1] for r in rows)
    return [
        Row("B2", "forwarding adds, p50", f"{p50:.2f} ms", "< 1.5 ms", p50 < 1.5),
        Row("B2", "forwarding adds, p99", f"{p99:.2f} ms", "< 5 ms", p99 < 5),
    ]


async def start(folder: Path) -> list[Row]:
    """B3 and B4: the second start, and the memory of the API process before the first embedding."""
    home = folder / "home-start"
    async with platform(home):
        pass
    seconds, memory = [], []
    for _ in range(ROUNDS):
        async with platform(home, "--no-worker") as served:
            seconds.append(served.seconds_to_health)
            await account(served)
            memory.append(psutil.Process(served.process.pid).memory_info().rss / 2**20)
    time, resident = median(seconds), median(memory)
    return [
        Row("B3", "start to the first 200 on /health", f"{time:.2f} s", "< 2 s", time < 2),
        Row("B4", "idle memory of the API process", f"{resident:.0f} MB", "< 150 MB", resident < 150),
    ]


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [*await start(folder), *await requests(folder), *await forwarding(folder)]
    print_table(rows)


if __name__ == "__main__":
    asyncio.run(main())
