"""The embedded RDF store: its merged graphs say what the documents say, and what is deleted leaves it."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.graph_rag.models import Graph, seal_of
from builtin_plugins.graph_rag.storing.access import GraphSight
from builtin_plugins.graph_rdf.children import RDF_CHILDREN
from builtin_plugins.graph_rdf.live import LiveRdf
from builtin_plugins.graph_rdf.rows import VisibleGraph, VisibleGraphs, visible_graphs
from builtin_plugins.graph_rdf.store import RdfStore, copy, holds
from kernel.sdk import Unavailable
from kernel.testing import Actor, eventually, platforms, somebody
from tests.builtin_plugins.graph_rag.graph_support import API, construct

OWNERS = ("urn:o:1", "urn:o:2")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RdfStore]:
    made = RdfStore(tmp_path)
    made.open()
    yield made
    made.close()


def statements(objects: list[int]) -> list[str]:
    return [f'<urn:s> <urn:says> "{one}"' for one in objects]


def said(store: RdfStore, graphs: list[str]) -> set[str]:
    reading = ox.Store.read_only(str(store.snapshot()))
    found = reading.query(
        "SELECT ?o WHERE { ?s <urn:says> ?o }", default_graph=[ox.NamedNode(one) for one in graphs]
    )
    assert isinstance(found, ox.QuerySolutions)
    return {row["o"].value for row in found}


def test_merged_graphs_hold_what_their_documents_hold(store: RdfStore) -> None:
    """However often documents change, also where several say the same, and only of whom all is seen."""
    chance = random.Random(5)
    there: dict[str, tuple[VisibleGraph, list[int]]] = {}
    for step in range(60):
        number = chance.randrange(8)
        name, owner = f"urn:g:{number}", OWNERS[number % 2]
        listed = VisibleGraph(number, name, f"s{step}", owner)
        there[name] = (listed, chance.sample(range(6), 3))
        store.put({listed: statements(there[name][1])})
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
    store = RdfStore(tmp_path)
    store.open()
    listed = VisibleGraph(1, "urn:g:1", "s", OWNERS[0])

    class Failing(list[str]):
        def __iter__(self) -> Iterator[str]:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        store.put({listed: Failing()})
    store.close()
    again = RdfStore(tmp_path)
    again.open()
    assert again.stale([listed]) == [listed]
    assert said(again, [listed.name, listed.owner]) == set()
    again.close()


async def test_a_query_does_not_wait_for_ever(tmp_path: Path) -> None:
    """Writing continues for whoever asks again, also where the client that caused it has left."""
    async with platforms(tmp_path / "home") as start:
        running = await start("graph_rdf")
        ann = await somebody(running)
        await construct(ann, "a", "Emil Dahl bakes bread.")
        sight, owner = await running.platform.database.read(sight_of_all)
        children = running.platform.resource(RDF_CHILDREN)
        live = LiveRdf(running.platform, tmp_path / "rdf", children, patience=0)
        with pytest.raises(Unavailable, match="try again") as refused:
            async with live.snapshot(sight):
                pass
        assert int(refused.value.headers["Retry-After"]) > 0
        leaving = asyncio.create_task(live.snapshot(sight).__aenter__())
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        patient = LiveRdf(running.platform, tmp_path / "rdf", children)
        await live.close()
        async with patient.snapshot(sight) as (place, merged):
            assert merged == [owner]
            assert len(ox.Store.read_only(str(place))) > 10
        await patient.close()


async def test_other_work_goes_on_beside_a_large_writing(store: RdfStore) -> None:
    listed = VisibleGraph(1, "urn:g:1", "s", OWNERS[0])
    made = statements(list(range(60_000)))
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
        running = await start("graph_rdf")
        ann = await somebody(running)
        await construct(ann, "a", "Emil Dahl bakes bread.")
        query = {"query": "ASK { ?e <http://www.w3.org/2004/02/skos/core#prefLabel> 'Emil Dahl' }"}
        assert (await ann.post(f"{API}/sparql", json=query)).json()["boolean"] is True
        shutil.rmtree(tmp_path / "home" / "graph_rag" / "rdf" / lost)
        for number in range(2):
            answer = await ann.post(f"{API}/sparql", json=query)
            assert answer.status == 200 and answer.json()["boolean"] is True, answer.body
            await construct(ann, f"b{number}", "Jonas Berg sings.")


def sight_of_all(session: Session) -> tuple[GraphSight, str]:
    sight = GraphSight(str(session.scalars(select(Graph.maker)).one()), None)
    return sight, visible_graphs(session, sight)[0].owner


async def test_what_a_killed_process_left_leaves_at_the_next_start(tmp_path: Path) -> None:
    """A process that ends between a deletion and the clearing of its store leaves that to the next one."""
    home, kept = tmp_path / "home", tmp_path / "kept"
    folder = home / "graph_rag" / "rdf"
    async with platforms(home) as start:
        running = await start("graph_rdf")
        ann = await running.user("ann")
        await construct(ann, "a", "Emil Secretson bakes bread.")
        assert (await ann.post(f"{API}/sparql", json={"query": "ASK {}"})).status == 200
    shutil.copytree(folder, kept)
    async with platforms(home) as start:
        running = await start("graph_rdf")
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
        await start("graph_rdf")
        await eventually(lambda: not holds())


@pytest.mark.long
async def test_a_deletion_costs_no_second_filling(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What was deleted or replaced leaves the disk; what stays is neither read nor written again."""
    home = tmp_path / "home"
    caplog.set_level(logging.INFO, "platform.graph_rag")
    async with platforms(home) as start:
        running = await start("graph_rdf")
        ann = await somebody(running)
        for number in range(30):
            await construct(ann, f"d{number}", f"Jonas Berg{'klmnop'[number % 6]} sings.")
        await construct(ann, "deleted", "Emil Secretson bakes bread.")
        await construct(ann, "replaced", "Ada Secretson leads a station.")
        await asked(ann, "ASK {}")
        await ann.delete(f"{API}/graph/document/deleted")
        assert await asked(ann, label("Emil Secretson")) is False
        await construct(ann, "replaced", "Ada Lindqvist leads a station.")
        assert await asked(ann, label("Ada Secretson")) is False
        assert await asked(ann, label("Ada Lindqvist")) is True
        await eventually(lambda: not leaves_traces(home, b"secretson"))
        assert await asked(ann, label("Jonas Bergk")) is True
        assert await asked(ann, label("Ada Lindqvist")) is True
    brought = [int(one) for one in re.findall(r"bringing (\d+) graphs", caplog.text)]
    assert brought[0] == 32 and set(brought[1:]) == {1}


async def asked(actor: Actor, query: str) -> bool:
    answer = await actor.post(f"{API}/sparql", json={"query": query})
    assert answer.status == 200, answer.body
    return bool(answer.json()["boolean"])


def label(name: str) -> str:
    return f"ASK {{ ?e <http://www.w3.org/2004/02/skos/core#prefLabel> '{name}' }}"


def leaves_traces(home: Path, text: bytes) -> bool:
    try:
        files = [path for path in (home / "graph_rag" / "rdf").rglob("*") if path.is_file()]
        return any(text in path.read_bytes().lower() for path in files)
    except FileNotFoundError:  # a copy takes the store's place
        return True


def test_a_copy_says_the_same(tmp_path: Path) -> None:
    """Also of its own state, so that the next process knows what it has; and nothing of what was dropped."""
    store = RdfStore(tmp_path)
    store.open()
    graphs = [
        VisibleGraph(number, f"urn:g:{number}", f"s{number}", OWNERS[number % 2]) for number in range(6)
    ]
    store.put({one: statements([one.id, 100 + one.id]) for one in graphs})
    assert not store.spent
    store.drop([graphs[0].name], 60)
    assert store.spent
    place = store.before_copy()
    assert place is not None and copy(str(place), str(store.copy_place))
    with pytest.raises(FileExistsError):
        copy(str(place), str(store.copy_place))
    store.take_copy()
    for _ in range(2):
        assert not store.spent
        assert store.stale(graphs) == graphs[:1]
        assert store.merged(graphs[1:]) == [OWNERS[1], OWNERS[0]]
        seals = sum(seal_of(f"s{number}") for number in (1, 3, 5))
        assert holds(store.inventory(), [VisibleGraphs(OWNERS[1], 3, seals)])
        assert said(store, [OWNERS[0]]) == {"2", "102", "4", "104"}
        store.close()
        store = RdfStore(tmp_path)
        store.open()
    store.close()
