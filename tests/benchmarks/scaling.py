"""B18: requests, questions and ingestion with more API processes and workers, and what bounds them.

python -m tests.benchmarks.scaling [PASSAGES]

The set-up of docs/how-to/more-than-one-machine.md, on one machine: PostgreSQL with pgvector, Redis, an S3
store and nginx share its processor with the processes that are measured, and with the load. So each figure
comes with the cores that every kind of process had: the costs of a request and of a passage are what
carries over to more machines. With 51,000 PASSAGES, the default, a vector graph is
built as well.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import asyncpg
import psutil

from kernel.boot import open_platform
from kernel.settings.loading import SettingsLoader
from kernel.testing import REDIS, candidates_of, eventually, postgres_database
from tests.benchmarks.load import load_of, raw_request
from tests.benchmarks.query import Bench, served
from tests.benchmarks.shares import Pids, Shares, shares
from tests.benchmarks.table import Row, print_table
from tests.benchmarks.texts import article
from tests.builtin_plugins.pgvector import pgvector_server
from tests.fakes.machines import Machine, Machines, machines, nginx
from tests.fakes.processes import free_port
from tests.fakes.s3_server import weed_server

PASSAGES = 51_000
MODEL = "multilingual-e5-small"
PLUGINS = ("embeddings", "models", "rag", "extractive_answers", "s3_blobs")
SECONDS = 5.0
READERS, ASKERS = 32, 16
QUESTIONS = 600
DOCUMENTS, PARAGRAPHS = 4, 130
FIRST = 500
"""Passages with which an API process loads its model, before its memory is looked at."""
_GRAPHS_MADE = "SELECT count(*) FROM pg_index WHERE indisvalid AND indexrelid::regclass::text LIKE '%_hnsw_%'"
BASES = "/v1/rag/knowledge-bases"
ASKED, INGESTED = "questions", "ingested passages"
BEGAN = time.monotonic()


@dataclass(frozen=True)
class Shape:
    """How many processes of each kind."""

    apis: int
    workers: int

    def __str__(self) -> str:
        return f"{self.apis} API, {self.workers} worker{'s' * (self.workers > 1)}"


@dataclass(frozen=True)
class PassageCost:
    """What one passage costs: kilobytes in PostgreSQL by part; in each API process kilobytes, and
    milliseconds before its first answer.
    """

    stored: Mapping[str, float]
    memory: float
    loading: float


SHAPES = (Shape(1, 1), Shape(2, 2), Shape(3, 3))


@dataclass(frozen=True)
class Figure:
    """Things done a second, and what that took."""

    what: str
    shape: Shape
    rate: float
    count: float
    shares: Shares
    late: str = ""

    def row(self, alone: Figure) -> Row:
        """Beside the same thing with one process of each kind."""
        ratio = f", {self.rate / alone.rate:.2f} x" if self is not alone else ""
        figure = f"{self.rate:,.1f}/s{ratio}{self.late}; {self.shares}"
        return Row("B18", f"{self.what}, {self.shape}", figure, "none", True)

    def each(self) -> dict[str, float]:
        """Milliseconds of a core for one of these things, by kind of process."""
        return self.shares.each(self.count)

    def costs(self) -> Row:
        figure = ", ".join(f"{kind} {cost:.2f}" for kind, cost in self.each().items() if cost >= 0.005)
        return Row("B18", f"ms of a core for one of {self.what}, {self.shape}", figure, "none", True)


@dataclass(frozen=True)
class Town:
    """The machines, what they share, and a client's account with a filled knowledge base and an empty one."""

    cluster: Machines
    kinds: dict[str, Pids]
    token: str
    base: str
    pipeline: str
    empty: str
    questions: Iterator[str]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@contextmanager
def postgresql() -> Iterator[str]:
    """A server with pgvector if the wheel is installed, else the one that is there."""
    programs = pgvector_server.binaries()
    found = (
        pgvector_server.running_server(programs, synced=True) if programs else postgres_database(plain=True)
    )
    with found as url:
        yield url


@asynccontextmanager
async def town(folder: Path, passages: int) -> AsyncIterator[tuple[Town, PassageCost]]:
    """Everything started and filled; and what a passage costs."""
    with ExitStack() as stack:
        database = stack.enter_context(postgresql())
        (folder / "s3").mkdir()
        s3 = stack.enter_context(weed_server(folder / "s3"))
        shared = {
            "DATABASE_URL": database,
            "REDIS_URL": os.environ.get("PLATFORM_TEST_REDIS", REDIS),
            "JWT_SECRET": secrets.token_hex(32),
            "JWT_EXPIRATION_MINUTES": "600",
            "RATE_LIMIT_ENABLED": "true",  # as in service: each request is counted in Redis
            "RATE_LIMIT_PER_MINUTE": "1000000000",
            "RATE_LIMIT_ACCOUNT_PER_MINUTE": "1000000000",
            **s3.environment("scaling"),
        }
        (folder / "machines").mkdir()
        cluster_env = {**shared, "PLATFORM_WEB_CLIENT_PORT": "0"}
        async with machines(folder / "machines", cluster_env, apis=3, workers=3, at_once=1) as cluster:
            assert s3.process is not None
            store = s3.process.pid
            kinds: dict[str, Pids] = {
                "API": lambda: running(cluster.apis),
                "worker": lambda: running(cluster.workers),
                "PostgreSQL": lambda: server_of(database),
                "Redis": lambda: named("redis-server"),
                "S3": lambda: (store,),
            }
            async with filled(cluster, kinds, {**served(folder / "filler"), **shared}, passages) as found:
                yield found


def running(found: list[Machine]) -> list[int]:
    return [each.process.pid for each in found if each.process and each.process.returncode is None]


def server_of(url: str) -> list[int]:
    """The processes that listen on the port of this address."""
    port = urlsplit(url).port or 5432
    return sorted({each.pid for each in psutil.net_connections("tcp") if _listens(each, port) and each.pid})


def _listens(connection: psutil._common.sconn, port: int) -> bool:
    return connection.status == psutil.CONN_LISTEN and connection.laddr.port == port


def named(name: str) -> list[int]:
    return [process.pid for process in psutil.process_iter(["name"]) if process.info["name"] == name]


@asynccontextmanager
async def filled(
    cluster: Machines, kinds: dict[str, Pids], settings: dict[str, str], passages: int
) -> AsyncIterator[tuple[Town, PassageCost]]:
    """Points written past ingestion, while one API process answers."""
    api = cluster.apis[0]
    async with AsyncExitStack() as stack:
        loader = SettingsLoader(settings)
        platform = await stack.enter_async_context(
            open_platform(loader, role="api", candidates=candidates_of(*PLUGINS))
        )
        session = await stack.enter_async_context(
            aiohttp.ClientSession(f"http://127.0.0.1:{api.port}", timeout=aiohttp.ClientTimeout(total=1800))
        )
        bench = Bench(platform, session, MODEL)
        bench.paragraphs = 3
        await bench.prepare()
        await bench.fill(min(FIRST, passages))
        await bench.ask(-1)
        before = memory(api)
        await bench.fill(passages)
        if passages > FIRST:
            await graphed(settings["DATABASE_URL"], passages)
        began = asyncio.get_running_loop().time()
        await bench.ask(-2)
        loading = asyncio.get_running_loop().time() - began
        stored = await sizes(settings["DATABASE_URL"], passages)
        tell(f"{passages:,} passages written")
        later = max(1, passages - FIRST)
        cost = PassageCost(stored, (memory(api) - before) / later / 1000, loading / later * 1000)
        empty = (await bench.post(BASES, {"name": "ingested", "embedding_model": MODEL}))["id"]
        token = session.headers["Authorization"].removeprefix("Bearer ")
        questions = (bench.question(number) for number in range(10**9))
        yield Town(cluster, kinds, token, bench.base, bench.pipeline, empty, questions), cost


def memory(machine: Machine) -> int:
    assert machine.process is not None
    return int(psutil.Process(machine.process.pid).memory_full_info().uss)


async def graphed(url: str, passages: int) -> None:
    """Wait for the vector graph, where there will be one."""
    from builtin_plugins.pgvector.graphs import BUILD_ABOVE

    if passages > BUILD_ABOVE and pgvector_server.binaries():
        connection = await asyncpg.connect(url)

        async def built() -> bool:
            return bool(await connection.fetchval(_GRAPHS_MADE))

        try:
            await eventually(built, 1800)
        finally:
            await connection.close()


async def sizes(url: str, passages: int) -> dict[str, float]:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM ANALYZE")
        total = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relname"
        rows = await connection.fetchval(f"{total} LIKE 'vectors_point%' AND relkind = 'r'")
        vectors = await connection.fetchval(f"{total} = 'pgvector_point'")
        graphs = await connection.fetchval(f"{total} LIKE '%_hnsw_%' AND relkind = 'i'")
    finally:
        await connection.close()
    parts = {"rows": rows - vectors, "vectors": vectors - graphs, "graph": graphs}
    return {kind: float(size) / passages / 1000 for kind, size in parts.items()}


@asynccontextmanager
async def shaped(found: Town, shape: Shape) -> AsyncIterator[int]:
    """These machines alone, warm, behind their own nginx; the port of that."""
    cluster = found.cluster
    apis, workers = cluster.apis[: shape.apis], cluster.workers[: shape.workers]
    for machine in cluster.all:
        if machine not in (*apis, *workers):
            await machine.stop()
    for machine in (*apis, *workers):
        if not running([machine]):
            await machine.start()
    await asyncio.gather(*(warm(found, api.port or 0) for api in apis))
    port, folder = free_port(), Path(tempfile.mkdtemp(dir=apis[0].home.parent))
    async with nginx(folder, port, [api.port for api in apis if api.port]) as proxy:
        found.kinds["nginx"] = lambda: (proxy.pid,)
        await eventually(lambda: listening(port))
        yield port


def listening(port: int) -> bool:
    return any(_listens(each, port) for each in psutil.net_connections("tcp"))


async def warm(found: Town, port: int) -> None:
    timeout = aiohttp.ClientTimeout(total=1800)
    path = f"http://127.0.0.1:{port}/v1/rag/pipeline/{found.pipeline}/query"
    async with (
        aiohttp.ClientSession(headers=found.headers, timeout=timeout) as session,
        session.post(path, json={"question": next(found.questions)}) as answer,
    ):
        assert answer.status == 200, await answer.text()


async def measure(found: Town, shape: Shape) -> list[Figure]:
    async with shaped(found, shape) as port:
        reads = [f"{BASES}/{found.base}", BASES, f"{BASES}/{found.base}/documents", "/v1/permissions"]
        asked = [raw_request(path, found.token) for path in reads]
        figures = [await requested("mixed reads", found, shape, port, asked, READERS)]
        figures.append(await requested(ASKED, found, shape, port, list(questions(found)), ASKERS))
        figures.append(await ingested(found, shape, port))
    return figures


def questions(found: Town) -> Iterator[str]:
    path = f"/v1/rag/pipeline/{found.pipeline}/query"
    for _ in range(QUESTIONS):
        yield raw_request(path, found.token, f'{{"question": "{next(found.questions)}"}}')


async def requested(
    what: str, found: Town, shape: Shape, port: int, requests: list[str], connections: int
) -> Figure:
    await load_of(port, requests[-50:], connections=connections, seconds=1)
    async with shares(found.kinds) as spent:
        done = await load_of(port, requests[:-50] or requests, connections=connections, seconds=SECONDS)
    spent.cores["load"] = done.processor / spent.seconds
    assert not done.errors, f"{done.errors} of {what} were refused"
    late = f", p50 {done.p50:.0f} ms, p99 {done.p99:.0f} ms"
    return Figure(what, shape, done.rate, done.rate * done.seconds, spent, late)


async def ingested(found: Town, shape: Shape, port: int) -> Figure:
    """Documents, from the first upload until the last is completed; once before, for the workers' models."""
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=found.headers) as session:
        await ingest(session, found.empty, shape.workers)
        async with shares(found.kinds) as spent:
            passages = await ingest(session, found.empty, DOCUMENTS)
    return Figure(INGESTED, shape, passages / spent.seconds, passages, spent)


async def ingest(session: aiohttp.ClientSession, base: str, documents: int) -> int:
    """Upload new documents, and wait until they are completed; returns how many passages they have."""
    made = set()
    for _ in range(documents):
        name, form = secrets.token_hex(4), aiohttp.FormData()
        form.add_field("file", article(int(name, 16), PARAGRAPHS).encode(), filename=f"{name}.txt")
        async with session.post(f"{BASES}/{base}/upload", data=form) as answer:
            assert answer.status == 202, await answer.text()
            made.add((await answer.json())["document_id"])

    while await left(session, base):  # noqa: ASYNC110
        await asyncio.sleep(0.1)  # polling is what clients do, and more of it would be load
    passages = 0
    for document in made:
        async with session.get(f"{BASES}/{base}/documents/{document}") as answer:
            passages += (await answer.json())["chunk_count"]
    return passages


async def left(session: aiohttp.ClientSession, base: str) -> int:
    async with session.get(f"{BASES}/{base}/documents", params={"status": "processing"}) as answer:
        return int((await answer.json())["total"])


def tell(text: str) -> None:
    print(f"{time.monotonic() - BEGAN:6.0f} s: {text}", file=sys.stderr, flush=True)


def costs_of(cost: PassageCost, passages: int) -> list[Row]:
    stored = ", ".join(f"{kind} {size:.2f} kB" for kind, size in cost.stored.items())
    held = f"{cost.memory:.2f} kB of memory, {cost.loading:.2f} ms before the first answer"
    return [
        Row("B18", f"a passage in PostgreSQL, of {passages:,}", stored, "none", True),
        Row("B18", "a passage in each API process", held, "none", True),
    ]


async def main(passages: int = PASSAGES) -> None:
    with tempfile.TemporaryDirectory() as name:
        async with town(Path(name), passages) as (found, cost):
            figures = []
            for shape in SHAPES:
                figures += await measure(found, shape)
                tell(f"{shape}: measured")
    firsts = {figure.what: figure for figure in reversed(figures)}
    rows = [figure.row(firsts[figure.what]) for figure in figures]
    rows += [figure.costs() for figure in firsts.values()] + costs_of(cost, passages)
    print_table(rows)


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:2])))
