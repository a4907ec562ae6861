"""The vector store on Milvus: rows in the database, vectors and words in the engine.

The rows are authoritative. A search first makes sure that the engine has followed them, asks it with the
filter in the question, and reads the points that it names from the rows: what was deleted has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from builtin_plugins.milvus.engine import ContentMissing, EngineAway, MilvusEngine
from builtin_plugins.milvus.following import Following
from builtin_plugins.milvus.positions import forget_marks, put_mark
from builtin_plugins.milvus.ranking import EngineRanking, Totals
from builtin_plugins.vectors.api import (
    CollectionRecord,
    GroupQuery,
    Hit,
    Judged,
    Query,
    SqlVectorStore,
    WordQuery,
    check_fit,
    group_names,
    read_collection,
)
from kernel.sdk import Database, Unit, lasting

_TRIES = 3


class MilvusStore(SqlVectorStore):
    """Points in SQL, searched by Milvus."""

    def __init__(self, database: Database, engine: MilvusEngine) -> None:
        super().__init__(database)
        self._rows = database
        self.following = Following(database, engine)
        self._totals = Totals()
        self._work: asyncio.Task[None] | None = None

    @property
    def kinds(self) -> Sequence[str]:
        """No index is in this process or its files."""
        return ()

    def publish(self, unit: Unit, collection: str, *groups: str) -> int:
        """See `VectorStore.publish`."""
        count = super().publish(unit, collection, *groups)
        self._follow(unit, collection)
        return count

    def annotate(self, unit: Unit, collection: str, group: str, values: Mapping[str, Any]) -> None:
        """See `VectorStore.annotate`."""
        super().annotate(unit, collection, group, values)
        self._follow(unit, collection)

    def remove_group(self, unit: Unit, collection: str, group: str) -> int:
        """See `VectorStore.remove_group`."""
        count = super().remove_group(unit, collection, group)
        self._follow(unit, collection)
        return count

    def retire(self, unit: Unit, collection: str, group: str, into: str) -> int:
        """See `VectorStore.retire`."""
        count = super().retire(unit, collection, group, into)
        self._follow(unit, into)
        return count

    def drop(self, unit: Unit, collection: str) -> None:
        """See `VectorStore.drop`."""
        forget_marks(unit, collection)
        super().drop(unit, collection)
        unit.after_commit(self._wake)

    async def search(self, collection: str, query: Query) -> list[Hit]:
        """See `VectorStore.search`. Raises EngineAway, EngineBehind."""
        return await self._search_engine(collection, query)

    async def search_words(self, collection: str, query: WordQuery) -> list[Hit]:
        """See `VectorStore.search_words`. Raises EngineAway, EngineBehind."""
        return await self._search_engine(collection, query)

    async def start(self) -> None:
        """Follow changes in the background."""
        await super().start()
        self._work = lasting("filling the search engine", self.following.run)

    async def close(self) -> None:
        """End the background work; a step that is under way is done again later."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        await super().close()
        await asyncio.to_thread(self.following.engine.close)

    def _follow(self, unit: Unit, collection: str) -> None:
        put_mark(unit, collection)
        unit.after_commit(self._wake)

    async def _wake(self) -> None:
        self.following.wake()

    async def _search_engine(self, collection: str, query: Query | WordQuery) -> list[Hit]:
        """The hits; asked again if points that the engine named were deleted in the meantime."""
        hits: list[Hit] = []
        for _ in range(_TRIES):
            record, groups = await self._rows.snapshot(_collection_and_groups, collection, query)
            if record is None or record.version == 0 or groups == []:
                return []
            try:
                position = await self.following.reach(record)
                engine, reader = self.following.engine, self.following.reader
                ranking = EngineRanking(engine, reader, self._totals, record.id, position, query, groups)
                judged = await engine.run(ranking.judged)
            except ContentMissing:
                await self.following.forget(record.id)
                continue
            hits = await self._rows.snapshot(self._visible_hits, judged, query)
            if len(hits) == judged.size:
                return hits
        else:
            if not hits:
                raise EngineAway
        return hits

    def _visible_hits(self, session: Session, judged: Judged, query: Query | WordQuery) -> list[Hit]:
        return self.hits(session, judged, query.question if isinstance(query, Query) else None)


def _collection_and_groups(
    session: Session, collection: str, query: Query | WordQuery
) -> tuple[CollectionRecord | None, Sequence[str] | None]:
    """The collection, and the groups that the query is limited to; None for one without limits."""
    record = read_collection(session, collection)
    if record is not None and isinstance(query, Query):
        check_fit(record, query)
    groups = query.groups
    return record, group_names(session, groups) if isinstance(groups, GroupQuery) else groups
