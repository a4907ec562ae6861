"""The vector store of every deployment: points as rows, searched through indexes derived from them.

The rows are authoritative. A change is committed together with the plugin's own rows; each process brings its
indexes up to date from the rows before it searches, so results never show what was deleted before the search
began. A search reads indexes and rows as of one commit: it shares the collection's lock with others if the
indexes match its snapshot, and takes it exclusively to update them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from sqlalchemy import ColumnElement, delete, func, insert, literal, select, update
from sqlalchemy.orm import Session

from builtin_plugins.inference.api import Embedded
from builtin_plugins.vectors.dense import EXACT_UP_TO
from builtin_plugins.vectors.fusion import Judged, Labels, Ranking, fuse, hybrid, weight_for
from builtin_plugins.vectors.groups import group_names
from builtin_plugins.vectors.index_building import IndexBuilding
from builtin_plugins.vectors.index_folders import KEEP, IndexFolders
from builtin_plugins.vectors.index_saving import FORM
from builtin_plugins.vectors.index_tidying import IndexTidying
from builtin_plugins.vectors.indexes import DENSE, GROUPS, TEXT, CollectionIndexes, Follower, VectorIndex
from builtin_plugins.vectors.locks import AsyncSharedLock
from builtin_plugins.vectors.models import CollectionRecord, PointRecord, TombstoneRecord
from builtin_plugins.vectors.point_rows import (
    COLUMNS,
    annotate,
    check_fit,
    cosines_of,
    find_collection,
    read_collection,
    read_labelled,
    row_of,
    stored_of,
)
from builtin_plugins.vectors.protocol import (
    WORDS_ONLY,
    EngineMismatch,
    GroupQuery,
    Hit,
    Point,
    Query,
    StoredPoint,
    Vector,
    WordQuery,
)
from builtin_plugins.vectors.purging import purge, set_aside
from builtin_plugins.vectors.selections import KeptSelections
from builtin_plugins.vectors.upkeep import Upkeep
from kernel.sdk import Database, Unit, in_abandonable_thread, lasting, off_the_loop
from kernel.sdk.storage import insert_new

if TYPE_CHECKING:
    from builtin_plugins.vectors.text import TextIndex

_KEEP_TOMBSTONES = 1000
_MOST_LOADED = 512
_CONTENT = ("id", "group_key", "position", "text", "payload", "vector")


class SqlVectorStore:
    """Points in SQL, FAISS and BM25 indexes in this process."""

    def __init__(
        self, database: Database, *, exact_up_to: int = EXACT_UP_TO, folders: IndexFolders | None = None
    ) -> None:
        """`exact_up_to` is the number of points up to which searches compare all vectors.

        With `folders`, the indexes of large collections are kept in files.
        """
        self._database = database
        self.folders = folders
        self._exact_up_to = exact_up_to
        self._loaded: OrderedDict[int, CollectionIndexes] = OrderedDict()
        self._guard = threading.Lock()  # of `_loaded`, which searches in several threads use
        self._selections = KeptSelections()
        self._locks: WeakValueDictionary[str, AsyncSharedLock] = WeakValueDictionary()
        self._searches: set[asyncio.Task[list[Hit]]] = set()
        self._upkeep = Upkeep()
        self._has_dropped = False
        self._building = (
            None if folders is None else IndexBuilding(database, folders, self.kinds, self._new_indexes)
        )
        self._lasting: list[asyncio.Task[None]] = []

    def ensure(self, unit: Unit, collection: str, dimension: int, engine: str) -> None:
        """See `VectorStore.ensure`."""
        values = {"name": collection, "dimension": dimension, "engine": engine, "version": 0, "floor": 0}
        _insert(unit, CollectionRecord, [values])
        record = find_collection(unit.session, collection)
        if record is not None and (record.engine, record.dimension) != (engine, dimension):
            raise EngineMismatch(f"{record.engine} [{record.dimension}]", f"{engine} [{dimension}]")

    def stage(self, unit: Unit, collection: str, points: Sequence[Point]) -> None:
        """See `VectorStore.stage`."""
        record = self.require_collection(unit.session, collection)
        _insert(unit, PointRecord, [row_of(record, point) for point in points])

    async def staged(self, collection: str, group: str) -> int:
        """See `VectorStore.staged`."""
        mine = (CollectionRecord.name == collection) & (PointRecord.group_key == group)
        return await self._database.read(_number, mine)

    def publish(self, unit: Unit, collection: str, *groups: str) -> int:
        """See `VectorStore.publish`."""
        collection_id, version = self._next_version(unit, collection)
        self._note_change(unit, collection)
        mine = (PointRecord.collection_id == collection_id) & PointRecord.group_key.in_(groups)
        change = update(PointRecord).where(mine, PointRecord.version.is_(None)).values(version=version)
        unit.session.execute(change)
        return int(unit.session.scalar(select(func.count()).select_from(PointRecord).where(mine)) or 0)

    def annotate(self, unit: Unit, collection: str, group: str, values: Mapping[str, Any]) -> None:
        """See `VectorStore.annotate`."""
        if find_collection(unit.session, collection) is not None:
            annotate(unit.session, *self._next_version(unit, collection), group, values)

    def remove_group(self, unit: Unit, collection: str, group: str) -> int:
        """See `VectorStore.remove_group`."""
        if find_collection(unit.session, collection) is None:
            return 0
        collection_id, version = self._next_version(unit, collection)
        mine = (PointRecord.collection_id == collection_id) & (PointRecord.group_key == group)
        tombstones = select(PointRecord.label, PointRecord.collection_id, literal(version))
        columns = ["label", "collection_id", "version"]
        gone = insert(TombstoneRecord).from_select(
            columns, tombstones.where(mine, PointRecord.version.is_not(None))
        )
        unit.session.execute(gone)
        result: Any = unit.session.execute(delete(PointRecord).where(mine))
        self._prune(unit, collection_id, version - _KEEP_TOMBSTONES)
        return int(result.rowcount)

    def retire(self, unit: Unit, collection: str, group: str, into: str) -> int:
        """See `VectorStore.retire`."""
        source = find_collection(unit.session, collection)
        if source is None:
            return 0
        target_values = {"name": into, "dimension": 0, "engine": WORDS_ONLY, "version": 0, "floor": 0}
        _insert(unit, CollectionRecord, [target_values])
        target, version = self._next_version(unit, into)
        self._note_change(unit, into)
        mine = (PointRecord.collection_id == source.id) & (PointRecord.group_key == group)
        values = select(literal(target), literal(version), *(getattr(PointRecord, one) for one in _CONTENT))
        rows = values.where(mine, PointRecord.version.is_not(None))
        columns = ["collection_id", "version", *_CONTENT]
        unit.session.execute(insert(PointRecord).from_select(columns, rows))
        return self.remove_group(unit, collection, group)

    def drop(self, unit: Unit, collection: str) -> None:
        """See `VectorStore.drop`."""
        record = find_collection(unit.session, collection)
        if record is None:
            return
        unit.session.execute(set_aside(record.id))

        async def forget() -> None:
            self.forget(record.id)
            if self.folders is not None:
                await asyncio.to_thread(self.folders.drop, record.id)
            self._begin_purge()

        unit.after_commit(forget)

    def rename(self, unit: Unit, collection: str, name: str) -> None:
        """See `VectorStore.rename`."""
        mine = CollectionRecord.name == collection
        unit.session.execute(update(CollectionRecord).where(mine).values(name=name))

    def _begin_purge(self) -> None:
        self._has_dropped = True
        self._upkeep.begin("removing what dropped collections held", self._purge)

    async def _purge(self) -> None:
        while self._has_dropped:  # set again by a drop in the meantime
            self._has_dropped = False
            await self.purge()

    async def purge(self) -> None:
        """Remove the points of dropped collections in small steps."""
        await purge(self._database)

    async def search(self, collection: str, query: Query) -> list[Hit]:
        """See `VectorStore.search`."""
        return await self._to_its_end(self._search(collection, query))

    async def search_words(self, collection: str, query: WordQuery) -> list[Hit]:
        """See `VectorStore.search_words`."""
        return await self._to_its_end(self._search(collection, query))

    async def _to_its_end(self, search: Coroutine[Any, Any, list[Hit]]) -> list[Hit]:
        """Await a search; it continues if the caller leaves: no index may be left half-updated."""
        task = asyncio.create_task(search)
        self._searches.add(task)
        task.add_done_callback(self._searches.discard)
        return await asyncio.shield(task)

    async def _search(self, collection: str, query: Query | WordQuery) -> list[Hit]:
        lock = self._lock_of(collection)
        async with lock.read():
            hits = await self._database.snapshot(self._attempt, collection, query, follow=False)
        if hits is None:
            async with lock.write():
                record = await self._load(collection, query)
                hits = await self._database.snapshot(self._attempt, collection, query, follow=True)
                if record is not None:
                    self._look_after(collection, record)
        return hits or []

    def _attempt(
        self, session: Session, collection: str, query: Query | WordQuery, *, follow: bool
    ) -> list[Hit] | None:
        """The hits as of one commit; None if the indexes are behind and may not `follow`."""
        record = read_collection(session, collection)
        if record is None:
            return []
        if isinstance(query, Query):
            check_fit(record, query)
        if not follow and not all(index.is_at(record) for index in self._followers_for(record, query)):
            return None
        if isinstance(query, WordQuery):
            return self.hits(session, self._rank_by_words(session, record, query))
        return self.hits(session, self.rank(session, record, query), query.question)

    def _followers_for(self, record: CollectionRecord, query: Query | WordQuery) -> list[Follower[Any]]:
        if isinstance(query, Query):
            return self.followers(record, query)
        indexes = self.indexes(record)
        return [indexes.text] if query.groups is None else [indexes.text, indexes.groups]

    def followers(self, record: CollectionRecord, query: Query) -> list[Follower[Any]]:
        """The indexes that `rank` needs."""
        indexes = self.indexes(record)
        legs: list[Follower[Any]] = [indexes.dense]
        legs += [] if query.text is None else [indexes.text]
        return legs if query.groups is None else [*legs, indexes.groups]

    async def _load(self, collection: str, query: Query | WordQuery) -> CollectionRecord | None:
        """Load indexes that were never used, so that a search has only little to catch up with."""
        record = await self._database.read(read_collection, collection)
        if record is not None:
            for index in self._followers_for(record, query):
                if index.index is None:
                    await index.load(self._database, record)
        return record

    def _lock_of(self, collection: str) -> AsyncSharedLock:
        """The collection's lock, shared by all concurrent users."""
        return self._locks.setdefault(collection, AsyncSharedLock())

    def _look_after(self, collection: str, record: CollectionRecord) -> None:
        """Start the background work that the indexes need at their present size."""
        followers = self.indexes(record).followers
        dense = followers[DENSE].index
        if dense is not None and dense.wants_approximate:
            name = f"building the approximate index of {collection}"
            self._upkeep.begin(name, lambda: self._approximate(collection, record))
        for kind, index in followers.items():
            if kind == GROUPS and index.index is None and self.indexes(record).filed:
                # The first search with a filter would wait: 9 s for a million points.
                name = f"loading the {kind} index of {collection}"
                self._upkeep.begin(name, partial(self._load_early, collection, record, kind))
            elif index.wants_renewal:
                name = f"rebuilding the {kind} index of {collection}"
                self._upkeep.begin(name, partial(self.renew, collection, kind))
            elif index.wants_saving:
                name = f"saving the {kind} index of {collection}"
                self._upkeep.begin(name, partial(self._save, collection, record, kind, index))

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of indexes that are kept in files."""
        return (DENSE, TEXT, GROUPS)

    async def renew(self, collection: str, kind: str) -> None:
        """Build a new index beside the present one, then replace it, and what is saved."""
        record = await self._database.read(read_collection, collection)
        if record is None:
            return
        fresh = self.indexes(record).fresh(kind)
        await fresh.build(self._database, record)
        index = fresh.index
        if kind == DENSE and index is not None and index.wants_approximate:
            with suppress(OSError):  # a full disk: it stays exact, and what was deleted leaves the files
                await in_abandonable_thread(index.build_approximate)
        await self._replace(collection, record, kind, fresh)
        await self._save(collection, record, kind, fresh)

    async def save(self, collection: str, kind: str) -> None:
        """Save an index of this process."""
        record = await self._database.read(read_collection, collection)
        if record is not None:
            await self._save(collection, record, kind, self.indexes(record).followers[kind])

    async def reopen(self, collection: str, kind: str) -> None:
        """Replace an index by what another process has saved; if it can't be opened, build one."""
        record = await self._database.read(read_collection, collection)
        if record is not None:
            fresh = self.indexes(record).fresh(kind)
            await fresh.load(self._database, record)
            await self._replace(collection, record, kind, fresh)

    async def _load_early(self, collection: str, record: CollectionRecord, kind: str) -> None:
        """Load an index before a search needs it, and save it if nobody has."""
        await self.reopen(collection, kind)
        index = self.indexes(record).followers[kind]
        if index.wants_saving:
            await self._save(collection, record, kind, index)

    async def _replace(
        self, collection: str, record: CollectionRecord, kind: str, fresh: Follower[Any]
    ) -> None:
        async with self._lock_of(collection).write():
            loaded = self.loaded().get(record.id)
            if loaded is not None:
                loaded.followers[kind] = fresh

    async def _save(self, collection: str, record: CollectionRecord, kind: str, index: Follower[Any]) -> None:
        """Save an index; if another process has saved one that is as good, use that."""
        if index.filed and not await index.save(self._database, record, self._lock_of(collection).read):
            await self.reopen(collection, kind)

    async def _approximate(self, collection: str, record: CollectionRecord) -> None:
        """Use the approximate index that another process has saved, or build and save it."""
        follower = self.indexes(record).dense
        index = follower.index
        if index is None:
            return
        if self.folders is None or not follower.filed:
            await in_abandonable_thread(index.build_approximate)
            return
        if self.folders.fault:  # otherwise each search would begin it again
            return
        with self.folders.blame(KEEP), self.folders.turn(record.id, "training") as free:
            if not free:
                return
            saved = await asyncio.to_thread(self.folders.saved, record.id, DENSE)
            if saved is not None and saved.manifest.parameters.get(FORM):
                await self.reopen(collection, DENSE)
            if self.indexes(record).dense.index is index:
                await in_abandonable_thread(index.build_approximate)
            if self.indexes(record).dense is follower:
                await self._save(collection, record, DENSE, follower)

    async def points(
        self, collection: str, group: str, limit: int, offset: int
    ) -> tuple[list[StoredPoint], int]:
        """See `VectorStore.points`."""
        return await self._database.read(_page, collection, group, limit, offset)

    async def vectors(self, collection: str, group: str, limit: int, offset: int) -> Embedded | None:
        """See `VectorStore.vectors`."""
        return await self._database.read(_vectors, collection, group, limit, offset)

    async def count(self, collection: str) -> int:
        """See `VectorStore.count`."""
        condition = (CollectionRecord.name == collection) & PointRecord.version.is_not(None)
        return await self._database.read(_number, condition)

    def rank(self, session: Session, record: CollectionRecord, query: Query) -> Judged:
        """The best labels with their scores; another backend replaces this step."""
        indexes = self.indexes(record)
        dense = indexes.dense.catch_up(session, record)
        text = None if query.text is None else indexes.text.catch_up(session, record)
        allowed = self.allowed(session, record, query)
        return off_the_loop(partial(_rank, dense, text, query, allowed))

    def _rank_by_words(self, session: Session, record: CollectionRecord, query: WordQuery) -> Judged:
        index = self.indexes(record).text.catch_up(session, record)
        allowed = self.allowed(session, record, query)
        within = allowed if query.is_isolated else None

        def best() -> Judged:
            return fuse(
                Ranking.empty(), index.bound_search(query.text, within)(query.k, allowed), query.k, 0.0
            )

        return off_the_loop(best)

    async def start(self) -> None:
        """Start the background work."""
        self._begin_purge()
        if self.folders is not None:
            tidying = IndexTidying(self, self._database, self.folders)
            self._lasting.append(lasting("tidying search indexes", tidying.run))
        if self._building is not None:
            self._lasting.append(lasting("building search indexes", self._building.run))

    async def settled(self) -> None:
        """Wait until the background work is done."""
        await self._upkeep.settled()

    async def close(self) -> None:
        """End the background work; searches whose callers have left are finished first."""
        await asyncio.gather(*self._searches, return_exceptions=True)
        for task in self._lasting:
            task.cancel()
        await asyncio.gather(*self._lasting, return_exceptions=True)
        await self._upkeep.close()
        if self.folders is not None:
            await asyncio.to_thread(self.folders.close)

    def hits(self, session: Session, judged: Judged, question: Vector | None = None) -> list[Hit]:
        """The points of a ranking that still exist, with their scores."""
        labels = judged.labels.tolist()
        stored = read_labelled(session, labels)
        words = [None] * len(labels) if judged.words is None else judged.words.tolist()
        scores = zip(labels, judged.scores.tolist(), judged.cosines.tolist(), words, strict=True)
        question_cosines: dict[int, float] = {}
        if question is not None and stored:
            question_cosines = cosines_of(session, list(stored), question)
        return [
            Hit(stored[at], score, cosine, word, question_cosines.get(at))
            for at, score, cosine, word in scores
            if at in stored
        ]

    def allowed(self, session: Session, record: CollectionRecord, query: Query | WordQuery) -> Labels | None:
        """The labels of the groups that a query is limited to; None for one without limits."""
        groups = query.groups
        if groups is None:
            return None
        index = self.indexes(record).groups.catch_up(session, record)
        if not isinstance(groups, GroupQuery):
            return off_the_loop(partial(index.labels_of, groups))
        state = (record.version, int(session.scalar(groups.version) or 0))
        labels = self._selections.get(record.id, groups.key, state)
        if labels is None:
            labels = off_the_loop(partial(index.labels_of, group_names(session, groups)))
            self._selections.put(record.id, groups.key, state, labels)
        return labels

    def indexes(self, record: CollectionRecord) -> CollectionIndexes:
        """The collection's indexes in this process; the least recently searched are dropped first."""
        with self._guard:
            indexes = self._loaded.get(record.id)
            if indexes is None:
                indexes = self._loaded[record.id] = self._new_indexes(record)
                if len(self._loaded) > _MOST_LOADED:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(record.id)
            return indexes

    def _new_indexes(self, record: CollectionRecord) -> CollectionIndexes:
        return CollectionIndexes(record.dimension, self._exact_up_to, self.folders)

    def loaded(self) -> dict[int, CollectionIndexes]:
        """The indexes in this process, by collection."""
        with self._guard:
            return dict(self._loaded)

    def forget(self, collection_id: int) -> None:
        """Let go of a collection's indexes."""
        with self._guard:
            self._loaded.pop(collection_id, None)

    def _note_change(self, unit: Unit, collection: str) -> None:
        """Let the indexes be built before a search needs them."""
        if self._building is not None:
            unit.after_commit(partial(self._building.note_change, collection))

    def _next_version(self, unit: Unit, collection: str) -> tuple[int, int]:
        change = (
            update(CollectionRecord)
            .where(CollectionRecord.name == collection)
            .values(version=CollectionRecord.version + 1)
            .returning(CollectionRecord.id, CollectionRecord.version)
        )
        row = unit.session.execute(change).one()
        return row.id, row.version

    def _prune(self, unit: Unit, collection_id: int, floor: int) -> None:
        if floor <= 0:
            return
        old = (TombstoneRecord.collection_id == collection_id) & (TombstoneRecord.version <= floor)
        unit.session.execute(delete(TombstoneRecord).where(old))
        mine = CollectionRecord.id == collection_id
        unit.session.execute(update(CollectionRecord).where(mine).values(floor=floor))

    def require_collection(self, session: Session, collection: str) -> CollectionRecord:
        """A collection by name. Raises LookupError if it doesn't exist."""
        record = find_collection(session, collection)
        if record is None:
            raise LookupError(f"there is no collection '{collection}'; call ensure() first")
        return record


# Built once, without values, so that they are compiled only once.
_INSERTS = {
    (table, is_sqlite): insert_new(table, is_sqlite=is_sqlite)
    for table in (CollectionRecord, PointRecord)
    for is_sqlite in (True, False)
}


def _insert(
    unit: Unit, table: type[CollectionRecord | PointRecord], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert the rows that don't exist yet."""
    if rows:
        unit.session.connection().execute(_INSERTS[table, unit.is_sqlite], rows)


def _number(session: Session, condition: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(PointRecord).join(CollectionRecord)
    return int(session.scalar(query.where(condition)) or 0)


def _page(
    session: Session, collection: str, group: str, limit: int, offset: int
) -> tuple[list[StoredPoint], int]:
    record = find_collection(session, collection)
    if record is None:
        return [], 0
    mine = (PointRecord.collection_id == record.id) & (PointRecord.group_key == group)
    visible = mine & PointRecord.version.is_not(None)
    total = session.scalar(select(func.count()).select_from(PointRecord).where(visible))
    query = select(*COLUMNS).where(visible).order_by(PointRecord.position).limit(limit).offset(offset)
    return [stored_of(row) for row in session.execute(query)], int(total or 0)


def _vectors(session: Session, collection: str, group: str, limit: int, offset: int) -> Embedded | None:
    import numpy as np

    record = find_collection(session, collection)
    if record is None:
        return None
    mine = (PointRecord.collection_id == record.id) & (PointRecord.group_key == group)
    query = select(PointRecord.vector).where(mine & PointRecord.version.is_not(None))
    page = session.scalars(query.order_by(PointRecord.position).limit(limit).offset(offset))
    halves = np.frombuffer(b"".join(page), np.float16).reshape(-1, record.dimension)
    return Embedded(halves.astype(np.float32), record.engine)


def _rank(dense: VectorIndex, text: TextIndex | None, query: Query, allowed: Labels | None) -> Judged:
    def near(k: int, among: Labels | None) -> Ranking:
        return dense.search(query.vector, k, among)

    if text is None or query.text is None:
        return Judged.by_cosine(near(query.k, allowed))
    return hybrid(
        near,
        text.bound_search(query.text, allowed if query.is_isolated else None),
        query.k,
        weight=weight_for(query.text, query.meaning),
        unrelated=query.unrelated,
        allowed=allowed,
    )
