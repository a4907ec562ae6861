"""The vector store of every deployment: points as rows, searched through indexes derived from them.

Rows are the only copy that counts. A change and the plugin's own rows are committed together; each process
catches its indexes up from the rows before it searches, so an answer never shows what was deleted before
the search began.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.ext.asyncio import AsyncSession

from kernel.db.engine import Database, Unit
from kernel.db.tables import CollectionRecord, PointRecord, TombstoneRecord
from kernel.stores.fusion import hybrid, weight_for
from kernel.stores.indexes import CollectionIndexes
from kernel.stores.protocols import EngineMismatch, Hit, Point, Query, StoredPoint
from kernel.stores.ranked import Labels, Ranked

if TYPE_CHECKING:
    from kernel.stores.dense import DenseIndex
    from kernel.stores.text import TextIndex

_KEEP_TOMBSTONES = 1000
_MOST_LOADED = 512
_INSERT_ROWS = 500


class SqlVectorStore:
    """Points in SQL, FAISS and BM25 indexes in this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._loaded: OrderedDict[int, CollectionIndexes] = OrderedDict()

    async def ensure(self, unit: Unit, collection: str, dimension: int, engine: str) -> None:
        """See `VectorStore.ensure`."""
        values = {"name": collection, "dimension": dimension, "engine": engine, "version": 0, "floor": 0}
        await unit.session.execute(self._insert(unit, CollectionRecord, [values]))
        found = await _collection(unit.session, collection)
        if found is not None and (found.engine, found.dimension) != (engine, dimension):
            raise EngineMismatch(f"the collection holds vectors of {found.engine}, not of {engine}")

    async def stage(self, unit: Unit, collection: str, points: Sequence[Point]) -> None:
        """See `VectorStore.stage`."""
        found = await self.known(unit.session, collection)
        rows = [_row(found, point) for point in points]
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
        if await _collection(unit.session, collection) is None:
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
        found = await _collection(unit.session, collection)
        if found is None:
            return
        for table in (PointRecord, TombstoneRecord):
            await unit.session.execute(delete(table).where(table.collection_id == found.id))
        await unit.session.execute(delete(CollectionRecord).where(CollectionRecord.id == found.id))

        async def forget() -> None:
            self._loaded.pop(found.id, None)

        unit.after_commit(forget)

    async def search(self, collection: str, query: Query) -> list[Hit]:
        """See `VectorStore.search`."""
        async with self._database.read() as session:
            found = await _collection(session, collection)
            if found is None or (query.groups is not None and not query.groups):
                return []
            if query.engine not in (None, found.engine):
                raise EngineMismatch(f"the collection holds vectors of {found.engine}, not of {query.engine}")
            if query.vector.shape != (found.dimension,):
                raise ValueError(f"the query must be {found.dimension} numbers, not {query.vector.shape}")
            ranked, cosines = await self.rank(session, found, query)
            return await self._hits(session, ranked, cosines)

    async def points(
        self, collection: str, group: str, limit: int, offset: int
    ) -> tuple[list[StoredPoint], int]:
        """See `VectorStore.points`."""
        async with self._database.read() as session:
            found = await _collection(session, collection)
            if found is None:
                return [], 0
            mine = (PointRecord.collection_id == found.id) & (PointRecord.group_key == group)
            visible = mine & PointRecord.version.is_not(None)
            total = await session.scalar(select(func.count()).select_from(PointRecord).where(visible))
            query = (
                select(*_COLUMNS).where(visible).order_by(PointRecord.position).limit(limit).offset(offset)
            )
            return [_stored(row) for row in (await session.execute(query)).all()], int(total or 0)

    async def count(self, collection: str) -> int:
        """See `VectorStore.count`."""
        async with self._database.read() as session:
            query = select(func.count()).select_from(PointRecord).join(CollectionRecord)
            seen = (CollectionRecord.name == collection) & PointRecord.version.is_not(None)
            return int(await session.scalar(query.where(seen)) or 0)

    async def rank(
        self, session: AsyncSession, found: CollectionRecord, query: Query
    ) -> tuple[Ranked, dict[int, float]]:
        """The best labels, and their cosines; another backend replaces this step."""
        indexes = self.indexes(found)
        dense = await indexes.dense.catch_up(session, found)
        text = None if query.text is None else await indexes.text.catch_up(session, found)
        allowed = await self.allowed(session, found, query)
        return await asyncio.to_thread(_rank, dense, text, query, allowed)

    async def start(self) -> None:
        """Begin what goes on in the background; nothing here."""

    async def close(self) -> None:
        """End what goes on in the background; nothing here."""

    async def _hits(self, session: AsyncSession, ranked: Ranked, cosines: dict[int, float]) -> list[Hit]:
        labels = ranked.labels.tolist()
        rows = await session.execute(
            select(PointRecord.label, *_COLUMNS).where(PointRecord.label.in_(labels))
        )
        stored = {row.label: _stored(row) for row in rows.all()}
        scores = zip(labels, ranked.scores.tolist(), strict=True)
        return [Hit(stored[at], score, cosines.get(at)) for at, score in scores if at in stored]

    async def allowed(self, session: AsyncSession, found: CollectionRecord, query: Query) -> Labels | None:
        """The labels of the groups that a query is limited to; None for one without limits."""
        if query.groups is None:
            return None
        mine = select(PointRecord.label).where(
            PointRecord.collection_id == found.id,
            PointRecord.group_key.in_(list(query.groups)),
            PointRecord.version.is_not(None),
        )
        return np.array((await session.scalars(mine)).all(), dtype=np.int64)

    def indexes(self, found: CollectionRecord) -> CollectionIndexes:
        """The collection's indexes in this process; those searched longest ago are given up first."""
        indexes = self._loaded.get(found.id)
        if indexes is None:
            indexes = self._loaded[found.id] = CollectionIndexes(found.dimension)
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
        found = await _collection(session, collection)
        if found is None:
            raise LookupError(f"there is no collection '{collection}'; call ensure() first")
        return found

    def _insert(self, unit: Unit, table: Any, rows: list[dict[str, Any]]) -> Any:
        statement = sqlite_insert if unit.database.is_sqlite else postgresql_insert
        return statement(table).values(rows).on_conflict_do_nothing()


def _rank(
    dense: DenseIndex, text: TextIndex | None, query: Query, allowed: Labels | None
) -> tuple[Ranked, dict[int, float]]:
    def near(k: int, among: Labels | None) -> Ranked:
        return dense.search(query.vector, k, among)

    if text is None or query.text is None:
        ranked = known = near(query.k, allowed)
    else:
        words, index = query.text, text
        ranked = hybrid(
            near,
            lambda k, among: index.search(words, k, among),
            query.k,
            weight=weight_for(words),
            allowed=allowed,
        )
        known = near(ranked.size, ranked.labels)
    return ranked, dict(zip(known.labels.tolist(), known.scores.tolist(), strict=True))


_COLUMNS = (
    PointRecord.id,
    PointRecord.group_key,
    PointRecord.position,
    PointRecord.text,
    PointRecord.payload,
)


async def _collection(session: AsyncSession, name: str) -> CollectionRecord | None:
    return await session.scalar(select(CollectionRecord).where(CollectionRecord.name == name))


def _row(found: CollectionRecord, point: Point) -> dict[str, Any]:
    return {
        "collection_id": found.id,
        "id": point.id,
        "group_key": point.group,
        "position": point.position,
        "text": point.text,
        "payload": dict(point.payload),
        "vector": _halves(found, point).tobytes(),
        "version": None,
    }


def _halves(found: CollectionRecord, point: Point) -> npt.NDArray[np.float16]:
    if point.vector.shape != (found.dimension,):
        raise ValueError(f"point '{point.id}' needs {found.dimension} numbers, not {point.vector.shape}")
    halves = point.vector.astype(np.float16)
    if not np.isfinite(halves).all():
        raise ValueError(f"the vector of point '{point.id}' holds a value that is not finite")
    return halves


def _stored(row: Any) -> StoredPoint:
    return StoredPoint(row.id, row.group_key, row.position, row.text, row.payload)
