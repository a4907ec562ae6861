"""The embedded RDF store: its merged graphs say what the documents say, and what is deleted leaves it."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.graph_rag.models import Graph
from builtin_plugins.graph_rag.rdf.clearing import Clearing
from builtin_plugins.graph_rag.rdf.live import LiveRdf
from builtin_plugins.graph_rag.rdf.rows import Listed, seen
from builtin_plugins.graph_rag.rdf.store import RdfStore
from builtin_plugins.graph_rag.storing.access import Sight
from kernel.sdk import Unavailable
from kernel.testing import eventually, platforms, somebody
from tests.builtin_plugins.graph_rag.graph_support import API, construct

OWNERS = ("urn:o:1", "urn:o:2")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RdfStore]:
    made = RdfStore(tmp_path)
    made.open()
    yield made
    made.close()


def statements(graph: str, objects: list[int]) -> list[ox.Quad]:
    say = ox.NamedNode("urn:says")
    return [ox.Quad(ox.NamedNode("urn:s"), say, ox.Literal(one), ox.NamedNode(graph)) for one in objects]


def said(store: RdfStore, graphs: list[str]) -> set[str]:
    """What a snapshot says in these graphs."""
    reading = ox.Store.read_only(str(store.snapshot()))
    found = reading.query(
        "SELECT ?o WHERE { ?s <urn:says> ?o }", default_graph=[ox.NamedNode(one) for one in graphs]
    )
    assert isinstance(found, ox.QuerySolutions)
    return {row["o"].value for row in found}


def test_merged_graphs_hold_what_their_documents_hold(store: RdfStore) -> None:
    """However often documents change, also where several say the same, and only of whom all is seen."""
    chance = random.Random(5)
    there: dict[str, tuple[Listed, list[int]]] = {}
    for step in range(60):
        number = chance.randrange(8)
        name, owner = f"urn:g:{number}", OWNERS[number % 2]
        listed = Listed(number, name, f"s{step}", owner)
        there[name] = (listed, chance.sample(range(6), 3))
        store.put({listed: statements(name, there[name][1])})
        if step % 10 == 9:
            every = [listed for listed, _ in there.values()]
            seen = chance.sample(every, len(every) - 1)
            for graphs in (every, seen):
                merged = store.merged(graphs)
                expected = {str(one) for listed in graphs for one in there[listed.name][1]}
                assert said(store, merged) == expected
            assert store.merged(every) == [*dict.fromkeys(one.owner for one in every)]
            hidden = ({one.name for one in every} - {one.name for one in seen}).pop()
            assert there[hidden][0].owner not in store.merged(seen)


def test_a_store_that_was_being_written_is_built_again(tmp_path: Path) -> None:
    """What a process left half written is not used."""
    store = RdfStore(tmp_path)
    store.open()
    listed = Listed(1, "urn:g:1", "s", OWNERS[0])

    def failing() -> Iterator[ox.Quad]:
        yield from statements(listed.name, [1])
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        store.put({listed: failing()})
    store.close()
    again = RdfStore(tmp_path)
    again.open()
    assert again.stale([listed]) == [listed]
    assert said(again, [listed.name, listed.owner]) == set()
    again.close()


async def test_a_query_does_not_wait_for_ever(tmp_path: Path) -> None:
    """Writing goes on for whoever asks again, also where the client that caused it has left."""
    async with platforms(tmp_path / "home") as start:
        running = await start("graph_rag")
        ann = await somebody(running)
        await construct(ann, "a", "Emil Dahl bakes bread.")
        graphs = await running.platform.database.read(every_graph)
        live = LiveRdf(running.platform, tmp_path / "rdf", patience=0)
        with pytest.raises(Unavailable, match="ask again"):
            async with live.snapshot(graphs):
                pass
        leaving = asyncio.create_task(live.snapshot(graphs).__aenter__())
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        patient = LiveRdf(running.platform, tmp_path / "rdf")
        await live.close()
        async with patient.snapshot(graphs) as (place, merged):
            assert merged == [graphs[0].owner]
            assert len(ox.Store.read_only(str(place))) > 10
        await patient.close()


async def test_other_work_goes_on_beside_a_large_writing(store: RdfStore) -> None:
    """The event loop answers while thousands of statements are written."""
    listed = Listed(1, "urn:g:1", "s", OWNERS[0])
    made = statements(listed.name, list(range(60_000)))
    writing = asyncio.create_task(asyncio.to_thread(store.put, {listed: made}))
    turns = 0
    while not writing.done():
        await asyncio.sleep(0.005)
        turns += 1
    await writing
    assert turns >= 5


@pytest.mark.parametrize("lost", ["0", "0.snapshots", "."])
async def test_files_that_somebody_removes(lost: str, tmp_path: Path) -> None:
    """A store whose files vanish while it is open is filled again by the next query."""
    async with platforms(tmp_path / "home") as start:
        running = await start("graph_rag")
        ann = await somebody(running)
        await construct(ann, "a", "Emil Dahl bakes bread.")
        query = {"query": "ASK { ?e <http://www.w3.org/2004/02/skos/core#prefLabel> 'Emil Dahl' }"}
        assert (await ann.post(f"{API}/sparql", json=query)).json()["boolean"] is True
        shutil.rmtree(tmp_path / "home" / "graph_rag" / "rdf" / lost)
        for number in range(2):
            answer = await ann.post(f"{API}/sparql", json=query)
            assert answer.status == 200 and answer.json()["boolean"] is True, answer.body
            await construct(ann, f"b{number}", "Jonas Berg sings.")


def every_graph(session: Session) -> list[Listed]:
    return seen(session, Sight(str(session.scalars(select(Graph.maker)).one()), None))


async def test_clearing_goes_on_until_it_is_done(caplog: pytest.LogCaptureFixture) -> None:
    """A store that fails is tried again, and the log says so."""
    done = asyncio.Event()
    tries = 0

    async def clear() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise Unavailable("no answer")
        done.set()

    clearing = Clearing("the store", clear, (Unavailable,))
    clearing.note()
    await asyncio.wait_for(done.wait(), 10)
    await clearing.close()
    assert "could not be removed from the store" in caplog.text and "tried again" in caplog.text


async def test_what_a_killed_process_left_leaves_at_the_next_start(tmp_path: Path) -> None:
    """A process that ends between a deletion and the clearing of its store leaves that to the next one."""
    home, kept = tmp_path / "home", tmp_path / "kept"
    folder = home / "graph_rag" / "rdf"
    async with platforms(home) as start:
        running = await start("graph_rag")
        ann = await running.user("ann")
        await construct(ann, "a", "Emil Secretson bakes bread.")
        assert (await ann.post(f"{API}/sparql", json={"query": "ASK {}"})).status == 200
    shutil.copytree(folder, kept)
    async with platforms(home) as start:
        running = await start("graph_rag")
        ann = await running.sign_in("ann", ann.password)
        await ann.delete(f"{API}/graph/document/a")
    shutil.rmtree(folder)
    kept.rename(folder)

    def holds() -> bool:
        files = [path for path in folder.rglob("*") if path.is_file()]
        try:
            return any(b"secretson" in path.read_bytes().lower() for path in files)
        except FileNotFoundError:  # it is being cleared
            return True

    assert holds()
    async with platforms(home) as start:
        await start("graph_rag")
        await eventually(lambda: not holds())
