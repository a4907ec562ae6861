"""The RDF store of this process: opened by the first query, and synchronized with the rows before each.

A query compares the states of the graphs that its caller sees with those in the store, so it never answers
from an outdated state, even if notices are lost. Notices only trigger the removal of deleted graphs: first
from the store, then for good by a child process that copies the store while queries continue.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from builtin_plugins.graph_rag.api import GRAPHS_GONE, GraphSight
from kernel.sdk import ChildFailed, ChildLimits, Children, MachineFault, Platform, ResourceKey, Unavailable
from kernel.sdk.operations import Reach

from . import row_file
from .children import RDF_CHILDREN
from .clearing import Clearing
from .rows import GraphRows, VisibleGraph, holdings, rows_of_several, there, visible_graphs
from .store import BROKEN, Inventory, RdfStore, discard_unused, holds
from .triples import lines

log = logging.getLogger("platform.graph_rag")
T = TypeVar("T")

_GRAPHS_AT_ONCE = 500
_ROWS_AT_ONCE = 100
PATIENCE = 30.0
"""Seconds that a query waits for the store to be up to date."""
_SOON = 5
"""The fewest seconds to wait before asking again."""
_REMOVING = 0.5
"""Seconds for which deleted graphs are removed before other work gets a turn; one may take longer."""
_STOPPING = "The server is stopping; try again soon"
_MOST_HERE = 50
_LARGEST_HERE = 10_000
"""The most graphs, entities and relations that this process writes itself, in less time than it takes to
start a child process."""
_FILL = "builtin_plugins.graph_rdf.store:fill"
_COPY = "builtin_plugins.graph_rdf.store:copy"
_COPYING = ChildLimits(8 * 1024, 3_600, 3_600, file_bytes=2**40)
"""A copy of 20,000 documents takes a minute; this bounds one that hangs."""


class StoreFailed(Exception):
    """The store failed and was closed. Errors of the database are not included."""


class LiveRdf:
    """This process's graphs in RDF. `patience` is how many seconds a query waits for the store; `removing` is
    how many seconds deleted graphs are removed at a time.
    """

    def __init__(
        self,
        platform: Platform,
        folder: Path,
        children: Children,
        patience: float = PATIENCE,
        removing: float = _REMOVING,
    ) -> None:
        self._platform = platform
        self._children = children
        self._folder = folder
        self._patience = patience
        self._removing = removing
        self._store: RdfStore | None = None
        self._turn = asyncio.Lock()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._work = "The RDF store is being opened"
        self._seconds_left = _SOON
        self._closing = False
        self._copying: asyncio.Task[Any] | None = None
        self._snapshot: Path | None = None
        self._in_snapshot: Inventory = {}
        self._readers: dict[Path, int] = {}
        self.clearing = Clearing("the RDF store", self._clear)

    @asynccontextmanager
    async def snapshot(self, sight: GraphSight | None) -> AsyncIterator[tuple[Path, list[str]]]:
        """A folder with an up-to-date store of what `sight` covers (None: nothing), and the names of the
        graphs that contain exactly that.

        Raises Unavailable, also if writing takes longer than the patience; it then continues for later
        requests.
        """
        bringing = self._begun(self._brought(sight))
        try:
            place, merged = await asyncio.wait_for(asyncio.shield(bringing), self._patience)
        except (TimeoutError, asyncio.CancelledError) as error:
            bringing.add_done_callback(self._give_back)
            if isinstance(error, asyncio.CancelledError):
                raise
            again = {"Retry-After": str(self._seconds_left)}
            raise Unavailable(f"{self._work}; try again soon", headers=again) from None
        try:
            yield place, merged
        finally:
            await self._release(place)

    async def _brought(self, sight: GraphSight | None) -> tuple[Path, list[str]]:
        """A snapshot that stays until it is released. Must not be cancelled, as threads can't be stopped."""
        at_hand = await self._at_hand(sight)
        if at_hand is not None:
            return at_hand
        while True:
            async with self._turn:
                try:
                    ready = await self._ready(sight)
                except StoreFailed as error:
                    log.warning("the RDF store failed (%s); reopening it", error)
                    ready = await self._ready_again(sight)
                if ready is not None:
                    return self._read_by_one_more(*ready)
            if self._closing:
                raise Unavailable(_STOPPING)

    async def _at_hand(self, sight: GraphSight | None) -> tuple[Path, list[str]] | None:
        """The last snapshot, if it is up to date for `sight`: writing other graphs then delays nobody."""
        if sight is None or self._snapshot is None:
            return None
        visible = await self._platform.database.read(holdings, sight)
        place = self._snapshot
        if place is None or not await asyncio.to_thread(place.exists):
            return None
        if place is not self._snapshot or not holds(self._in_snapshot, visible):
            return None
        return self._read_by_one_more(place, [one.owner for one in visible])

    def _read_by_one_more(self, place: Path, merged: list[str]) -> tuple[Path, list[str]]:
        self._readers[place] = self._readers.get(place, 0) + 1
        return place, merged

    def _give_back(self, brought: asyncio.Task[tuple[Path, list[str]]]) -> None:
        """Release a snapshot that nobody waits for any more."""
        if brought.exception() is None:
            self._begun(self._release(brought.result()[0]))

    def _begun(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _ready(self, sight: GraphSight | None) -> tuple[Path, list[str]] | None:
        """The snapshot, and the graphs that contain what is visible; None while deleted graphs have to go
        first.

        Raises StoreFailed.
        """
        store = self._store or await self._opened()
        merged = [] if sight is None else await self._bring(store, sight)
        if store.spent:
            self.clearing.note()
        if merged is None:
            return None
        if self._snapshot is None or not await asyncio.to_thread(self._snapshot.exists):
            self._snapshot, self._in_snapshot = await self._do(store.snapshot), store.inventory()
        return self._snapshot, merged

    async def _opened(self) -> RdfStore:
        self._store = store = await self._do(RdfStore, self._folder)
        await self._do(store.open)
        return store

    async def _do(self, work: Callable[..., T], *arguments: Any) -> T:
        """Work on the store in a thread. A failure may leave the store incomplete, so it is closed; it starts
        over when reopened. Raises StoreFailed.
        """
        try:
            return await asyncio.to_thread(work, *arguments)
        except BROKEN as error:
            failure = type(error).__name__
        # Outside the handler, as the error refers to iterators that keep the folder locked.
        await self._let_go()
        raise StoreFailed(failure)

    async def _bring(self, store: RdfStore, sight: GraphSight) -> list[str] | None:
        """Bring all visible graphs to the store; returns the names of graphs that contain exactly these.

        None if some graphs were removed and there may be more.
        """
        visible = await self._platform.database.read(holdings, sight)
        if holds(store.inventory(), visible):
            return [one.owner for one in visible]
        graphs = await self._platform.database.snapshot(visible_graphs, sight)
        if store.outgrown(graphs) and await self._drop_some(store):
            return None
        stale = store.stale(graphs)
        if stale:
            log.info("bringing %d graphs to the RDF store", len(stale))
            try:
                await self._put(store, stale)
            finally:
                await self._outdate()
        return store.merged(graphs)

    async def _ready_again(self, sight: GraphSight | None) -> tuple[Path, list[str]] | None:
        """Try again with a reopened store: somebody may have removed its files."""
        try:
            return await self._ready(sight)
        except StoreFailed as error:
            log.warning("the RDF store is not available: %s", error)
            raise Unavailable("The RDF store is not available") from None

    async def _let_go(self) -> None:
        store, self._store, self._snapshot = self._store, None, None
        if self._copying is not None:
            self._copying.cancel()
            await asyncio.wait([self._copying])
        if store is not None:
            await asyncio.to_thread(store.close)

    async def _put(self, store: RdfStore, graphs: Sequence[VisibleGraph]) -> None:
        began = time.monotonic()
        for at in range(0, len(graphs), _GRAPHS_AT_ONCE):
            if self._closing:
                raise Unavailable(_STOPPING)
            left = len(graphs) - at
            self._work = f"The graphs are being written to the RDF store ({left:,} left)"
            self._seconds_left = round(_SOON + (time.monotonic() - began) / (at or 1) * left)
            rows_by_graph = await self._rows({one.id: one for one in graphs[at : at + _GRAPHS_AT_ONCE]})
            size = sum(len(rows.entities) + len(rows.relations) for rows in rows_by_graph.values())
            if len(rows_by_graph) > _MOST_HERE or size > _LARGEST_HERE:
                await self._fill(store, rows_by_graph)
            else:
                await self._do(_put, store, rows_by_graph)

    async def _fill(self, store: RdfStore, graphs: Mapping[VisibleGraph, GraphRows]) -> None:
        """Let a low-priority child process write these graphs."""
        place = await self._do(store.lend, [one.name for one in graphs])
        file = self._platform.scratch.new(".jsonl")
        try:
            await asyncio.to_thread(row_file.write, file, graphs)
            reach = Reach([str(file.absolute())], [str(place)])
            await self._children.call(_FILL, *reach.writes, *reach.reads, limits=_COPYING, reach=reach)
        except (ChildFailed, MachineFault) as error:
            await self._let_go()
            raise StoreFailed(f"{type(error).__name__}: {error}") from None
        finally:
            await asyncio.to_thread(file.unlink, missing_ok=True)
        await self._do(store.take_back)

    async def _rows(self, graphs: Mapping[int, VisibleGraph]) -> dict[VisibleGraph, GraphRows]:
        """The rows of the graphs that still exist, with their current states."""
        ids, rows_by_graph = list(graphs), {}
        for at in range(0, len(ids), _ROWS_AT_ONCE):
            part = ids[at : at + _ROWS_AT_ONCE]
            for rows in await self._platform.database.snapshot(rows_of_several, part):
                rows_by_graph[replace(graphs[rows.graph.id], stamp=rows.graph.stamp)] = rows
        return rows_by_graph

    async def _release(self, place: Path) -> None:
        self._readers[place] -= 1
        if self._readers.get(place) == 0:
            del self._readers[place]
            if place != self._snapshot:
                await asyncio.to_thread(_remove_folder, place)

    async def _clear(self) -> None:
        """Remove deleted graphs from the disk. Deletions in the meantime send another notice."""
        if not self._folder.exists():
            return
        more = True
        while more:
            async with self._turn:
                more = self._store is not None and await self._drop_some(self._store)
        async with self._turn:
            current = await self._platform.database.read(there)
            await asyncio.to_thread(discard_unused, self._folder, current)
        await self._renew()

    async def _drop_some(self, store: RdfStore) -> bool:
        """Remove some of the deleted graphs; returns whether there were any.

        If more are deleted than left, or the server is stopping, starting over is quicker.
        """
        gone = store.gone(await self._platform.database.read(there))
        if not gone:
            return False
        self._work = f"Deleted graphs are being removed from the RDF store ({len(gone):,} left)"
        self._seconds_left = _SOON
        if self._closing or store.mostly(gone):
            await self._do(store.start_over)
        else:
            await self._do(store.drop, gone, self._removing)
        await self._outdate()
        return True

    async def _outdate(self) -> None:
        """Make the next query take a new snapshot; the old one is removed with its last reader."""
        before, self._snapshot = self._snapshot, None
        if before is not None and before not in self._readers:
            await asyncio.to_thread(_remove_folder, before)

    async def _renew(self) -> None:
        """Replace a store that still contains texts of dropped graphs by a copy."""
        async with self._turn:
            store = self._store
            if store is None or not store.spent or self._closing:
                return
            place = await self._do(store.before_copy)
            if self._closing:
                return  # closing removes the snapshot with the store
            if place is None:
                log.warning("not enough free disk space to copy the RDF store; rebuilding it")
                await self._do(store.start_over)
                await self._outdate()
                return
            await asyncio.to_thread(store.copy_place.mkdir)  # the child may fill it, and make no other
            reach = Reach([str(place)], [str(store.copy_place)])
            call = self._children.call(_COPY, *reach.reads, *reach.writes, limits=_COPYING, reach=reach)
            copying = self._copying = asyncio.create_task(call)
        await asyncio.wait([copying])
        self._copying = None
        await asyncio.to_thread(_remove_folder, place)
        async with self._turn:
            if store is not self._store or copying.cancelled():
                return  # whoever closed the store has discarded the copy
            failure = copying.exception()
            if failure is not None:
                log.warning("the RDF store could not be copied (%r); rebuilding it", failure)
            await self._do(store.take_copy if failure is None else store.start_over)
            await self._outdate()

    async def check(self) -> None:
        """Raise Unavailable or OSError if the store can't be used."""
        async with self.snapshot(None):
            return

    async def close(self) -> None:
        """Close the store once nothing uses it any more."""
        self._closing = True
        if self._copying is not None:
            self._copying.cancel()
        while self._under_way:
            await asyncio.wait(self._under_way)
        await self.clearing.close()
        if self._store is not None and self._store.spent:
            # There is no time for a copy; the next process that gets a query fills the store again. It also
            # removes what is left over.
            with suppress(*BROKEN):
                await asyncio.to_thread(self._store.start_over)
        await self._let_go()


def _put(store: RdfStore, graphs: Mapping[VisibleGraph, GraphRows]) -> None:
    store.put({one: lines(rows) for one, rows in graphs.items()})


def _remove_folder(place: Path) -> None:
    import shutil

    shutil.rmtree(place, ignore_errors=True)


@asynccontextmanager
async def open_rdf(platform: Platform) -> AsyncIterator[LiveRdf]:
    """Open this process's RDF store, notified of every change in any process."""
    folder = platform.settings.home / "graph_rag" / "rdf"
    live = LiveRdf(platform, folder, platform.resource(RDF_CHILDREN))
    platform.notices.listen(GRAPHS_GONE, live.clearing.note)
    live.clearing.note()
    try:
        yield live
    finally:
        await live.close()


RDF_GRAPHS: ResourceKey[LiveRdf] = ResourceKey("graph-rag RDF")
