"""Deleted graphs leave the RDF store, whatever fails meanwhile, and others are answered while they do."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from collections import namedtuple
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyoxigraph as ox
import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from builtin_plugins.graph_rag.models import Graph
from builtin_plugins.graph_rag.storing.access import GraphSight
from builtin_plugins.graph_rdf.children import RDF_CHILDREN
from builtin_plugins.graph_rdf.clearing import Clearing
from builtin_plugins.graph_rdf.live import LiveRdf
from builtin_plugins.graph_rdf.rows import VisibleGraph
from builtin_plugins.graph_rdf.store import BROKEN, RdfStore, copy
from kernel.libs.asyncpg_connections import DatabaseUnreachable
from kernel.sdk import ChildFailed, Children, Platform, Unavailable
from kernel.testing import Actor, Running, eventually, platforms, somebody
from tests.builtin_plugins.graph_rag.graph_support import API, construct

OWNER = "urn:o"
LABEL = "http://www.w3.org/2004/02/skos/core#prefLabel"


class Disk:
    """The place of RDF stores that takes so many changes more; None: any number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self.real = ox.Store
        monkeypatch.setattr(ox, "Store", self)

    def __call__(self, path: str) -> OnDisk:
        return OnDisk(self, self.real(path))

    def read_only(self, path: str) -> ox.Store:
        return self.real.read_only(path)

    def take(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise OSError("No space left on device")


class OnDisk:
    """A store whose changes fail when the disk is full."""

    def __init__(self, disk: Disk, store: ox.Store) -> None:
        self._disk = disk
        self._store = store

    def __contains__(self, quad: ox.Quad) -> bool:
        return quad in self._store

    def __getattr__(self, name: str) -> Any:
        if name in ("add", "remove", "remove_graph", "extend", "bulk_load"):
            self._disk.take()
        return getattr(self._store, name)


def said(store: RdfStore, graph: str) -> set[str]:
    """The objects of a graph's statements."""
    found = ox.Store.read_only(str(store.snapshot())).quads_for_pattern(None, None, None, ox.NamedNode(graph))
    return {quad.object.value for quad in found if isinstance(quad.object, ox.Literal)}


def graphs_of(numbers: range) -> dict[VisibleGraph, list[str]]:
    return {
        VisibleGraph(number, f"urn:g:{number}", f"s{number}", OWNER): [
            f'<urn:s> <urn:says> "{one}"' for one in (f"only {number}", f"also {number // 2}", "all")
        ]
        for number in numbers
    }


def opened(folder: Path) -> RdfStore:
    made = RdfStore(folder)
    made.open()
    return made


@pytest.mark.parametrize("how", ["drop", "replace"])
def test_a_failure_at_any_step(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    graphs = graphs_of(range(4))
    for step in count():
        store = opened(tmp_path / str(step))
        store.put(graphs)
        disk.left = step
        try:
            if how == "drop":
                store.drop(["urn:g:0", "urn:g:3"], 60)
            else:
                store.put({VisibleGraph(0, "urn:g:0", "new", OWNER): ['<urn:s> <urn:says> "new"']})
        except OSError:
            pass
        done, disk.left = disk.left >= 0, None
        with suppress(*BROKEN):
            store.put(graphs_of(range(5, 6)))
        store.close()
        store = opened(tmp_path / str(step))
        every = {**graphs, **graphs_of(range(5, 6))}
        every[VisibleGraph(0, "urn:g:0", "new", OWNER)] = ['<urn:s> <urn:says> "new"']
        stale = store.stale(list(every))
        expected = {line.split('"')[1] for one, lines in every.items() if one not in stale for line in lines}
        assert said(store, OWNER) == expected, f"after {step} steps"
        for one in stale:
            assert one.name == "urn:g:0" or said(store, one.name) == set()
        store.close()
        if done:
            break
    assert step > 8


def test_what_others_say_as_well(tmp_path: Path) -> None:
    """A statement stays in the graph of an owner who says it elsewhere, however many others say it too."""
    store = opened(tmp_path)
    line = '<urn:s> <urn:says> "shared"'
    crowd = {VisibleGraph(n, f"urn:crowd:{n}", "s", "urn:crowd"): [line] for n in range(30)}
    few = {VisibleGraph(100 + n, f"urn:few:{n}", "s", "urn:few"): [line] for n in range(3)}
    store.put({**crowd, **few})
    for left in (2, 1, 0):
        store.drop([f"urn:few:{left}"], 60)
        assert said(store, "urn:few") == ({"shared"} if left else set())
    for left in range(29, -1, -1):
        store.drop([f"urn:crowd:{left}"], 60)
        assert said(store, "urn:crowd") == ({"shared"} if left else set())
    store.close()


def test_removing_ends_when_its_time_is_over(tmp_path: Path) -> None:
    store = opened(tmp_path)
    graphs = graphs_of(range(4))
    store.put(graphs)
    for left in (3, 2, 1, 0):
        store.drop(store.gone(set()), 0)
        assert len(store.gone(set())) == left
        stale = store.stale(list(graphs))
        assert said(store, OWNER) == {
            line.split('"')[1] for one, lines in graphs.items() if one not in stale for line in lines
        }
    store.close()


@pytest.mark.long
async def test_a_full_disk_shows_nothing_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    async with platforms(tmp_path / "home") as start:
        ann = await somebody(await start("graph_rdf"))
        for number in range(4):
            await construct(ann, f"d{number}", "Jonas Berg sings.")
        for step in range(0, 16, 3):
            disk.left = None
            await construct(ann, "secret", "Emil Secretson bakes bread.")
            assert await asked(ann, "Emil Secretson") is True
            disk.left = step
            await ann.delete(f"{API}/graph/document/secret")
            assert await asked(ann, "Emil Secretson") in (False, None)
            disk.left = None
            await construct(ann, f"more{step}", "Ada Lindqvist leads a station.")
            assert await asked(ann, "Emil Secretson") is False
            assert await asked(ann, "Jonas Berg") is True


async def asked(actor: Actor, name: str) -> bool | None:
    """Whether somebody has this name; None where the store is not available."""
    answer = await actor.post(f"{API}/sparql", json={"query": f"ASK {{ ?e <{LABEL}> '{name}' }}"})
    assert answer.status in (200, 503), answer.body
    return bool(answer.json()["boolean"]) if answer.status == 200 else None


def holds(folder: Path, text: bytes) -> bool:
    try:
        files = [path for path in folder.rglob("*") if path.is_file()]
        return any(text in path.read_bytes().lower() for path in files)
    except FileNotFoundError:  # it is being cleared
        return True


class Copying:
    """Child processes that copy a store, and then do as they are told."""

    def __init__(self, then: Callable[[], Any]) -> None:
        self.copied = asyncio.Event()
        self._then = then

    async def call(self, _target: str, *places: str, **_: Any) -> bool:
        await asyncio.to_thread(copy, *places)
        self.copied.set()
        await self._then()
        return True


async def fail() -> None:
    raise ChildFailed("crashed", -9, "")


@asynccontextmanager
async def spent(
    folder: Path, children: object, **fields: Any
) -> AsyncIterator[tuple[LiveRdf, GraphSight, Running]]:
    async with platforms(folder / "home") as start:
        running = await start("graph_rdf")
        ann = await somebody(running)
        await construct(ann, "secret", "Emil Secretson bakes bread.")
        sight = await running.platform.database.read(sight_of_one)
        for number in range(19):
            await construct(ann, f"d{number}", "Jonas Berg sings.")
        live = LiveRdf(running.platform, folder / "rdf", cast(Children, children), **fields)
        async with live.snapshot(sight):
            pass
        await ann.delete(f"{API}/graph/document/secret")
        async with live.snapshot(sight):
            pass
        yield live, sight, running


def sight_of_one(session: Session) -> GraphSight:
    return GraphSight(str(session.scalars(select(Graph.maker)).first()), None)


async def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    children = Copying(fail)
    async with spent(tmp_path, children) as (live, sight, _):
        await asyncio.wait_for(children.copied.wait(), 30)
        await eventually(lambda: not holds(tmp_path / "rdf", b"secretson"))
        await eventually(lambda: not (tmp_path / "rdf" / "0.copy").exists())
        async with live.snapshot(sight) as (place, merged):
            assert len(merged) == 1 and len(ox.Store.read_only(str(place))) > 19
        await live.close()


@pytest.mark.parametrize("end", ["stop", "lost store"])
async def test_a_copy_that_is_given_up_leaves_nothing(end: str, tmp_path: Path) -> None:
    children = Copying(asyncio.Event().wait)
    async with spent(tmp_path, children) as (live, sight, _):
        await asyncio.wait_for(children.copied.wait(), 30)
        assert (tmp_path / "rdf" / "0.copy").exists()
        if end == "lost store":
            shutil.rmtree(tmp_path / "rdf" / "0.snapshots")
            shutil.rmtree(tmp_path / "rdf" / "0")
            async with live.snapshot(sight):
                assert not (tmp_path / "rdf" / "0.copy").exists()
        await live.close()
        assert not (tmp_path / "rdf" / "0.copy").exists()


def test_a_copy_that_a_killed_process_left(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for clears in (store.before_copy, store.start_over, store.close):
        store.copy_place.mkdir()
        (store.copy_place / "of somebody").write_text("secret")
        clears()
        assert not store.copy_place.exists()


async def test_a_disk_without_room_for_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(10**12, 10**12 - 1000, 1000))
    children = Copying(fail)
    async with spent(tmp_path, children) as (live, _, _running):
        await eventually(lambda: not holds(tmp_path / "rdf", b"secretson"))
        await live.close()
    assert not children.copied.is_set()
    assert "disk space" in caplog.text


async def test_an_outage_of_the_database_leaves_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not the store's fault: who reads a snapshot keeps it, and nothing is filled again."""
    caplog.set_level(logging.INFO, "platform.graph_rag")
    async with platforms(tmp_path / "home") as start:
        running = await start("graph_rdf")
        ann = await somebody(running)
        await construct(ann, "a", "Emil Dahl bakes bread.")
        sight = await running.platform.database.read(sight_of_one)
        database = running.platform.database

        async def refuse(*_: object) -> None:
            raise DatabaseUnreachable("no answer")

        platform = SimpleNamespace(database=database)
        children = running.platform.resource(RDF_CHILDREN)
        live = LiveRdf(cast(Platform, platform), tmp_path / "rdf", children)
        async with live.snapshot(sight) as (place, _):
            platform.database = SimpleNamespace(read=refuse, snapshot=refuse)
            with pytest.raises(DatabaseUnreachable):
                async with live.snapshot(sight):
                    pass
            assert place.exists()
            platform.database = database
            async with live.snapshot(sight) as (again, _):
                assert again == place
        await live.close()
    assert len(re.findall(r"bringing \d+ graphs", caplog.text)) == 1


@asynccontextmanager
async def many_deleted(
    tmp_path: Path, **fields: Any
) -> AsyncIterator[tuple[LiveRdf, GraphSight, GraphSight, Actor]]:
    """RDF with thirty graphs, ten of which are deleted; what their owner sees, and somebody else."""
    async with platforms(tmp_path / "home") as start:
        running = await start("graph_rdf")
        ann = await somebody(running)
        await construct(ann, "d0", "Emil Dahl bakes bread.")
        hers = await running.platform.database.read(sight_of_one)
        for number in range(1, 15):
            await construct(ann, f"d{number}", "Emil Dahl bakes bread.")
        bob = await somebody(running)
        for number in range(15):
            await construct(bob, f"b{number}", "Jonas Berg sings.")
        makers = await running.platform.database.read(
            lambda session: set(session.scalars(select(Graph.maker)).all())
        )
        his = GraphSight((makers - {hers.subject}).pop(), None)
        children = running.platform.resource(RDF_CHILDREN)
        filling = LiveRdf(running.platform, tmp_path / "rdf", children)
        for sight in (hers, his):
            await patiently(filling, sight)
        await filling.close()
        for number in range(10):
            await ann.delete(f"{API}/graph/document/d{number}")
        live = LiveRdf(running.platform, tmp_path / "rdf", children, removing=0, **fields)
        yield live, hers, his, ann
        await live.close()


async def patiently(live: LiveRdf, sight: GraphSight) -> set[str]:
    """Ask until the answer comes; what was said before."""
    told: set[str] = set()
    while True:
        try:
            async with live.snapshot(sight) as (_, merged):
                assert len(merged) == 1
                return told
        except Unavailable as error:
            told.add(re.sub(r"\d+", "N", str(error)))
            await asyncio.sleep(0.001)


async def test_others_are_answered_while_many_graphs_go(tmp_path: Path) -> None:
    async with many_deleted(tmp_path) as (live, hers, his, _):
        order: list[str] = []

        async def ask(name: str, sight: GraphSight) -> None:
            await patiently(live, sight)
            order.append(name)

        await asyncio.gather(ask("hers", hers), ask("his", his))
        assert order == ["his", "hers"]


class Slow:
    """Processes that begin when they are told to."""

    def __init__(self, children: Children) -> None:
        self._children = children
        self.asked, self.told = asyncio.Event(), asyncio.Event()

    async def call(self, *arguments: Any, **fields: Any) -> Any:
        self.asked.set()
        await self.told.wait()
        return await self._children.call(*arguments, **fields)


async def test_others_are_answered_while_much_is_written(tmp_path: Path) -> None:
    """Whose graphs are there already does not wait for whose are being written, but for one's own."""
    async with platforms(tmp_path / "home") as start:
        running = await start("graph_rdf")
        ann, bob = await somebody(running), await somebody(running)
        await construct(ann, "hers", "Emil Dahl bakes bread.")
        hers = await running.platform.database.read(sight_of_one)
        for number in range(51):
            await construct(bob, f"b{number}", "Jonas Berg sings.")
        makers = await running.platform.database.read(
            lambda session: set(session.scalars(select(Graph.maker)).all())
        )
        his = GraphSight((makers - {hers.subject}).pop(), None)
        slow = Slow(running.platform.resource(RDF_CHILDREN))
        live = LiveRdf(running.platform, tmp_path / "rdf", cast("Children", slow))
        await patiently(live, hers)
        writing = asyncio.create_task(patiently(live, his))
        await slow.asked.wait()
        async with asyncio.timeout(10):
            await patiently(live, hers)
        await construct(ann, "another", "Emil Dahl bakes cake.")
        late = asyncio.create_task(patiently(live, hers))
        done, _ = await asyncio.wait([late, writing], timeout=0.5)
        assert not done
        slow.told.set()
        await asyncio.gather(late, writing)
        await live.close()


async def test_a_stop_does_not_wait_until_many_graphs_are_gone(tmp_path: Path) -> None:
    async with many_deleted(tmp_path) as (live, hers, his, _):
        asking = asyncio.create_task(live.snapshot(hers).__aenter__())
        await patiently(live, his)
        await live.close()
        with pytest.raises(Unavailable, match="stopping"):
            await asking
        assert not holds(tmp_path / "rdf", b"emil")


@pytest.mark.long
async def test_what_a_query_waits_for(tmp_path: Path) -> None:
    async with many_deleted(tmp_path, patience=0) as (live, hers, _, _ann):
        wanted = re.compile("Deleted graphs are being removed from the RDF store .* left")
        told = ""
        while not wanted.match(told):
            with pytest.raises(Unavailable) as refused:
                await live.snapshot(hers).__aenter__()
            told = str(refused.value)


async def test_more_deleted_than_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The store starts over, which leaves nothing on the disk at once."""
    caplog.set_level(logging.INFO, "platform.graph_rag")
    async with many_deleted(tmp_path) as (live, hers, _, ann):
        for number in range(10, 14):
            await ann.delete(f"{API}/graph/document/d{number}")
        await patiently(live, hers)
        caplog.clear()
        async with live.snapshot(hers) as (place, merged):
            reading = ox.Store.read_only(str(place))
            found = reading.query(
                f"SELECT ?e WHERE {{ ?e <{LABEL}> 'Emil Dahl' }}", default_graph=[ox.NamedNode(merged[0])]
            )
            assert isinstance(found, ox.QuerySolutions) and len(list(found)) == 1


class Times:
    """A clock that a test sets, and the pauses that were made."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    async def pause(self, _ending: asyncio.Event, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    def clearing(self, clear: Callable[[], Any]) -> Clearing:
        return Clearing("the store", clear, clock=self.clock, pause=self.pause)


@pytest.mark.parametrize(
    "error",
    [Unavailable("no answer"), OperationalError("SELECT 1", {}, Exception("starting up")), KeyError("x")],
)
async def test_clearing_goes_on_until_it_is_done(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever fails is tried again, with growing pauses, and the log says so; a stop does not fail."""
    times, tries, done = Times(), iter(range(100)), asyncio.Event()

    async def clear() -> None:
        if next(tries) < 9:
            raise error
        done.set()

    clearing = times.clearing(clear)
    clearing.note()
    await asyncio.wait_for(done.wait(), 10)
    await clearing.close()
    assert times.pauses[:9] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert "trying again" in caplog.text


async def test_a_stop_while_clearing_fails(caplog: pytest.LogCaptureFixture) -> None:
    async def clear() -> None:
        raise OperationalError("SELECT 1", {}, Exception("database is locked"))

    clearing = Times().clearing(clear)
    clearing.note()
    await clearing.close()
    assert len(caplog.records) == 1


async def test_clearing_begins_again_after_its_task_was_cancelled() -> None:
    done = asyncio.Event()

    async def clear() -> None:
        asyncio.get_running_loop().call_soon(done.set)
        raise asyncio.CancelledError

    clearing = Times().clearing(clear)
    for _ in range(2):
        done.clear()
        clearing.note()
        await asyncio.wait_for(done.wait(), 10)
    await clearing.close()


async def test_clearing_takes_at_most_a_fifth_of_the_time() -> None:
    times, finished = Times(), asyncio.Event()
    spans: Iterator[float] = iter([0.5, 100.0, 3_000.0])

    async def clear() -> None:
        times.now += next(spans)
        finished.set()

    clearing = times.clearing(clear)
    for _ in range(3):
        finished.clear()
        clearing.note()
        await asyncio.wait_for(finished.wait(), 10)
    await clearing.close()
    assert times.pauses == [2, 400, 12_000]
