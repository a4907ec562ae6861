"""The RDF store of this process: opened at the first query, and brought to the rows' state before each.

A query compares the stamps of the graphs that its caller sees with those in the store, so it never answers
from an earlier state, lost notices or not. Notices only clear away what was deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from kernel.sdk import Platform, ResourceKey, Unavailable

from ..storing.writing import GRAPHS_CHANGED
from .clearing import Clearing
from .rows import GraphRows, Listed, rows_of, there
from .store import BROKEN, RdfStore, discard_unused
from .triples import quads

log = logging.getLogger("platform.graph_rag")

_GRAPHS_AT_ONCE = 1_000


class LiveRdf:
    """What this process has of the graphs in RDF."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self._platform = platform
        self._folder = folder
        self._store: RdfStore | None = None
        self._turn = asyncio.Lock()
        self._snapshot: Path | None = None
        self._readers: dict[Path, int] = {}
        self.clearing = Clearing("the RDF store", self._clear, BROKEN)

    @asynccontextmanager
    async def snapshot(self, graphs: Sequence[Listed]) -> AsyncIterator[tuple[Path, list[str]]]:
        """A folder with the store that holds these graphs as they are listed, and the names of graphs that
        hold exactly what they do. Raises Unavailable.
        """
        async with self._turn:
            try:
                place, merged = await self._ready(graphs)
            except BROKEN as error:
                log.warning("the RDF store is not available: %s", type(error).__name__)
                raise Unavailable("The RDF store is not available") from None
            self._readers[place] = self._readers.get(place, 0) + 1
        try:
            yield place, merged
        finally:
            self._readers[place] -= 1
            await self._release(place)

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
            for at in range(0, len(stale), _GRAPHS_AT_ONCE):
                await self._put(store, stale[at : at + _GRAPHS_AT_ONCE])
        if self._snapshot is None:
            self._snapshot = await asyncio.to_thread(store.snapshot)
        return self._snapshot, store.merged(graphs)

    async def _put(self, store: RdfStore, graphs: Sequence[Listed]) -> None:
        found: dict[Listed, GraphRows] = {}
        for one in graphs:
            rows = await self._platform.database.snapshot(rows_of, one.id)
            if rows is not None:
                found[replace(one, stamp=rows.graph.stamp)] = rows
        await asyncio.to_thread(lambda: store.put({one: quads(rows) for one, rows in found.items()}))

    async def _release(self, place: Path) -> None:
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
        """Let go of the store."""
        await self.clearing.close()
        if self._store is not None:
            await asyncio.to_thread(self._store.close)


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
