"""The search indexes of one collection in this process, and how they follow its rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from builtin_plugins.vectors.fusion import Labels
from builtin_plugins.vectors.groups import GroupIndex
from builtin_plugins.vectors.models import CollectionRecord, PointRecord, TombstoneRecord
from builtin_plugins.vectors.protocol import LANGUAGE, searched_text
from kernel.sdk import Database, off_the_loop

if TYPE_CHECKING:
    import numpy as np

    from builtin_plugins.vectors.dense import DenseIndex
    from builtin_plugins.vectors.text import InLanguage, TextIndex

_BATCH = 5000
_HIGHEST = 2**62  # above every label

Place = tuple[int, int]
"""A version, and a label published with it."""

_FIRST: Place = (0, _HIGHEST)


class Derived(Protocol):
    """The common interface of the indexes. All methods may be called from any thread."""

    def add(self, labels: Any, values: Any, /) -> None: ...

    def remove(self, labels: Any, /) -> None: ...


I = TypeVar("I", bound=Derived)  # noqa: E741


class Follower(Generic[I]):
    """An index that follows columns of a collection's points. It has its own version.

    Two indexes that shared a version would lose points: an older reader would fill a new index with what it
    sees and consider it as recent as the other. `catch_up` needs exclusive access.
    """

    def __init__(
        self, columns: Sequence[Any], make: Callable[[], I], decode: Callable[[list[Any]], Any]
    ) -> None:
        """`decode` turns tuples of the columns' values into what the index takes."""
        self._columns = columns
        self._make = make
        self._decode = decode
        self._index: I | None = None
        self._version = 0

    @property
    def index(self) -> I | None:
        """The index in its present state; None before the first use."""
        return self._index

    def is_at(self, record: CollectionRecord) -> bool:
        """Whether the index is loaded and at exactly the version of `record`."""
        return self._index is not None and self._version == record.version

    async def load(self, database: Database, record: CollectionRecord) -> None:
        """Load a new index in batches, so that nobody waits for it and it can be abandoned halfway.

        Points removed meanwhile may already be missing; all later changes are left to `catch_up`.
        """
        index = await asyncio.to_thread(self._make)
        last = _FIRST
        while rows := await database.read(self._batch, record, last):
            last = await asyncio.to_thread(self._add, index, rows)
        self._index, self._version = index, record.version

    def catch_up(self, session: Session, record: CollectionRecord) -> I:
        """The index, brought to at least the version of `record` as the session sees it."""
        index, version = self._index, self._version
        if index is None or version < record.floor:
            index, version = off_the_loop(self._make), 0
        if version < record.version:
            self._apply(session, record, index, version)
            version = record.version
        self._index, self._version = index, version
        return index

    def _apply(self, session: Session, record: CollectionRecord, index: I, version: int) -> None:
        gone = _tombstones(session, record, version) if version else ()
        if len(gone):
            off_the_loop(partial(index.remove, gone))
        last = (version, _HIGHEST)
        while rows := self._batch(session, record, last):
            last = off_the_loop(partial(self._add, index, rows))

    def _batch(self, session: Session, record: CollectionRecord, last: Place) -> Sequence[Sequence[Any]]:
        """The next rows up to the version of `record`, in the order of the table's index."""
        query = (
            select(PointRecord.label, PointRecord.version, *self._columns)
            .where(
                PointRecord.collection_id == record.id,
                PointRecord.version <= record.version,
                tuple_(PointRecord.version, PointRecord.label) > tuple_(*last),
            )
            .order_by(PointRecord.version, PointRecord.label)
            .limit(_BATCH)
        )
        return session.execute(query).all()

    def _add(self, index: I, rows: Sequence[Sequence[Any]]) -> Place:
        """Add the rows; returns the place of the last one."""
        import numpy as np

        index.add(np.array([row[0] for row in rows], dtype=np.int64), self._decode([row[2:] for row in rows]))
        return rows[-1][1], rows[-1][0]


class CollectionIndexes:
    """The indexes of one collection, each made when first needed: of vectors, of words, of groups."""

    def __init__(self, dimension: int, exact_up_to: int) -> None:
        self.dense: Follower[DenseIndex] = Follower(
            (PointRecord.vector,),
            lambda: _new_dense(dimension, exact_up_to),
            lambda rows: _decode([vector for (vector,) in rows], dimension),
        )
        self.text: Follower[TextIndex] = text_follower()
        self.groups: Follower[GroupIndex] = Follower(
            (PointRecord.group_key,), GroupIndex, lambda rows: [group for (group,) in rows]
        )


def text_follower() -> Follower[TextIndex]:
    """An empty text index, to catch up."""
    return Follower((PointRecord.text, PointRecord.payload), _new_text, _in_languages)


def _tombstones(session: Session, record: CollectionRecord, after: int) -> Labels:
    import numpy as np

    query = select(TombstoneRecord.label).where(
        TombstoneRecord.collection_id == record.id,
        TombstoneRecord.version > after,
        TombstoneRecord.version <= record.version,
    )
    return np.array(session.scalars(query).all(), dtype=np.int64)


def _decode(vectors: list[bytes], dimension: int) -> np.ndarray:
    import numpy as np

    flat = np.frombuffer(b"".join(vectors), dtype=np.float16)
    return flat.reshape(-1, dimension).astype(np.float32)


def _new_dense(dimension: int, exact_up_to: int) -> DenseIndex:
    from builtin_plugins.vectors.dense import DenseIndex

    return DenseIndex(dimension, exact_up_to=exact_up_to)


def _in_languages(rows: list[Any]) -> list[InLanguage]:
    from builtin_plugins.vectors.text import InLanguage

    given = [(text, payload or {}) for text, payload in rows]
    return [InLanguage(searched_text(text, payload), payload.get(LANGUAGE)) for text, payload in given]


def _new_text() -> TextIndex:
    from builtin_plugins.vectors.text import TextIndex

    return TextIndex()
