"""B1 to B4: requests on the gateway, forwarding, start, idle memory (design.md section 4).

python -m tests.benchmarks.requests
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from statistics import median

import psutil

from tests.benchmarks.load import Result, load
from tests.benchmarks.serving import account, bare, platform
from tests.benchmarks.table import Row, print_table

SECONDS = 3.0
ROUNDS = 5
CONNECTIONS = 32
PATH = "/v1/permissions"


async def requests(folder: Path) -> list[Row]:
    """B1: an authenticated GET against a bare handler that returns the same bytes, in turns."""
    async with platform(folder / "home", "--no-worker") as served:
        token = await account(served)
        body = await _body(served.url, token)
        async with bare(body, folder) as baseline:
            pairs = [await _pair(baseline.port, served.port, token) for _ in range(ROUNDS)]
    rate = median(ours.rate / theirs.rate for theirs, ours in pairs)
    p99 = median(ours.p99 / theirs.p99 for theirs, ours in pairs)
    errors = sum(ours.errors for _, ours in pairs)
    figures = f"{median(o.rate for _, o in pairs):,.0f}/s against {median(t.rate for t, _ in pairs):,.0f}/s"
    return [
        Row(
            "B1",
            "authenticated GET, requests/s",
            f"{rate:.2f} ({figures}, {errors} errors)",
            ">= 0.5",
            rate >= 0.5,
        ),
        Row("B1", "authenticated GET, p99", f"{p99:.2f} x bare", "< 2", p99 < 2),
    ]


async def _pair(bare_port: int, our_port: int, token: str) -> tuple[Result, Result]:
    theirs = await load(bare_port, "/bare", connections=CONNECTIONS, seconds=SECONDS)
    ours = await load(our_port, PATH, token=token, connections=CONNECTIONS, seconds=SECONDS)
    return theirs, ours


async def _body(url: str, token: str) -> bytes:
    import aiohttp

    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url + PATH) as answer:
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
    """All of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [*await start(folder), *await requests(folder), *await forwarding(folder)]
    print_table(rows)


if __name__ == "__main__":
    asyncio.run(main())
