"""RDF in several processes: each has its own store, and answers from the rows as they are now."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pyoxigraph as ox
import pytest

from builtin_plugins.graph_rdf.rows import VisibleGraph
from builtin_plugins.graph_rdf.store import RdfStore
from kernel.testing import eventually
from tests.builtin_plugins.graph_rag.graph_support import API, INSTITUTE
from tests.fakes.machines import Machine
from tests.fakes.processes import free_port, process_environment, without_plugins

pytestmark = pytest.mark.durability

SECRET = "Emil Secretson bakes bread."
NAMES = (
    "SELECT DISTINCT ?name WHERE { ?e <http://www.w3.org/2004/02/skos/core#prefLabel> ?name } ORDER BY ?name"
)
ROUNDS = 6
_STAMP = "<urn:platform:stamp>"
STATEMENTS = 3_000
WRITER = """
import sys
from pathlib import Path
from builtin_plugins.graph_rdf.rows import VisibleGraph
from builtin_plugins.graph_rdf.store import RdfStore

store = RdfStore(Path(sys.argv[1]))
store.open()
number = 0
while True:
    one = VisibleGraph(number % 5, f"urn:g:{number % 5}", f"s{number}", "urn:o")
    lines = [f'<urn:s:{number % 5}> <urn:says> "{number} {at}"' for at in range(int(sys.argv[2]))]
    print("writing", flush=True)
    store.put({one: lines})
    number += 1
"""


class Member:
    """A machine and a client of it, which stays the same over restarts."""

    def __init__(self, machine: Machine, session: aiohttp.ClientSession, token: str = "") -> None:
        self.machine = machine
        self.token = token
        self._session = session

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        url = f"http://127.0.0.1:{self.machine.port}{path}"
        async with self._session.request(method, url, headers=headers, **options) as answer:
            return answer.status, await answer.json()

    async def sign_in(self) -> str:
        account = {"username": "ann", "email": "ann@example.org", "password": "a long password"}
        status, _ = await self.call("POST", "/v1/auth/register", json=account)
        assert status == 201
        _, body = await self.call("POST", "/v1/auth/login", json=account)
        return str(body["access_token"])

    async def construct(self, document: str, text: str) -> None:
        status, body = await self.call(
            "POST", f"{API}/construct-graph", json={"document_id": document, "text": text}
        )
        assert status == 200, body

    async def delete(self, document: str) -> None:
        status, body = await self.call("DELETE", f"{API}/graph/document/{document}")
        assert (status, body["document_deleted"]) == (200, 1)

    async def names(self) -> list[str]:
        status, body = await self.call("POST", f"{API}/sparql", json={"query": NAMES})
        assert status == 200, body
        return [row["name"]["value"] for row in body["results"]["bindings"]]


@asynccontextmanager
async def two_processes(folder: Path, database: str | None, *, one_home: bool) -> AsyncIterator[list[Member]]:
    """Two API processes with one database, and one account that is signed in at both."""
    values = {
        "RATE_LIMIT_ENABLED": "false",
        "JWT_SECRET": "of both processes " * 4,
        **({} if database is None else {"DATABASE_URL": database}),
        **without_plugins("graph_rag", "graph_rdf"),
    }
    homes = [folder / ("home" if one_home else f"home-{number}") for number in range(2)]
    machines = [Machine(f"api-{n}", home, values, free_port()) for n, home in enumerate(homes)]
    async with aiohttp.ClientSession() as session:
        try:
            for machine in machines:
                await machine.start()
            members = [Member(machine, session) for machine in machines]
            token = await members[0].sign_in()
            for member in members:
                member.token = token
            yield members
        finally:
            for machine in machines:
                await machine.stop()


def holds(folder: Path, text: bytes) -> bool:
    try:
        files = [path for path in folder.rglob("graph_rag/rdf/**/*") if path.is_file()]
        return any(text in path.read_bytes().lower() for path in files)
    except FileNotFoundError:  # a store replaces its files meanwhile
        return True


@pytest.mark.long
@pytest.mark.parametrize("one_home", [True, False], ids=["one home", "homes of their own"])
async def test_what_one_process_writes_the_other_reads(
    one_home: bool, postgres_url: str, tmp_path: Path
) -> None:
    async with two_processes(tmp_path, postgres_url, one_home=one_home) as (first, second):
        for number, (writer, reader) in enumerate([(first, second), (second, first)] * 2):
            await writer.construct(f"d{number}", f"Jonas Berg{'abcd'[number]} sings.")
            assert f"Jonas Berg{'abcd'[number]}" in await reader.names()
        await second.construct("secret", SECRET)
        for member in (first, second):
            assert "Emil Secretson" in await member.names()
        assert holds(tmp_path, b"secretson")
        await first.delete("secret")
        for member in (second, first):
            assert "Emil Secretson" not in await member.names()
        await eventually(lambda: not holds(tmp_path, b"secretson"), 60)
        assert await first.names() == await second.names() == [f"Jonas Berg{one}" for one in "abcd"]


@pytest.mark.long
async def test_one_that_is_killed_while_it_answers(tmp_path: Path) -> None:
    """The other goes on; the killed one answers right when it is back, whatever it was doing."""
    chance = random.Random(5)
    async with two_processes(tmp_path, None, one_home=True) as (victim, other):
        expected: set[str] = set()
        for number in range(2):
            for part in range(10):
                name = f"Ada Lind{'abcdefghij'[part]}{'kl'[number]}"
                await other.construct(f"d{number}-{part}", f"{name} leads a station. {INSTITUTE}")
                expected.add(name)
            asking = asyncio.create_task(victim.names())
            await asyncio.wait([asking], timeout=chance.random() * 0.3)
            await victim.machine.kill()
            await asyncio.gather(asking, return_exceptions=True)
            assert expected <= set(await other.names())
            await victim.machine.start()
            assert await victim.names() == await other.names()


@pytest.mark.long
async def test_a_store_whose_writer_is_killed(tmp_path: Path) -> None:
    """What is found in it afterwards is whole, or nothing: however often, wherever the writer was."""
    chance = random.Random(9)
    torn = 0
    for _ in range(ROUNDS):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", WRITER, str(tmp_path / "rdf"), str(STATEMENTS)),
            env=process_environment({}),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        for _ in range(chance.randint(1, 8)):
            await process.stdout.readline()
        await asyncio.sleep(chance.random() * 0.02)  # the moment of the kill is what varies
        process.kill()
        await process.wait()
        torn += await asyncio.to_thread(is_whole, tmp_path / "rdf") == 0
    assert torn, "no kill was in the middle of a writing"


def is_whole(folder: Path) -> int:
    """Check the store as the next process finds it: each graph with a state has all statements of that state,
    and the owner's has those of all. Answers how many graphs there are.
    """
    store = RdfStore(folder)
    store.open()
    try:
        reading = ox.Store.read_only(str(store.snapshot()))

        def column(pattern: str) -> list[str]:
            rows = reading.query(f"SELECT ?one WHERE {{ {pattern} }}", use_default_graph_as_union=False)
            assert isinstance(rows, ox.QuerySolutions)
            return [row["one"].value for row in rows]

        stamps = dict(zip(column(f"?one {_STAMP} ?s"), column(f"?g {_STAMP} ?one"), strict=True))
        every = set()
        for name, stamp in stamps.items():
            found = set(column(f"GRAPH <{name}> {{ ?s ?p ?one }}"))
            assert found == {f"{stamp[1:]} {at}" for at in range(STATEMENTS)}
            assert store.stale([VisibleGraph(0, name, stamp, "urn:o")]) == []
            every |= found
        assert set(column("GRAPH <urn:o> { ?s ?p ?one }")) == every
        return len(stamps)
    finally:
        store.close()
