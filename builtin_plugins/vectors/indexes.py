"""The search indexes of one collection in this process, and how they follow its rows.

An index of more than a few points is opened from what was saved in files, if that belongs to this database,
and catches up from there; otherwise it is loaded from the rows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from builtin_plugins.vectors.fusion import Labels, Ranking
from builtin_plugins.vectors.index_saving import WORTH_SAVING, IndexShelf, OpenedIndex
from builtin_plugins.vectors.models import CollectionRecord, PointRecord, TombstoneRecord
from builtin_plugins.vectors.protocol import LANGUAGE, searched_text
from kernel.sdk import Database, off_the_loop

if TYPE_CHECKING:
    import numpy as np

    from builtin_plugins.vectors.dense import DenseIndex
    from builtin_plugins.vectors.dense_files import SegmentedDenseIndex
    from builtin_plugins.vectors.group_files import FiledGroupIndex
    from builtin_plugins.vectors.groups import GroupIndex
    from builtin_plugins.vectors.index_folders import IndexFolders
    from builtin_plugins.vectors.text import InLanguage, TermReader, TextIndex

log = logging.getLogger("platform.vectors")

DENSE, TEXT, GROUPS = "dense", "text", "groups"
"""Kinds of indexes that are kept in files."""

_BATCH = 5000
_WORTH_SAVING_AGAIN = 1000  # changed points, with which an opened index catches up in 0.2 seconds
_MOST_STALE = 0.2
_DENSE_SHARE = 0.05  # of changed vectors: each time adds a file that every search reads
_GROUPS_SHARE = 0.05  # of changed points: each time, all is written
_HIGHEST = 2**62  # above every label

Place = tuple[int, int]
"""A version, and a label published with it."""

_FIRST: Place = (0, _HIGHEST)


class Derived(Protocol):
    """The common interface of the indexes. All methods may be called from any thread.

    `folder` is where its files are; None in memory. `deleted` counts what was deleted and is still in them.
    `stale` is the share of removed points that still cost something, 0 to 1.
    """

    folder: Path | None

    deleted: int

    @property
    def count(self) -> int: ...

    @property
    def stale(self) -> float: ...

    def begin_loading(self) -> None: ...

    def end_loading(self) -> None: ...

    def add(self, labels: Any, values: Any, /) -> None: ...

    def remove(self, labels: Any, /) -> None: ...


class VectorIndex(Derived, Protocol):
    """An index of vectors."""

    @property
    def approximate(self) -> bool: ...

    @property
    def wants_approximate(self) -> bool: ...

    def build_approximate(self) -> bool: ...

    def search(self, query: Any, k: int, allowed: Any = None, /) -> Ranking: ...


class PointGroups(Derived, Protocol):
    """An index of which points are in which group."""

    def labels_of(self, groups: Collection[str], /) -> Labels: ...


I = TypeVar("I", bound=Derived)  # noqa: E741


class Follower(Generic[I]):
    """An index that follows columns of a collection's points. It has its own version.

    Two indexes that shared a version would lose points: an older reader would fill a new index with what it
    sees and consider it as recent as the other. `catch_up` needs exclusive access.
    """

    def __init__(
        self,
        columns: Sequence[Any],
        make: Callable[[], I],
        decode: Callable[[list[Any]], Any],
        shelf: IndexShelf[Any] | None = None,
    ) -> None:
        """`decode` turns tuples of the columns' values into what the index takes.

        With a `shelf`, the index of a large collection is kept in files.
        """
        self._columns = columns
        self._make = make
        self._decode = decode
        self._shelf = shelf
        self._index: I | None = None
        self._version = 0
        self._built_at = 0.0
        self._unsaved = 0

    @property
    def index(self) -> I | None:
        """The index in its present state; None before the first use."""
        return self._index

    def is_at(self, record: CollectionRecord) -> bool:
        """Whether the index is loaded and at exactly the version of `record`."""
        return self._index is not None and self._version == record.version

    @property
    def filed(self) -> bool:
        """Whether the index has files."""
        return self._index is not None and self._index.folder is not None

    @property
    def version(self) -> int:
        """The version of the collection that the index has."""
        return self._version

    @property
    def outgrown(self) -> bool:
        """Whether the index is in memory but belongs into files."""
        index, shelf = self._index, self._shelf
        if index is None or shelf is None or index.folder is not None or shelf.folders.fault:
            return False
        return index.count >= WORTH_SAVING

    @property
    def wants_saving(self) -> bool:
        """Whether enough has changed in its files since they were saved."""
        index, shelf = self._index, self._shelf
        if index is None or shelf is None or index.folder is None:
            return False
        return self._unsaved >= max(_WORTH_SAVING_AGAIN, shelf.worth_saving_again * index.count)

    @property
    def deleted(self) -> int:
        """How many points were deleted whose content may still be in the files."""
        return 0 if self._index is None else self._index.deleted

    @property
    def wants_renewal(self) -> bool:
        """Whether it should be built again from the rows."""
        return self._index is not None and (self._index.stale > _MOST_STALE or self.outgrown)

    async def load(self, database: Database, record: CollectionRecord) -> None:
        """Open what was saved, or build an index from the rows."""
        if not await self.open(database, record):
            await self.build(database, record)

    async def open(self, database: Database, record: CollectionRecord) -> bool:
        """Open what was saved; returns whether there was something to open."""
        opened = None if self._shelf is None else await self._shelf.open(database, record)
        if opened is None:
            return False
        self._index, self._version, self._built_at = opened
        self._unsaved = 0
        return True

    async def is_saved(self, record: CollectionRecord) -> bool:
        """Whether something was saved that this version of the software can open."""
        return self._shelf is not None and await asyncio.to_thread(self._shelf.has, record)

    async def build(self, database: Database, record: CollectionRecord) -> None:
        """Load a new index in batches, so that nobody waits for it and it can be abandoned halfway.

        Points removed meanwhile may already be missing; all later changes are left to `catch_up`.
        """
        filed: I | None = None
        built_at = 0.0  # matters only for files
        new = None if self._shelf is None else await self._shelf.new(database, record)
        if new is not None:
            filed, built_at = new
        try:
            index = await asyncio.to_thread(self._make) if filed is None else filed
            added = await self._fill(index, database, record)
        except (OSError, ValueError, RuntimeError) as error:
            if filed is None:
                raise
            log.warning("an index is kept in memory, because its files can't be written: %s", error)
            index = await asyncio.to_thread(self._make)
            added = await self._fill(index, database, record)
        self._index, self._version, self._built_at, self._unsaved = index, record.version, built_at, added

    async def _fill(self, index: I, database: Database, record: CollectionRecord) -> int:
        """Add all rows; returns how many."""
        await asyncio.to_thread(index.begin_loading)
        last, added = _FIRST, 0
        while rows := await database.read(self._batch, record, last):
            last = await asyncio.to_thread(self._add, index, rows)
            added += len(rows)
        await asyncio.to_thread(index.end_loading)
        return added

    async def save(
        self,
        database: Database,
        record: CollectionRecord,
        hold: Callable[[], AbstractAsyncContextManager[None]],
    ) -> bool:
        """Save the files of the index; `hold` keeps others from changing it.

        Returns False if another process has saved files that are as good.
        """
        shelf = self._shelf
        if shelf is None:
            return True

        @asynccontextmanager
        async def unchanged() -> AsyncIterator[OpenedIndex[Any]]:
            async with hold():
                self._unsaved = 0
                yield OpenedIndex(self._index, self._version, self._built_at)

        return await shelf.save(database, record, unchanged)

    def release(self) -> None:
        """Let go of the index, and of its files with it."""
        self._index = None

    def catch_up(self, session: Session, record: CollectionRecord) -> I:
        """The index, brought to at least the version of `record` as the session sees it."""
        index, version = self._index, self._version
        if index is None or version < record.floor:
            index, version = off_the_loop(self._make), 0
        if version < record.version:
            try:
                self._apply(session, record, index, version)
            except _NotWritten as error:
                log.warning("an index is built again in memory: %s", error)
                index = off_the_loop(self._make)
                self._apply(session, record, index, 0)
            version = record.version
        self._index, self._version = index, version
        return index

    def _apply(self, session: Session, record: CollectionRecord, index: I, version: int) -> None:
        gone = _tombstones(session, record, version) if version else ()
        if len(gone):
            off_the_loop(partial(_change, index, partial(index.remove, gone)))
            self._unsaved += len(gone)
        last = (version, _HIGHEST)
        while rows := self._batch(session, record, last):
            last = off_the_loop(partial(_change, index, partial(self._add, index, rows)))
            self._unsaved += len(rows)

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


class _NotWritten(Exception):
    """The files of an index could not be changed."""


T = TypeVar("T")


def _change(index: Derived, change: Callable[[], T]) -> T:
    """Change an index. Raises _NotWritten if its files can't be written; it can't be used any more."""
    try:
        return change()
    except (OSError, ValueError, RuntimeError) as error:
        if index.folder is None:
            raise
        raise _NotWritten(str(error)) from error


class CollectionIndexes:
    """The indexes of one collection, each made when first needed: of vectors, of words, of groups."""

    def __init__(self, dimension: int, exact_up_to: int, folders: IndexFolders | None = None) -> None:
        self._fresh: dict[str, Callable[[], Follower[Any]]] = {
            DENSE: lambda: _dense_follower(dimension, exact_up_to, folders),
            TEXT: lambda: _text_follower(folders),
            GROUPS: lambda: _group_follower(folders),
        }
        self.followers: dict[str, Follower[Any]] = {kind: make() for kind, make in self._fresh.items()}
        """By kind, the indexes that are kept in files."""

    @property
    def dense(self) -> Follower[VectorIndex]:
        """The index of vectors."""
        return self.followers[DENSE]

    @property
    def text(self) -> Follower[TextIndex]:
        """The index of words."""
        return self.followers[TEXT]

    @property
    def groups(self) -> Follower[PointGroups]:
        """The index of groups."""
        return self.followers[GROUPS]

    @property
    def filed(self) -> bool:
        """Whether an index has files."""
        return any(index.filed for index in self.followers.values())

    def fresh(self, kind: str) -> Follower[Any]:
        """An empty index of a kind, to load or to build."""
        return self._fresh[kind]()


def _text_follower(folders: IndexFolders | None) -> Follower[TextIndex]:
    shelf = None if folders is None else IndexShelf(folders, TEXT, text_software, _text_in)
    return Follower((PointRecord.text, PointRecord.payload), _text_in, _in_languages, shelf)


def _group_follower(folders: IndexFolders | None) -> Follower[PointGroups]:
    shelf: IndexShelf[Any] | None = None
    if folders is not None:
        shelf = IndexShelf(folders, GROUPS, _group_software, _groups_in, _GROUPS_SHARE)
    return Follower((PointRecord.group_key,), _new_groups, lambda rows: [group for (group,) in rows], shelf)


def _dense_follower(dimension: int, exact_up_to: int, folders: IndexFolders | None) -> Follower[VectorIndex]:
    shelf: IndexShelf[Any] | None = None
    if folders is not None:
        shelf = IndexShelf(
            folders,
            DENSE,
            partial(_dense_software, dimension),
            partial(_dense_in, dimension, exact_up_to),
            _DENSE_SHARE,
        )
    return Follower(
        (PointRecord.vector,),
        lambda: _new_dense(dimension, exact_up_to),
        lambda rows: _decode([vector for (vector,) in rows], dimension),
        shelf,
    )


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


def _dense_in(
    dimension: int, exact_up_to: int, folder: Path, parameters: Mapping[str, str]
) -> SegmentedDenseIndex:
    from builtin_plugins.vectors.dense_files import SegmentedDenseIndex

    return SegmentedDenseIndex(dimension, folder, parameters, exact_up_to=exact_up_to)


def _dense_software(dimension: int) -> str:
    from builtin_plugins.vectors.dense_files import dense_software

    return dense_software(dimension)


def _new_groups() -> GroupIndex:
    from builtin_plugins.vectors.groups import GroupIndex

    return GroupIndex()


def _groups_in(folder: Path, parameters: Mapping[str, str]) -> FiledGroupIndex:
    from builtin_plugins.vectors.group_files import FiledGroupIndex

    return FiledGroupIndex(folder, parameters)


def _group_software() -> str:
    from builtin_plugins.vectors.group_files import group_software

    return group_software()


def text_in_language(text: str, payload: Mapping[str, Any] | None) -> InLanguage:
    """What is searched by words of a point's text and payload."""
    from builtin_plugins.vectors.text import InLanguage

    fields = payload or {}
    return InLanguage(searched_text(text, fields), fields.get(LANGUAGE))


def _in_languages(rows: list[Any]) -> list[InLanguage]:
    return [text_in_language(text, payload) for text, payload in rows]


def _text_in(folder: Path | None = None, parameters: Mapping[str, str] | None = None) -> TextIndex:
    from builtin_plugins.vectors.text import TextIndex

    return TextIndex(folder, parameters)


def text_software() -> str:
    """All that the content of a text index depends on, besides the rows."""
    from builtin_plugins.vectors.text import software

    return software()


def term_reader() -> TermReader:
    """What reads texts and questions as terms, loaded when first needed."""
    from builtin_plugins.vectors.text import TermReader

    return TermReader()
