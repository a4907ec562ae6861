"""The vector store on PostgreSQL with pgvector: searches in the database.

The setting `vector_store` chooses it; so does `auto` if PostgreSQL offers the extension `vector` 0.8 or
newer. Each point's vector is stored next to it as `halfvec` (the precision of stored points) in the same
transaction, so nothing is loaded at start and no process keeps vectors in memory. For the words of hybrid
search, each process still has a BM25 index.

A search reads every allowed vector until a collection has outgrown that (`pgvector_graphs.BUILD_ABOVE`) and
its HNSW graph has been built in the background. After that, a search with a wide filter or none may miss a
few near vectors; one with a narrow filter misses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import text as sql
from sqlalchemy.orm import Session

from builtin_plugins.pgvector.graphs import BUILD_ABOVE, Graphs
from builtin_plugins.pgvector.search import Nearest
from builtin_plugins.vectors.api import (
    CollectionRecord,
    Follower,
    IndexFolders,
    Judged,
    Labels,
    Point,
    Query,
    Ranking,
    SqlVectorStore,
    both_legs,
    fuse,
    hybrid_weight,
)
from kernel.sdk import Database, Unit, off_the_loop

_WRITE = sql(
    "INSERT INTO pgvector_point (label, collection_id, embedding)"
    " SELECT label, collection_id, CAST(CAST(:vector AS real[]) AS halfvec) FROM vectors_point"
    " WHERE collection_id = :collection AND id = :id ON CONFLICT DO NOTHING"
)


class PgVectorStore(SqlVectorStore):
    """Points in SQL with their vectors beside them, in a table made by `pgvector_setup`."""

    def __init__(
        self, database: Database, build_above: int = BUILD_ABOVE, folders: IndexFolders | None = None
    ) -> None:
        """`build_above` is the number of points above which a collection gets an HNSW graph."""
        super().__init__(database, folders=folders)
        self.graphs = Graphs(database, build_above)

    def stage(self, unit: Unit, collection: str, points: Sequence[Point]) -> None:
        """See `VectorStore.stage`."""
        super().stage(unit, collection, points)
        record = self.require_collection(unit.session, collection)
        if points and record.dimension:
            rows = [
                {"collection": record.id, "id": point.id, "vector": point.vector.tolist()} for point in points
            ]
            unit.session.execute(_WRITE, rows)

    def publish(self, unit: Unit, collection: str, *groups: str) -> int:
        """See `VectorStore.publish`."""
        count = super().publish(unit, collection, *groups)
        record = self.require_collection(unit.session, collection)

        async def look() -> None:
            self.graphs.look_after(record.id)

        if record.dimension:
            unit.after_commit(look)
        return count

    async def purge(self) -> None:
        """Remove the points of dropped collections, then their graphs."""
        await super().purge()
        self.graphs.look_after()

    def rank(self, session: Session, record: CollectionRecord, query: Query) -> Judged:
        """The nearest points by SQL; for hybrid search fused with BM25."""
        allowed = self.allowed(session, record, query)
        nearest = Nearest(session, record, query, allowed)
        if query.text is None:
            return Judged.by_cosine(nearest.best(query.k))
        return self._fused(session, record, query, nearest, allowed)

    def _fused(
        self,
        session: Session,
        record: CollectionRecord,
        query: Query,
        nearest: Nearest,
        allowed: Labels | None,
    ) -> Judged:
        words = query.text or ""
        index = self.indexes(record).text.catch_up(session, record)
        search = off_the_loop(partial(index.bound_search, words, allowed if query.is_isolated else None))

        def near(k: int, among: Labels | None) -> Ranking:
            return nearest.best(k) if among is None else nearest.among(among)

        def worded(k: int, among: Labels | None) -> Ranking:
            return off_the_loop(partial(search, k, allowed if among is None else among))

        dense, text = both_legs(near, worded, query.k)
        return fuse(dense, text, query.k, hybrid_weight(words, query.meaning), query.unrelated)

    @property
    def kinds(self) -> Sequence[str]:
        """Vectors have no files here."""
        return ("text", "groups")

    def followers(self, record: CollectionRecord, query: Query) -> list[Follower[Any]]:
        """Vectors are searched in the database; only words and groups have an index here."""
        indexes = self.indexes(record)
        legs: list[Follower[Any]] = [] if query.text is None else [indexes.text]
        return legs if query.groups is None else [*legs, indexes.groups]

    async def start(self) -> None:
        """Build the graphs that grown collections need, in the background."""
        await super().start()
        self.graphs.look_after()

    async def close(self) -> None:
        """Abandon a graph that is being built; another process or the next start begins again."""
        await self.graphs.close()
        await super().close()
