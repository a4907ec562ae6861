"""The search indexes of one collection in this process, and how they follow the rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from kernel.db.tables import CollectionRecord, PointRecord, TombstoneRecord
from kernel.stores.ranked import Labels

if TYPE_CHECKING:
    from kernel.stores.dense import DenseIndex
    from kernel.stores.text import TextIndex

_BATCH = 5000


class Derived(Protocol):
    """What is common to the indexes: all calls may come from any thread."""

    def add(self, labels: Any, values: Any, /) -> None: ...

    def remove(self, labels: Any, /) -> None: ...


I = TypeVar("I", bound=Derived)  # noqa: E741


class Follower(Generic[I]):
    """One index that follows one column of a collection's points. It keeps its own version.

    Two indexes that shared a version would lose points: an older reader would fill the one that is new to
    it with what it sees, and take it for as recent as the other.
    """

    def __init__(self, column: Any, make: Callable[[], I], decode: Callable[[list[Any]], Any]) -> None:
        self._column = column
        self._make = make
        self._decode = decode
        self._lock = asyncio.Lock()
        self._index: I | None = None
        self._version = 0

    @property
    def index(self) -> I | None:
        """The index as it is; None before anybody asked for it."""
        return self._index

    def is_at(self, found: CollectionRecord) -> bool:
        """Whether the index is loaded and exactly as of `found`."""
        return self._index is not None and self._version == found.version

    async def catch_up(self, session: AsyncSession, found: CollectionRecord) -> I:
        """The index, brought at least to `found` as the session sees it."""
        if self._index is None or self._version < found.version:
            async with self._lock:
                await self._follow(session, found)
        assert self._index is not None
        return self._index

    async def _follow(self, session: AsyncSession, found: CollectionRecord) -> None:
        index, version = self._index, self._version
        if index is None or version < found.floor:
            index, version = await asyncio.to_thread(self._make), 0
        if version < found.version:
            await self._apply(session, found, index, version)
            version = found.version
        self._index, self._version = index, version

    async def _apply(self, session: AsyncSession, found: CollectionRecord, index: I, version: int) -> None:
        gone = await _tombstones(session, found, version) if version else ()
        if len(gone):
            await asyncio.to_thread(index.remove, gone)
        async for labels, values in self._rows(session, found, version):
            await asyncio.to_thread(lambda at, of: index.add(at, self._decode(of)), labels, values)

    async def _rows(
        self, session: AsyncSession, found: CollectionRecord, version: int
    ) -> AsyncIterator[tuple[Labels, list[Any]]]:
        """Rows published after a version, in batches, in the order of the table's index."""
        last = (version, 2**62)
        while True:
            query = (
                select(PointRecord.label, self._column, PointRecord.version)
                .where(
                    PointRecord.collection_id == found.id,
                    PointRecord.version <= found.version,
                    tuple_(PointRecord.version, PointRecord.label) > tuple_(*last),
                )
                .order_by(PointRecord.version, PointRecord.label)
                .limit(_BATCH)
            )
            rows = (await session.execute(query)).all()
            if not rows:
                return
            labels, values, versions = zip(*rows, strict=True)
            last = (versions[-1], labels[-1])
            yield np.array(labels, dtype=np.int64), list(values)


class CollectionIndexes:
    """A dense and a text index of one collection, each made when first asked for."""

    def __init__(self, dimension: int, exact_up_to: int) -> None:
        self.dense: Follower[DenseIndex] = Follower(
            PointRecord.vector,
            lambda: _new_dense(dimension, exact_up_to),
            lambda vectors: _decode(vectors, dimension),
        )
        self.text: Follower[TextIndex] = text_follower()


def text_follower() -> Follower[TextIndex]:
    """An empty index of words, to be caught up."""
    return Follower(PointRecord.text, _new_text, lambda texts: texts)


async def _tombstones(session: AsyncSession, found: CollectionRecord, after: int) -> Labels:
    query = select(TombstoneRecord.label).where(
        TombstoneRecord.collection_id == found.id,
        TombstoneRecord.version > after,
        TombstoneRecord.version <= found.version,
    )
    return np.array((await session.scalars(query)).all(), dtype=np.int64)


def _decode(vectors: list[bytes], dimension: int) -> np.ndarray:
    flat = np.frombuffer(b"".join(vectors), dtype=np.float16)
    return flat.reshape(-1, dimension).astype(np.float32)


def _new_dense(dimension: int, exact_up_to: int) -> DenseIndex:
    from kernel.stores.dense import DenseIndex

    return DenseIndex(dimension, exact_up_to=exact_up_to)


def _new_text() -> TextIndex:
    from kernel.stores.text import TextIndex

    return TextIndex()
