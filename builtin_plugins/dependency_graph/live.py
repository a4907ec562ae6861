"""The graph of one process: read by the first query, and brought up to date before each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import Platform, ResourceKey, Unavailable

from .index import CatalogPlugin, Index, PluginEdge
from .models import Edge

log = logging.getLogger("platform.dependency_graph")

EDGES_CHANGED = "dependency_graph.edges"
_MOST_AT_ONCE = 10_000

Links = dict[str, list[PluginEdge]]
Names = dict[str, str]


class LiveGraph:
    """The index, kept up to date by notices. Nothing is read before the first query."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
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
                    self._index = await self._read_all()
                await self._catch_up(self._index)
            except (SQLAlchemyError, OSError) as error:
                log.warning("the dependency graph can't be read: %s", type(error).__name__)
                raise Unavailable("The dependency graph is not available") from None
            return self._index

    async def _read_all(self) -> Index:
        links, names = await self._platform.database.read(_read, None)
        index = Index()
        index.put_all(links, names)
        await self._read_catalog(index, index.plugins())
        return index

    async def _catch_up(self, index: Index) -> None:
        changed, self._changed = self._changed, set()
        renamed, self._renamed = self._renamed, set()
        try:
            if changed:
                links, names = await self._platform.database.read(_read, sorted(changed))
                edges = {source: links.get(source, []) for source in changed}
                index.put_all(edges, names)
                for source, mine in edges.items():
                    renamed |= {source, *(link.target for link in mine if link.target_type == "plugin")}
            if renamed:
                await self._read_catalog(index, renamed)
        except BaseException:  # boundary: a cancelled caller must not lose others' changes
            self._changed |= changed
            self._renamed |= renamed
            raise

    async def _read_catalog(self, index: Index, plugins: Iterable[str]) -> None:
        plugin_ids = sorted(plugins)
        index.has_catalog = bool(self._platform.hooks.implementations(plugin_registry.find_listings))
        refs = await self._platform.database.read(_read_refs, self._platform, plugin_ids)
        catalog = {ref.id: CatalogPlugin(ref.name, ref.version) for ref in refs if ref.approved}
        for plugin in plugin_ids:
            index.catalog.pop(plugin, None)
        index.catalog.update(catalog)

    async def check(self) -> None:
        """Raise Unavailable, OSError or SQLAlchemyError if the graph can't be queried."""
        await self.index()
        await self._platform.database.read(lambda session: session.scalar(select(Edge.id).limit(1)))


def _read(session: Session, plugins: Sequence[str] | None) -> tuple[Links, Names]:
    """The edges of some or all plugins, and the names stored with them."""
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
        links.setdefault(source, []).append(PluginEdge(source, target, kind, target_type, constraint))
        if name:
            names[source] = name
        if target_name and target_type == "plugin":
            names[target] = target_name
    return links, names


def _read_refs(
    session: Session, platform: Platform, plugins: Sequence[str]
) -> list[plugin_registry.ListingRef]:
    refs: list[plugin_registry.ListingRef] = []
    for at in range(0, len(plugins), _MOST_AT_ONCE):
        part = plugins[at : at + _MOST_AT_ONCE]
        spec = plugin_registry.find_listings
        for answer in platform.hooks.ask_now(spec, platform=platform, session=session, plugins=part):
            refs += answer
    return refs


def judge(platform: Platform, session: Session, plugin_id: str) -> plugin_registry.DependencyVerdict:
    """The verdict on one plugin from the rows, for callers without an open graph."""
    index = Index()
    index.put_all(*_read(session, None))
    index.has_catalog = bool(platform.hooks.implementations(plugin_registry.find_listings))
    refs = _read_refs(session, platform, sorted({plugin_id} | index.plugins()))
    index.catalog.update({ref.id: CatalogPlugin(ref.name, ref.version) for ref in refs if ref.approved})
    resolved = index.resolve(plugin_id)
    return plugin_registry.DependencyVerdict(
        resolved.verdict,
        tuple(resolved.resolve_failures),
        tuple(plugin_registry.RequiredPlugin(**one) for one in resolved.dependencies),
        tuple((one.name, one.reason) for one in index.conflicts(plugin_id)),
    )


@asynccontextmanager
async def open_graph(platform: Platform) -> AsyncIterator[LiveGraph]:
    """The graph of this process, notified of every change in any process."""
    graph = LiveGraph(platform)
    platform.notices.listen(EDGES_CHANGED, graph.note_edges)
    platform.notices.listen(plugin_registry.LISTINGS_CHANGED, graph.note_listing)
    yield graph


GRAPH: ResourceKey[LiveGraph] = ResourceKey("dependency graph")
