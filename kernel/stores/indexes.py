"""The search indexes of one collection in this process, and how they follow the rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from kernel.db.tables import CollectionRecord, PointRecord, TombstoneRecord

if TYPE_CHECKING:
    from kernel.stores.dense import DenseIndex
    from kernel.stores.text import TextIndex

_BATCH = 5000


class CollectionIndexes:
    """A dense index, and a text index once somebody asks for hybrid search.

    Both are as of the collection's `version`; `catch_up` brings them to the session's.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._lock = asyncio.Lock()
        self._dense: DenseIndex | None = None
        self._text: TextIndex | None = None
        self._version = 0

    @property
    def dense(self) -> DenseIndex:
        """The dense index; `catch_up` comes first."""
        assert self._dense is not None
        return self._dense

    @property
    def text(self) -> TextIndex:
        """The text index; `catch_up(with_text=True)` comes first."""
        assert self._text is not None
        return self._text

    async def catch_up(self, session: AsyncSession, found: CollectionRecord, *, with_text: bool) -> None:
        """Bring the indexes up to `found`, as the session sees it."""
        if self._dense is not None and self._version >= found.version and (self._text or not with_text):
            return
        async with self._lock:
            await self._start(found)
            if self._version < found.version:
                await self._apply(session, found)
            if with_text and self._text is None:
                await self._load_text(session, found)

    async def _start(self, found: CollectionRecord) -> None:
        if self._dense is None or self._version < found.floor:
            self._dense = await asyncio.to_thread(_new_dense, self._dimension)
            self._text, self._version = None, 0

    async def _apply(self, session: AsyncSession, found: CollectionRecord) -> None:
        dense, text = self.dense, self._text
        gone = await self._tombstones(session, found)
        if len(gone):
            await asyncio.to_thread(dense.remove, gone)
            if text is not None:
                await asyncio.to_thread(text.remove, gone)
        async for labels, vectors, texts in self._rows(session, found, after=self._version):
            await asyncio.to_thread(dense.add, labels, _decode(vectors, self._dimension))
            if text is not None:
                await asyncio.to_thread(text.add, labels, texts)
        self._version = found.version

    async def _load_text(self, session: AsyncSession, found: CollectionRecord) -> None:
        text = await asyncio.to_thread(_new_text)
        async for labels, _, texts in self._rows(session, found, after=0):
            await asyncio.to_thread(text.add, labels, texts)
        self._text = text

    async def _tombstones(self, session: AsyncSession, found: CollectionRecord) -> np.ndarray:
        query = select(TombstoneRecord.label).where(
            TombstoneRecord.collection_id == found.id,
            TombstoneRecord.version > self._version,
            TombstoneRecord.version <= found.version,
        )
        return np.array((await session.scalars(query)).all(), dtype=np.int64)

    async def _rows(
        self, session: AsyncSession, found: CollectionRecord, *, after: int
    ) -> AsyncIterator[tuple[np.ndarray, list[bytes], list[str]]]:
        """Rows published after a version, in batches, in the order of the table's index."""
        last = (after, 2**62)
        while True:
            query = (
                select(PointRecord.label, PointRecord.vector, PointRecord.text, PointRecord.version)
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
            labels, vectors, texts, versions = zip(*rows, strict=True)
            last = (versions[-1], labels[-1])
            yield np.array(labels, dtype=np.int64), list(vectors), list(texts)


def _decode(vectors: list[bytes], dimension: int) -> np.ndarray:
    flat = np.frombuffer(b"".join(vectors), dtype=np.float16)
    return flat.reshape(-1, dimension).astype(np.float32)


def _new_dense(dimension: int) -> Any:
    from kernel.stores.dense import DenseIndex

    return DenseIndex(dimension)


def _new_text() -> Any:
    from kernel.stores.text import TextIndex

    return TextIndex()
