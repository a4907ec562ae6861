"""The graph of one process: opened by the first query, and brought up to date before each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from kernel.sdk import Platform, ResourceKey, Unavailable, contracts

from .index import Index, Known, Link
from .models import Edge, State
from .store import BROKEN, GraphStore

log = logging.getLogger("platform.dependency_graph")

EDGES_CHANGED = "dependency_graph.edges"
_MOST_AT_ONCE = 10_000

Links = dict[str, list[Link]]
Names = dict[str, str]


class LiveGraph:
    """Index and RDF store, kept up to date by notices. Nothing is opened before the first query."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self._platform = platform
        self._folder = folder
        self._store: GraphStore | None = None
        self._index: Index | None = None
        self._changed: set[str] = set()
        self._renamed: set[str] = set()
        self._turn = asyncio.Lock()

    def note_edges(self, plugin: str) -> None:
        """Note that the edges of a plugin changed."""
        self._changed.add(plugin)

    def note_listing(self, plugin: str) -> None:
        """Note that the catalog's data on a plugin changed."""
        self._renamed.add(plugin)

    async def index(self) -> Index:
        """The graph as of now. Raises Unavailable."""
        if self._index is not None and not self._changed and not self._renamed:
            return self._index
        async with self._turn:
            try:
                if self._index is None:
                    self._index = await self._open()
                await self._catch_up(self._index)
            except BROKEN as error:
                log.warning("the dependency graph is not available: %s", type(error).__name__)
                raise Unavailable("The dependency graph is not available") from None
            return self._index

    async def _open(self) -> Index:
        store = self._store
        if store is None:
            store = self._store = await asyncio.to_thread(GraphStore, self._folder)
        await asyncio.to_thread(store.open)
        links, names, version = await self._platform.database.snapshot(_read, None)
        index = Index()
        for source, found in (await asyncio.to_thread(store.bring_up, links, version)).items():
            index.put(source, found)
        index.names.update(names)
        await self._read_catalog(index, index.plugins())
        return index

    async def _catch_up(self, index: Index) -> None:
        changed, self._changed = self._changed, set()
        renamed, self._renamed = self._renamed, set()
        try:
            if changed and self._store is not None:
                links, names, version = await self._platform.database.snapshot(_read, sorted(changed))
                found = {source: links.get(source, []) for source in changed}
                await asyncio.to_thread(self._store.put, found, version)
                for source, mine in found.items():
                    index.put(source, mine)
                    renamed |= {source, *(link.target for link in mine if link.target_type == "plugin")}
                index.names.update(names)
            if renamed:
                await self._read_catalog(index, renamed)
        except BaseException:  # boundary: a cancelled caller must not lose others' changes
            self._changed |= changed
            self._renamed |= renamed
            raise

    async def _read_catalog(self, index: Index, plugins: Iterable[str]) -> None:
        wanted = sorted(plugins)
        index.has_catalog = bool(self._platform.hooks.implementations(contracts.find_listings))
        refs = await self._platform.database.read(_read_refs, self._platform, wanted)
        found = {ref.id: Known(ref.name, ref.version) for ref in refs if ref.approved}
        for plugin in wanted:
            index.known.pop(plugin, None)
        index.known.update(found)

    async def check(self) -> None:
        """Raise Unavailable or OSError if the graph can't be queried."""
        await self.index()
        if self._store is not None:
            await asyncio.to_thread(self._store.check)

    async def close(self) -> None:
        """Release the store."""
        if self._store is not None:
            await asyncio.to_thread(self._store.close)


def _read(session: Session, plugins: Sequence[str] | None) -> tuple[Links, Names, int]:
    """The edges of some or all plugins, the names stored with them, and the version of the rows."""
    table = Edge.__table__
    columns = (
        table.c.plugin_id,
        table.c.depends_on,
        table.c.dependency_type,
        table.c.depends_on_type,
        table.c.version_constraint,
        table.c.plugin_name,
        table.c.depends_on_name,
    )
    query = select(*columns)
    links: Links = {}
    names: Names = {}
    rows = session.execute(query if plugins is None else query.where(table.c.plugin_id.in_(plugins)))
    for source, target, kind, target_type, constraint, name, target_name in rows:
        links.setdefault(source, []).append(Link(source, target, kind, target_type, constraint))
        if name:
            names[source] = name
        if target_name and target_type == "plugin":
            names[target] = target_name
    version = session.scalar(select(State.version).where(State.id == 1)) or 0
    return links, names, version


def _read_refs(session: Session, platform: Platform, plugins: Sequence[str]) -> list[contracts.ListingRef]:
    found: list[contracts.ListingRef] = []
    for at in range(0, len(plugins), _MOST_AT_ONCE):
        part = plugins[at : at + _MOST_AT_ONCE]
        spec = contracts.find_listings
        for answer in platform.hooks.ask_now(spec, platform=platform, session=session, plugins=part):
            found += answer
    return found


def judge(platform: Platform, session: Session, plugin_id: str) -> contracts.DependencyVerdict:
    """The verdict on one plugin from the rows, for callers without an open graph."""
    links, names, _ = _read(session, None)
    index = Index()
    for source, found in links.items():
        index.put(source, found)
    index.names.update(names)
    index.has_catalog = bool(platform.hooks.implementations(contracts.find_listings))
    refs = _read_refs(session, platform, sorted({plugin_id} | index.plugins()))
    index.known.update({ref.id: Known(ref.name, ref.version) for ref in refs if ref.approved})
    resolved = index.resolve(plugin_id)
    return contracts.DependencyVerdict(
        resolved.verdict,
        tuple(resolved.resolve_failures),
        tuple(contracts.Dependency(**one) for one in resolved.dependencies),
        tuple((one.name, one.reason) for one in index.conflicts(plugin_id)),
    )


@asynccontextmanager
async def open_graph(platform: Platform, folder: Path) -> AsyncIterator[LiveGraph]:
    """The graph of this process, notified of every change in any process."""
    graph = LiveGraph(platform, folder)
    platform.notices.listen(EDGES_CHANGED, graph.note_edges)
    platform.notices.listen(contracts.LISTINGS_CHANGED, graph.note_listing)
    try:
        yield graph
    finally:
        await graph.close()


GRAPH: ResourceKey[LiveGraph] = ResourceKey("dependency graph")
