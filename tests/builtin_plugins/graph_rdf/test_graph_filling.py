"""Many graphs are written into the RDF store by a child process, whole or not at all."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pyoxigraph as ox
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.graph_rag.models import Graph
from builtin_plugins.graph_rag.storing.access import GraphSight
from builtin_plugins.graph_rdf.children import RDF_CHILDREN
from builtin_plugins.graph_rdf.live import LiveRdf
from builtin_plugins.graph_rdf.store import RdfStore
from kernel.sdk import ChildFailed, Children, Unavailable
from kernel.testing import Actor, Running, platforms, somebody
from tests.builtin_plugins.graph_rag.graph_support import API, INSTITUTE, STATION, construct

MANY = 60
TEXTS = (INSTITUTE, STATION, "On 4 May 2026 Emil Dahl (ED) baked \"bread\" & 'cake' \\ for 3 EUR.")


@asynccontextmanager
async def many_graphs(folder: Path) -> AsyncIterator[tuple[Running, Actor]]:
    """A platform with more graphs of one account than its process writes by itself."""
    async with platforms(folder / "home") as start:
        running = await start("graph_rdf")
        ann = await somebody(running)
        for number in range(MANY):
            await construct(ann, f"d{number}", f"{TEXTS[number % 3]} Part {number}.", title=f"t{number}")
        yield running, ann


def sight(session: Session) -> GraphSight:
    return GraphSight(str(session.scalars(select(Graph.maker)).first()), None)


@pytest.mark.long
async def test_it_says_what_the_export_says(tmp_path: Path) -> None:
    async with many_graphs(tmp_path) as (_, ann):
        await self_consistent(ann)
        await construct(ann, "d1", "Jonas Berg sings in Senja.")
        await ann.delete(f"{API}/graph/document/d2")
        await self_consistent(ann)
        for number in range(MANY):
            await construct(ann, f"d{number}", f"{TEXTS[number % 2]} Anew {number}.")
        await self_consistent(ann)


async def self_consistent(ann: Actor) -> None:
    """What SPARQL finds is what the export holds: graph by graph, and in the default graph."""
    exported = (await ann.get(f"{API}/graph/export?format=n-quads")).body
    quads = {
        (quad.graph_name.value, *map(value, quad.triple))
        for quad in ox.parse(exported, format=ox.RdfFormat.N_QUADS)
    }
    found = await rows(ann, "SELECT ?g ?s ?p ?o WHERE { GRAPH ?g { ?s ?p ?o } }")
    assert set(found) == quads and len(found) == len(quads)
    assert set(await rows(ann, "SELECT ?s ?p ?o WHERE { ?s ?p ?o }")) == {quad[1:] for quad in quads}


def value(term: Any) -> str:
    return str(term.value)


async def rows(ann: Actor, query: str) -> list[tuple[str, ...]]:
    """The values of each row, by the order of the variables."""
    answer = await ann.post(f"{API}/sparql", json={"query": query})
    assert answer.status == 200, answer.body
    body = answer.json()
    assert not body["truncated"]
    return [tuple(row[name]["value"] for name in body["head"]["vars"]) for row in body["results"]["bindings"]]


class FailingOnce:
    """Child processes of which the first writes, and is killed then."""

    def __init__(self, real: Children) -> None:
        self._real = real
        self.failed = 0

    async def call(self, target: str, *arguments: Any, **options: Any) -> Any:
        done = await self._real.call(target, *arguments, **options)
        if target.endswith(":fill") and not self.failed:
            self.failed += 1
            raise ChildFailed("crashed", -9, "")
        return done


async def test_a_child_that_is_killed(tmp_path: Path) -> None:
    async with many_graphs(tmp_path) as (running, _):
        children = FailingOnce(running.platform.resource(RDF_CHILDREN))
        live = LiveRdf(running.platform, tmp_path / "rdf", cast(Children, children))
        seen = await running.platform.database.read(sight)
        async with live.snapshot(seen) as (place, merged):
            reading = ox.Store.read_only(str(place))
            assert len(list(reading.named_graphs())) == MANY + 1 and len(merged) == 1
        await live.close()
        assert children.failed == 1


async def test_children_that_can_not_be_had(tmp_path: Path) -> None:
    class Never:
        async def call(self, *_: Any, **__: Any) -> Any:
            raise ChildFailed("unavailable", 1, "")

    async with many_graphs(tmp_path) as (running, _):
        live = LiveRdf(running.platform, tmp_path / "rdf", cast(Children, Never()))
        seen = await running.platform.database.read(sight)
        with pytest.raises(Unavailable):
            async with live.snapshot(seen):
                pass
        await live.close()
        patient = LiveRdf(running.platform, tmp_path / "rdf", running.platform.resource(RDF_CHILDREN))
        async with patient.snapshot(seen) as (place, _merged):
            assert len(list(ox.Store.read_only(str(place)).named_graphs())) == MANY + 1
        await patient.close()


async def test_a_store_that_was_lent_and_never_taken_back(tmp_path: Path) -> None:
    store = RdfStore(tmp_path / "rdf")
    store.open()
    place = store.lend([])
    await asyncio.to_thread(shutil.copytree, place, tmp_path / "kept")
    store.close()
    again = RdfStore(tmp_path / "rdf")
    again.open()
    assert len(ox.Store.read_only(str(again.snapshot()))) == 0
    again.close()
    kept = ox.Store.read_only(str(tmp_path / "kept"))
    assert [quad.predicate.value for quad in kept] == ["urn:platform:writing"]
