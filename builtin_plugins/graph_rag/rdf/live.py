"""The RDF store of this process: opened at the first query, and brought to the rows' state before each.

A query compares the stamps of the graphs that its caller sees with those in the store, so it never answers
from an earlier state, lost notices or not. Notices only clear away what was deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from kernel.sdk import Platform, ResourceKey, Unavailable

from ..storing.writing import GRAPHS_CHANGED
from .rows import Listed, rows_of, there
from .store import BROKEN, RdfStore, discard_unused
from .triples import quads

log = logging.getLogger("platform.graph_rag")


class LiveRdf:
    """What this process has of the graphs in RDF."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self._platform = platform
        self._folder = folder
        self._store: RdfStore | None = None
        self._turn = asyncio.Lock()
        self._snapshot: Path | None = None
        self._readers: dict[Path, int] = {}
        self._clearing: asyncio.Task[None] | None = None

    def note_change(self, _graph: str) -> None:
        """A graph was written or dropped somewhere: what is gone has to leave the disk."""
        if self._clearing is None:
            self._clearing = asyncio.get_running_loop().create_task(self._clear())

    @asynccontextmanager
    async def snapshot(self, graphs: Sequence[Listed]) -> AsyncIterator[Path]:
        """A folder with the store that holds these graphs as they are listed. Raises Unavailable."""
        async with self._turn:
            try:
                place = await self._ready(graphs)
            except BROKEN as error:
                log.warning("the RDF store is not available: %s", type(error).__name__)
                raise Unavailable("The RDF store is not available") from None
            self._readers[place] = self._readers.get(place, 0) + 1
        try:
            yield place
        finally:
            self._readers[place] -= 1
            await self._release(place)

    async def _ready(self, graphs: Sequence[Listed]) -> Path:
        store = self._store
        if store is None:
            store = await asyncio.to_thread(RdfStore, self._folder)
            await asyncio.to_thread(store.open)
            self._store = store
            await self._remove_gone(store)
        stale = store.stale((one.name, one.stamp) for one in graphs)
        if stale:
            log.info("bringing %d graphs to the RDF store", len(stale))
            self._snapshot = None
            for one in graphs:
                if one.name in stale:
                    await self._put(store, one)
        if self._snapshot is None:
            self._snapshot = await asyncio.to_thread(store.snapshot)
        return self._snapshot

    async def _put(self, store: RdfStore, one: Listed) -> None:
        rows = await self._platform.database.snapshot(rows_of, one.id)
        if rows is not None:
            await asyncio.to_thread(lambda: store.put(one.name, rows.graph.stamp, quads(rows)))

    async def _release(self, place: Path) -> None:
        if self._readers.get(place) == 0 and place != self._snapshot:
            del self._readers[place]
            await asyncio.to_thread(_remove_folder, place)

    async def _clear(self) -> None:
        async with self._turn:
            self._clearing = None  # what changes from now on is for the next one
            try:
                if self._store is None:
                    await asyncio.to_thread(discard_unused, self._folder)
                else:
                    await self._remove_gone(self._store)
            except BROKEN as error:
                log.warning("deleted graphs stay in the RDF store for now: %s", type(error).__name__)

    async def _remove_gone(self, store: RdfStore) -> None:
        known = await self._platform.database.read(there)
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
        """Let go of the store."""
        if self._clearing is not None:
            await asyncio.gather(self._clearing, return_exceptions=True)
        if self._store is not None:
            await asyncio.to_thread(self._store.close)


def _remove_folder(place: Path) -> None:
    import shutil

    shutil.rmtree(place, ignore_errors=True)


@asynccontextmanager
async def open_rdf(platform: Platform) -> AsyncIterator[LiveRdf]:
    """The RDF of this process, told of every change in any process."""
    live = LiveRdf(platform, platform.settings.home / "graph_rag" / "rdf")
    platform.notices.listen(GRAPHS_CHANGED, live.note_change)
    try:
        yield live
    finally:
        await live.close()


RDF_GRAPHS: ResourceKey[LiveRdf] = ResourceKey("graph-rag RDF")
