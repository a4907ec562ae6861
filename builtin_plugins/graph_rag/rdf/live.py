"""The RDF store of this process: opened at the first query, and brought to the rows' state before each.

A query compares the stamps of the graphs that its caller sees with those in the store, so it never answers
from an earlier state, lost notices or not. Notices only clear away what was deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from kernel.sdk import Platform, ResourceKey, Unavailable

from ..storing.writing import GRAPHS_CHANGED
from .clearing import Clearing
from .rows import GraphRows, Listed, rows_of_several, there
from .store import BROKEN, RdfStore, discard_unused
from .triples import quads

log = logging.getLogger("platform.graph_rag")
T = TypeVar("T")

_GRAPHS_AT_ONCE = 500
_ROWS_AT_ONCE = 100
_PATIENCE = 30.0


class LiveRdf:
    """What this process has of the graphs in RDF. `patience` is how many seconds a query waits for it."""

    def __init__(self, platform: Platform, folder: Path, patience: float = _PATIENCE) -> None:
        self._platform = platform
        self._folder = folder
        self._patience = patience
        self._store: RdfStore | None = None
        self._turn = asyncio.Lock()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._left = 0
        self._closing = False
        self._snapshot: Path | None = None
        self._readers: dict[Path, int] = {}
        self.clearing = Clearing("the RDF store", self._clear, BROKEN)

    @asynccontextmanager
    async def snapshot(self, graphs: Sequence[Listed]) -> AsyncIterator[tuple[Path, list[str]]]:
        """A folder with the store that holds these graphs as they are listed, and the names of graphs that
        hold exactly what they do. Raises Unavailable, also where writing them takes longer than one waits:
        it goes on, for whoever asks again.
        """
        bringing = self._begun(self._brought(graphs))
        try:
            place, merged = await asyncio.wait_for(asyncio.shield(bringing), self._patience)
        except (TimeoutError, asyncio.CancelledError) as error:
            bringing.add_done_callback(self._give_back)
            if isinstance(error, asyncio.CancelledError):
                raise
            raise Unavailable(
                f"The graphs are being written to the RDF store ({self._left:,} are left); ask again soon"
            ) from None
        try:
            yield place, merged
        finally:
            await self._release(place)

    async def _brought(self, graphs: Sequence[Listed]) -> tuple[Path, list[str]]:
        """A snapshot that stays until it is released. Nothing may cancel this: threads can't be stopped."""
        async with self._turn:
            try:
                place, merged = await self._ready(graphs)
            except BROKEN as error:
                log.warning("the RDF store failed (%s); it is opened again", type(error).__name__)
                place, merged = await self._ready_again(graphs)
            self._readers[place] = self._readers.get(place, 0) + 1
            return place, merged

    def _give_back(self, brought: asyncio.Task[tuple[Path, list[str]]]) -> None:
        """Nobody waits any more for what was brought."""
        if brought.exception() is None:
            self._begun(self._release(brought.result()[0]))

    def _begun(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _ready(self, graphs: Sequence[Listed]) -> tuple[Path, list[str]]:
        store = self._store
        if store is None:
            store = await asyncio.to_thread(RdfStore, self._folder)
            await asyncio.to_thread(store.open)
            self._store = store
            await self._remove_gone(store, await self._platform.database.read(there))
        stale = store.stale(graphs)
        if stale:
            log.info("bringing %d graphs to the RDF store", len(stale))
            self._snapshot = None
            await self._put(store, stale)
        if self._snapshot is None or not await asyncio.to_thread(self._snapshot.exists):
            self._snapshot = await asyncio.to_thread(store.snapshot)
        return self._snapshot, store.merged(graphs)

    async def _ready_again(self, graphs: Sequence[Listed]) -> tuple[Path, list[str]]:
        """Reopen the store and try again: somebody may have removed its files."""
        try:
            await self._let_go()
            return await self._ready(graphs)
        except BROKEN as error:
            log.warning("the RDF store is not available: %s", type(error).__name__)
            await self._let_go()
            raise Unavailable("The RDF store is not available") from None

    async def _let_go(self) -> None:
        store, self._store, self._snapshot = self._store, None, None
        if store is not None:
            await asyncio.to_thread(store.close)

    async def _put(self, store: RdfStore, graphs: Sequence[Listed]) -> None:
        for at in range(0, len(graphs), _GRAPHS_AT_ONCE):
            if self._closing:
                raise Unavailable("The server is stopping; ask again soon")
            self._left = len(graphs) - at
            found = await self._rows({one.id: one for one in graphs[at : at + _GRAPHS_AT_ONCE]})
            await asyncio.to_thread(store.put, {one: quads(rows) for one, rows in found.items()})

    async def _rows(self, graphs: Mapping[int, Listed]) -> dict[Listed, GraphRows]:
        """The rows of those that are still there, with the states that they are in."""
        ids, found = list(graphs), {}
        for at in range(0, len(ids), _ROWS_AT_ONCE):
            part = ids[at : at + _ROWS_AT_ONCE]
            for rows in await self._platform.database.snapshot(rows_of_several, part):
                found[replace(graphs[rows.graph.id], stamp=rows.graph.stamp)] = rows
        return found

    async def _release(self, place: Path) -> None:
        self._readers[place] -= 1
        if self._readers.get(place) == 0 and place != self._snapshot:
            del self._readers[place]
            await asyncio.to_thread(_remove_folder, place)

    async def _clear(self) -> None:
        """Let nothing that was deleted stay on the disk."""
        async with self._turn:
            if not self._folder.exists():
                return
            known = await self._platform.database.read(there)
            if self._store is not None:
                await self._remove_gone(self._store, known)
            await asyncio.to_thread(discard_unused, self._folder, known)

    async def _remove_gone(self, store: RdfStore, known: Collection[tuple[str, str]]) -> None:
        if not store.others(known):
            return
        await asyncio.to_thread(store.start_over)
        before, self._snapshot = self._snapshot, None
        if before is not None and not self._readers.get(before):
            self._readers.pop(before, None)
            await asyncio.to_thread(_remove_folder, before)

    async def check(self) -> None:
        """Raise Unavailable or OSError where the store can't be used."""
        async with self.snapshot([]):
            return

    async def close(self) -> None:
        """Let go of the store, once nothing works on it any more."""
        self._closing = True
        while self._under_way:
            await asyncio.wait(self._under_way)
        await self.clearing.close()
        await self._let_go()


def _remove_folder(place: Path) -> None:
    import shutil

    shutil.rmtree(place, ignore_errors=True)


@asynccontextmanager
async def open_rdf(platform: Platform) -> AsyncIterator[LiveRdf]:
    """The RDF of this process, told of every change in any process."""
    live = LiveRdf(platform, platform.settings.home / "graph_rag" / "rdf")
    platform.notices.listen(GRAPHS_CHANGED, live.clearing.note)
    live.clearing.note()
    try:
        yield live
    finally:
        await live.close()


RDF_GRAPHS: ResourceKey[LiveRdf] = ResourceKey("graph-rag RDF")
