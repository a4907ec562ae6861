"""The indexes of this process, and how they are kept up to date.

An index is read when a knowledge base is first walked; notices tell which graphs have changed since. An index
may be a moment behind: the text of each passage that a walk adds is read from its row, so deleted text is
never shown.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.graph_rag.extraction.mentions import Mention
from builtin_plugins.graph_rag.models import Graph, GraphPassage
from builtin_plugins.graph_rag.storing.writing import GRAPHS_CHANGED
from kernel.sdk import Platform, ResourceKey

if TYPE_CHECKING:
    from builtin_plugins.graph_rag.walk.digests import Digest

_GRAPHS_AT_ONCE = 200
_MOST_LOADED = 256


class BaseIndex:
    """The index of one knowledge base, with its documents' data from the rows."""

    def __init__(self, knowledge_base_id: str) -> None:
        from builtin_plugins.graph_rag.walk.index import WalkIndex  # imported here, as only walks need it

        self.knowledge_base_id = knowledge_base_id
        self.index = WalkIndex()
        self.titles: dict[str, str] = {}
        self._documents: dict[int, str] = {}  # by graph
        self._changed: set[int] | None = None  # None before the first reading
        self._catching_up = asyncio.Lock()

    def note(self, graph_id: int) -> None:
        """Note that a graph was written or dropped, in any process."""
        if self._changed is not None:
            self._changed.add(graph_id)

    async def caught_up(self, platform: Platform) -> None:
        """Bring the index up to date with the rows."""
        if self._changed == set():
            return
        async with self._catching_up:
            changed, self._changed = self._changed, set()
            try:
                await self._read(platform, changed)
            except BaseException:  # boundary: on any end, the next run must read the rest
                self._changed = None if changed is None else self._changed | changed
                raise

    async def _read(self, platform: Platform, changed: set[int] | None) -> None:
        if changed is None:
            graphs = sorted(await platform.database.read(_graphs, self.knowledge_base_id))
        else:
            graphs = sorted(changed)
        for at in range(0, len(graphs), _GRAPHS_AT_ONCE):
            part = graphs[at : at + _GRAPHS_AT_ONCE]
            rows = await platform.database.read(_rows, self.knowledge_base_id, part)
            await asyncio.to_thread(self._replace, part, rows)

    def _replace(self, graphs: Iterable[int], rows: Sequence[Any]) -> None:
        from builtin_plugins.graph_rag.walk.digests import digest

        documents: dict[str, list[Digest]] = {}
        document_by_graph: dict[int, str] = {}
        for row in rows:
            mentions = [
                Mention(one[0], one[1], row.text[one[0] : one[1]], one[2], one[3]) for one in row.mentions
            ]
            title = row.title if row.position == 0 else None
            passage = digest(row.passage_id, row.position, row.text, mentions, title)
            documents.setdefault(row.document_id, []).append(passage)
            document_by_graph[row.graph_id] = row.document_id
            self.titles[row.document_id] = row.title or row.document_id
        gone = {self._documents.pop(graph) for graph in graphs if graph in self._documents}
        self.index.remove(gone - set(documents))
        self.index.put(list(documents.items()))
        self._documents |= document_by_graph
        for document in gone - set(documents):
            self.titles.pop(document, None)


class Walks:
    """The indexes of the most recently walked knowledge bases."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._bases: OrderedDict[str, BaseIndex] = OrderedDict()
        self._reading: set[asyncio.Task[None]] = set()

    def note(self, key: str) -> None:
        """Receive the notice of a change; `key` is the graph's id."""
        for base in self._bases.values():
            base.note(int(key))

    async def of(self, knowledge_base_id: str) -> BaseIndex:
        """The up-to-date index of a knowledge base.

        Reading continues if the caller stops waiting, so that a large index is ready for a later question.
        """
        base = self._bases.setdefault(knowledge_base_id, BaseIndex(knowledge_base_id))
        self._bases.move_to_end(knowledge_base_id)
        if len(self._bases) > _MOST_LOADED:
            self._bases.popitem(last=False)
        task = asyncio.create_task(base.caught_up(self._platform))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)
        await asyncio.shield(task)
        return base

    async def close(self) -> None:
        """Cancel all reading."""
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)


WALKS = ResourceKey[Walks]("graph_rag.walks")


@asynccontextmanager
async def open_walks(platform: Platform) -> AsyncIterator[Walks]:
    """Open the indexes, kept up to date by notices."""
    walks = Walks(platform)
    with platform.notices.listening(GRAPHS_CHANGED, walks.note):
        try:
            yield walks
        finally:
            await walks.close()


def _graphs(session: Session, knowledge_base_id: str) -> list[int]:
    """Graphs of the knowledge base's own documents, without graphs that accounts constructed for it."""
    mine = (Graph.maker == "") & (Graph.knowledge_base_id == knowledge_base_id)
    return list(session.scalars(select(Graph.id).where(mine)))


def _rows(session: Session, knowledge_base_id: str, graphs: Sequence[int]) -> Sequence[Any]:
    query = (
        select(
            GraphPassage.graph_id,
            GraphPassage.position,
            GraphPassage.passage_id,
            GraphPassage.text,
            GraphPassage.mentions,
            Graph.document_id,
            Graph.title,
        )
        .join(Graph, Graph.id == GraphPassage.graph_id)
        .where(Graph.maker == "", Graph.knowledge_base_id == knowledge_base_id, Graph.id.in_(graphs))
        .order_by(GraphPassage.graph_id, GraphPassage.position)
    )
    return session.execute(query).all()
