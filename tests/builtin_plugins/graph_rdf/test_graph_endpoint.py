"""An external SPARQL server: holds what the caller sees when it asks, forgets what is deleted, may fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import files
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from kernel.testing import Actor, Running, eventually, platforms, somebody
from tests.builtin_plugins.graph_rag.graph_support import API, INSTITUTE, STATION, call, construct, names
from tests.fakes.processes import free_port

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMES = (
    "SELECT DISTINCT ?name WHERE { ?e <http://www.w3.org/2004/02/skos/core#prefLabel> ?name } ORDER BY ?name"
)


@asynccontextmanager
async def oxigraph(folder: Path) -> AsyncIterator[str]:
    """The server from its package, on its own port."""
    url = f"http://127.0.0.1:{free_port()}"
    program = next(file for file in files("oxigraph") or () if file.name == "oxigraph").locate()
    command = (str(program), "serve", "--location", str(folder), "--bind", url.removeprefix("http://"))
    pipes = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL}
    process = await asyncio.create_subprocess_exec(*command, **pipes)
    try:
        async with aiohttp.ClientSession() as session:

            async def answers() -> bool:
                try:
                    async with session.get(f"{url}/query?query=ASK%20%7B%7D") as answer:
                        return answer.status == 200
                except aiohttp.ClientError:
                    return False

            await eventually(answers)
        yield url
    finally:
        process.kill()
        await process.wait()


def settings(url: str, store: str | None = None) -> dict[str, str]:
    return {
        "PLATFORM_GRAPH_RAG_SPARQL_URL": f"{url}/query",
        "PLATFORM_GRAPH_RAG_SPARQL_STORE_URL": store or f"{url}/store",
        "PLATFORM_GRAPH_RAG_SPARQL_SECONDS": "2",
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    async with oxigraph(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(server: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("endpoint")) as start:
        yield await start("graph_rdf", env=settings(server))


async def found_by(actor: Actor, query: str = NAMES) -> list[str]:
    answer = await actor.post(f"{API}/sparql", json={"query": query})
    assert answer.status == 200, answer.body
    body = answer.json()
    return [row[body["head"]["vars"][0]]["value"] for row in body["results"]["bindings"]]


async def test_as_of_now(running: Running) -> None:
    """What was written or dropped before a query counts, and others see nothing of it."""
    ann, bob = await somebody(running), await somebody(running)
    await construct(ann, "a", INSTITUTE)
    assert "Senja Station" in await found_by(ann)
    assert await found_by(bob) == []
    assert await found_by(bob, "SELECT ?s WHERE { GRAPH ?g { ?s ?p ?o } }") == []
    await construct(ann, "a", "Emil Dahl bakes bread.")
    assert await found_by(ann) == ["Emil Dahl"]
    await ann.delete(f"{API}/graph/document/a")
    assert await found_by(ann) == []


async def test_other_forms(running: Running) -> None:
    """ASK and CONSTRUCT answer as from the embedded store; the same is refused."""
    ann = await somebody(running)
    await construct(ann, "a", INSTITUTE)
    label = "<http://www.w3.org/2004/02/skos/core#prefLabel>"
    yes = await ann.post(f"{API}/sparql", json={"query": f"ASK {{ ?e {label} 'Senja Station' }}"})
    assert yes.json()["boolean"] is True
    made = await ann.post(f"{API}/sparql", json={"query": f"CONSTRUCT WHERE {{ ?e {label} ?n }}"})
    assert made.headers["Content-Type"].startswith("text/turtle") and b"Senja Station" in made.body
    for query in ("SELECT * WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", "DROP ALL"):
        assert (await ann.post(f"{API}/sparql", json={"query": query})).status == 422


async def test_deleted_leaves_the_server(running: Running, server: str) -> None:
    """The graph is dropped there soon after the answer, without any query."""
    ann = await somebody(running)
    await construct(ann, "secret-document", STATION)
    assert "Aurora Sensor" in await found_by(ann)
    ask = {"query": "ASK { GRAPH ?g { ?d <https://schema.org/identifier> 'secret-document' } }"}
    headers = {"Accept": "application/sparql-results+json"}

    async def is_there() -> bool:
        async with running.session.post(f"{server}/query", data=ask, headers=headers) as answer:
            return bool((await answer.json(content_type=None))["boolean"])

    assert await is_there()
    await ann.delete(f"{API}/graph/document/secret-document")

    async def is_gone() -> bool:
        return not await is_there()

    await eventually(is_gone)


@asynccontextmanager
async def broken_server(kind: str) -> AsyncIterator[str]:
    leaving = asyncio.Event()

    async def answer(_request: web.Request) -> web.Response:
        if kind == "slow":
            await leaving.wait()
        return web.Response(status=500 if kind == "refusing" else 200, text="{nonsense")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        leaving.set()
        await runner.cleanup()


@pytest.mark.parametrize("kind", ["dead", "refusing", "slow", "nonsense"])
async def test_faults(kind: str, tmp_path: Path) -> None:
    """SPARQL is 503 and /health says why; everything else continues without the server."""
    async with broken_server("" if kind == "nonsense" else kind) as url, platforms(tmp_path) as start:
        address = "http://127.0.0.1:9" if kind == "dead" else url
        running = await start("graph_rdf", env=settings(address))
        ann = await somebody(running)
        await construct(ann, "a", INSTITUTE)
        refused = await ann.post(f"{API}/sparql", json={"query": NAMES})
        assert (refused.status, refused.json()["code"]) == (503, "unavailable")
        assert "SPARQL server" in refused.detail and "127.0.0.1" not in refused.detail
        assert "Senja Station" in names(await call(ann, "graph/search", query="senja"))
        assert (await ann.get(f"{API}/graph/export")).status == 200
        if kind != "nonsense":
            health = (await running.anonymous.get("/health")).json()
            assert "SPARQL server" in health["checks"]["sparql_server"]
            assert health["status"] == "degraded"


async def test_half_a_setting(tmp_path: Path) -> None:
    """One address without the other keeps the plugin out, with the names of both."""
    async with platforms(tmp_path) as start:
        running = await start("graph_rdf", env={"PLATFORM_GRAPH_RAG_SPARQL_URL": "http://127.0.0.1:9/query"})
        health = (await running.anonymous.get("/health")).body.decode()
        assert "PLATFORM_GRAPH_RAG_SPARQL_STORE_URL" in health
