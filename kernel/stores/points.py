"""The vector store of every deployment: points as rows, searched through indexes derived from them.

Rows are the only copy that counts. A change and the plugin's own rows are committed together; each process
catches its indexes up from the rows before it searches, so an answer never shows what was deleted before
the search began. A search reads indexes and rows as of one commit: it shares the collection's lock with
others while the indexes are as of its snapshot, and is alone with them while it brings them there.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
from sqlalchemy import delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.ext.asyncio import AsyncSession

from kernel.db.engine import Database, Unit
from kernel.db.tables import CollectionRecord, PointRecord, TombstoneRecord
from kernel.stores.dense import EXACT_UP_TO
from kernel.stores.fusion import hybrid, weight_for
from kernel.stores.indexes import CollectionIndexes, text_follower
from kernel.stores.locks import AsyncSharedLock
from kernel.stores.point_rows import COLUMNS, check_fit, find_collection, row_of, stored_of
from kernel.stores.protocols import EngineMismatch, Hit, Point, Query, StoredPoint
from kernel.stores.purging import purge, set_aside
from kernel.stores.ranked import Judged, Labels, Ranked
from kernel.stores.upkeep import Upkeep, in_abandonable_thread

if TYPE_CHECKING:
    from kernel.stores.dense import DenseIndex
    from kernel.stores.text import TextIndex

_KEEP_TOMBSTONES = 1000
_MOST_LOADED = 512
_INSERT_ROWS = 500
_MOST_STALE = 0.2
_MOST_PARAMETERS = 10_000  # of one statement; databases draw the line at 32,767


class SqlVectorStore:
    """Points in SQL, FAISS and BM25 indexes in this process."""

    def __init__(self, database: Database, *, exact_up_to: int = EXACT_UP_TO) -> None:
        """`exact_up_to` is the number of points up to which searches compare all vectors."""
        self._database = database
        self._exact_up_to = exact_up_to
        self._loaded: OrderedDict[int, CollectionIndexes] = OrderedDict()
        self._locks: WeakValueDictionary[str, AsyncSharedLock] = WeakValueDictionary()
        self._searches: set[asyncio.Task[list[Hit]]] = set()
        self._upkeep = Upkeep()
        self._has_dropped = False

    async def ensure(self, unit: Unit, collection: str, dimension: int, engine: str) -> None:
        """See `VectorStore.ensure`."""
        values = {"name": collection, "dimension": dimension, "engine": engine, "version": 0, "floor": 0}
        await unit.session.execute(self._insert(unit, CollectionRecord, [values]))
        found = await find_collection(unit.session, collection)
        if found is not None and (found.engine, found.dimension) != (engine, dimension):
            raise EngineMismatch(f"{found.engine} [{found.dimension}]", f"{engine} [{dimension}]")

    async def stage(self, unit: Unit, collection: str, points: Sequence[Point]) -> None:
        """See `VectorStore.stage`."""
        found = await self.known(unit.session, collection)
        rows = [row_of(found, point) for point in points]
        for start in range(0, len(rows), _INSERT_ROWS):
            await unit.session.execute(self._insert(unit, PointRecord, rows[start : start + _INSERT_ROWS]))

    async def staged(self, collection: str, group: str) -> int:
        """See `VectorStore.staged`."""
        async with self._database.read() as session:
            query = select(func.count()).select_from(PointRecord).join(CollectionRecord)
            mine = (CollectionRecord.name == collection) & (PointRecord.group_key == group)
            return int(await session.scalar(query.where(mine)) or 0)

    async def publish(self, unit: Unit, collection: str, group: str) -> int:
        """See `VectorStore.publish`."""
        collection_id, version = await self._next_version(unit, collection)
        mine = (PointRecord.collection_id == collection_id) & (PointRecord.group_key == group)
        change = update(PointRecord).where(mine, PointRecord.version.is_(None)).values(version=version)
        await unit.session.execute(change)
        return int(await unit.session.scalar(select(func.count()).select_from(PointRecord).where(mine)) or 0)

    async def remove_group(self, unit: Unit, collection: str, group: str) -> int:
        """See `VectorStore.remove_group`."""
        if await find_collection(unit.session, collection) is None:
            return 0
        collection_id, version = await self._next_version(unit, collection)
        mine = (PointRecord.collection_id == collection_id) & (PointRecord.group_key == group)
        seen = select(PointRecord.label, PointRecord.collection_id, literal(version))
        columns = ["label", "collection_id", "version"]
        gone = insert(TombstoneRecord).from_select(
            columns, seen.where(mine, PointRecord.version.is_not(None))
        )
        await unit.session.execute(gone)
        result: Any = await unit.session.execute(delete(PointRecord).where(mine))
        await self._prune(unit, collection_id, version - _KEEP_TOMBSTONES)
        return int(result.rowcount)

    async def drop(self, unit: Unit, collection: str) -> None:
        """See `VectorStore.drop`."""
        found = await find_collection(unit.session, collection)
        if found is None:
            return
        await unit.session.execute(set_aside(found.id))

        async def forget() -> None:
            self._loaded.pop(found.id, None)
            self._begin_purge()

        unit.after_commit(forget)

    def _begin_purge(self) -> None:
        self._has_dropped = True
        self._upkeep.begin("removing what dropped collections held", self._purge)

    async def _purge(self) -> None:
        while self._has_dropped:  # set again by who drops meanwhile
            self._has_dropped = False
            await self.purge()

    async def purge(self) -> None:
        """Remove, bit by bit, what dropped collections held."""
        await purge(self._database)

    async def search(self, collection: str, query: Query) -> list[Hit]:
        """See `VectorStore.search`."""
        return await self._to_its_end(self._search(collection, query))

    async def _to_its_end(self, search: Coroutine[Any, Any, list[Hit]]) -> list[Hit]:
        """Await a search; it goes on when the caller leaves, as an index must not be left half-way."""
        task = asyncio.create_task(search)
        self._searches.add(task)
        task.add_done_callback(self._searches.discard)
        return await asyncio.shield(task)

    async def _search(self, collection: str, query: Query) -> list[Hit]:
        lock = self._lock_of(collection)
        async with lock.read():
            hits = await self._attempt(collection, query, follow=False)
        if hits is None:
            async with lock.write():
                hits = await self._attempt(collection, query, follow=True)
        return hits or []

    async def _attempt(self, collection: str, query: Query, *, follow: bool) -> list[Hit] | None:
        """The hits as of one commit; None when the indexes are not there yet and may not `follow`."""
        async with self._database.snapshot() as session:
            found = await find_collection(session, collection)
            if found is None or (query.groups is not None and not query.groups):
                return []
            check_fit(found, query)
            if not follow and not self.is_followed(found, query):
                return None
            judged = await self.rank(session, found, query)
            if follow:
                self._look_after(collection, found)
            return await self._hits(session, judged)

    def is_followed(self, found: CollectionRecord, query: Query) -> bool:
        """Whether the indexes that `rank` needs are as of `found` already."""
        indexes = self.indexes(found)
        return indexes.dense.is_at(found) and (query.text is None or indexes.text.is_at(found))

    def _lock_of(self, collection: str) -> AsyncSharedLock:
        """The collection's lock, the same one for all who use it at a time."""
        return self._locks.setdefault(collection, AsyncSharedLock())

    def _look_after(self, collection: str, found: CollectionRecord) -> None:
        """Begin, in the background, what the indexes have grown to want."""
        indexes = self.indexes(found)
        dense, text = indexes.dense.index, indexes.text.index
        if dense is not None and dense.wants_approximate:
            name = f"building the approximate index of {collection}"
            self._upkeep.begin(name, lambda: in_abandonable_thread(dense.build_approximate))
        if text is not None and text.stale > _MOST_STALE:
            name = f"building the index of words of {collection} anew"
            self._upkeep.begin(name, lambda: self._renew_words(collection))

    async def _renew_words(self, collection: str) -> None:
        """Build an index of words beside the present one, then put it in its place."""
        fresh = text_follower()
        async with self._database.snapshot() as session:
            found = await find_collection(session, collection)
            if found is None:
                return
            await fresh.catch_up(session, found)
        async with self._lock_of(collection).write():
            self.indexes(found).text = fresh

    async def points(
        self, collection: str, group: str, limit: int, offset: int
    ) -> tuple[list[StoredPoint], int]:
        """See `VectorStore.points`."""
        async with self._database.read() as session:
            found = await find_collection(session, collection)
            if found is None:
                return [], 0
            mine = (PointRecord.collection_id == found.id) & (PointRecord.group_key == group)
            visible = mine & PointRecord.version.is_not(None)
            total = await session.scalar(select(func.count()).select_from(PointRecord).where(visible))
            query = select(*COLUMNS).where(visible).order_by(PointRecord.position).limit(limit).offset(offset)
            return [stored_of(row) for row in (await session.execute(query)).all()], int(total or 0)

    async def count(self, collection: str) -> int:
        """See `VectorStore.count`."""
        async with self._database.read() as session:
            query = select(func.count()).select_from(PointRecord).join(CollectionRecord)
            seen = (CollectionRecord.name == collection) & PointRecord.version.is_not(None)
            return int(await session.scalar(query.where(seen)) or 0)

    async def rank(self, session: AsyncSession, found: CollectionRecord, query: Query) -> Judged:
        """The best labels with their scores; another backend replaces this step."""
        indexes = self.indexes(found)
        dense = await indexes.dense.catch_up(session, found)
        text = None if query.text is None else await indexes.text.catch_up(session, found)
        allowed = await self.allowed(session, found, query)
        return await asyncio.to_thread(_rank, dense, text, query, allowed)

    async def start(self) -> None:
        """Begin what goes on in the background from the start."""
        self._begin_purge()

    async def settled(self) -> None:
        """Wait until nothing goes on in the background."""
        await self._upkeep.settled()

    async def close(self) -> None:
        """End what goes on in the background; searches whose callers left come to their end."""
        await asyncio.gather(*self._searches, return_exceptions=True)
        await self._upkeep.close()

    async def _hits(self, session: AsyncSession, judged: Judged) -> list[Hit]:
        labels = judged.labels.tolist()
        rows = await session.execute(select(PointRecord.label, *COLUMNS).where(PointRecord.label.in_(labels)))
        stored = {row.label: stored_of(row) for row in rows.all()}
        words = [None] * len(labels) if judged.words is None else judged.words.tolist()
        scores = zip(labels, judged.scores.tolist(), judged.cosines.tolist(), words, strict=True)
        return [Hit(stored[at], *legs) for at, *legs in scores if at in stored]

    async def allowed(self, session: AsyncSession, found: CollectionRecord, query: Query) -> Labels | None:
        """The labels of the groups that a query is limited to; None for one without limits."""
        if query.groups is None:
            return None
        labels: list[int] = []
        for start in range(0, len(query.groups), _MOST_PARAMETERS):
            mine = select(PointRecord.label).where(
                PointRecord.collection_id == found.id,
                PointRecord.group_key.in_(list(query.groups[start : start + _MOST_PARAMETERS])),
                PointRecord.version.is_not(None),
            )
            labels += (await session.scalars(mine)).all()
        return np.array(labels, dtype=np.int64)

    def indexes(self, found: CollectionRecord) -> CollectionIndexes:
        """The collection's indexes in this process; those searched longest ago are given up first."""
        indexes = self._loaded.get(found.id)
        if indexes is None:
            indexes = self._loaded[found.id] = CollectionIndexes(found.dimension, self._exact_up_to)
            if len(self._loaded) > _MOST_LOADED:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(found.id)
        return indexes

    async def _next_version(self, unit: Unit, collection: str) -> tuple[int, int]:
        change = (
            update(CollectionRecord)
            .where(CollectionRecord.name == collection)
            .values(version=CollectionRecord.version + 1)
            .returning(CollectionRecord.id, CollectionRecord.version)
        )
        row = (await unit.session.execute(change)).one()
        return row.id, row.version

    async def _prune(self, unit: Unit, collection_id: int, floor: int) -> None:
        if floor <= 0:
            return
        old = (TombstoneRecord.collection_id == collection_id) & (TombstoneRecord.version <= floor)
        await unit.session.execute(delete(TombstoneRecord).where(old))
        mine = CollectionRecord.id == collection_id
        await unit.session.execute(update(CollectionRecord).where(mine).values(floor=floor))

    async def known(self, session: AsyncSession, collection: str) -> CollectionRecord:
        """A collection by name. Raises LookupError when nobody made it."""
        found = await find_collection(session, collection)
        if found is None:
            raise LookupError(f"there is no collection '{collection}'; call ensure() first")
        return found

    def _insert(self, unit: Unit, table: Any, rows: list[dict[str, Any]]) -> Any:
        statement = sqlite_insert if unit.is_sqlite else postgresql_insert
        return statement(table).values(rows).on_conflict_do_nothing()


def _rank(dense: DenseIndex, text: TextIndex | None, query: Query, allowed: Labels | None) -> Judged:
    def near(k: int, among: Labels | None) -> Ranked:
        return dense.search(query.vector, k, among)

    if text is None or query.text is None:
        return Judged.by_cosine(near(query.k, allowed))
    words, index = query.text, text
    return hybrid(
        near,
        lambda k, among: index.search(words, k, among),
        query.k,
        weight=weight_for(words),
        unrelated=query.unrelated,
        allowed=allowed,
    )
