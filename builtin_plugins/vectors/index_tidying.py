"""Keeps what was deleted from staying in the files of search indexes, and removes files that nothing needs.

tantivy keeps the words of removed texts in its files until it merges them, which nobody can ask it to do; the
files of vectors never change. So an index that holds such words or vectors is built again from the rows, by
one process of the machine; the others open the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.vectors.index_folders import IndexFolders, SavedIndex
from builtin_plugins.vectors.indexes import CollectionIndexes, Follower
from builtin_plugins.vectors.models import CollectionRecord, SavedIndexRecord, TombstoneRecord
from builtin_plugins.vectors.purging import DROPPED
from kernel.sdk import Database

_LEAST_PAUSE = 0.1


class IndexOwner(Protocol):
    """The store whose indexes are looked after."""

    def loaded(self) -> Mapping[int, CollectionIndexes]:
        """The indexes in this process, by collection."""

    def forget(self, collection_id: int) -> None:
        """The collection is gone."""

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of indexes that are kept in files."""

    async def renew(self, collection: str, kind: str) -> None:
        """Build an index again from the rows, and save it."""

    async def save(self, collection: str, kind: str) -> None:
        """Save an index as it is."""

    async def reopen(self, collection: str, kind: str) -> None:
        """Use what another process has saved."""


class _CollectionState(NamedTuple):
    name: str
    floor: int
    last_removal: int
    tokens: frozenset[str]

    def removed_since(self, version: int) -> bool:
        """Whether points were removed that an index of this version still has."""
        return version < max(self.floor, self.last_removal)


class IndexTidying:
    """Looks after the files of one home."""

    def __init__(self, owner: IndexOwner, database: Database, folders: IndexFolders) -> None:
        self._owner = owner
        self._database = database
        self._folders = folders

    async def run(self) -> None:
        """Tidy up again and again, so often that a deletion is completed within the stated time."""
        while True:
            with self._folders.blame("tidy search indexes"):
                await self.tidy()
            await asyncio.sleep(max(_LEAST_PAUSE, self._folders.clear_within / 4))

    async def tidy(self) -> None:
        """Look at each index with files once. Raises OSError."""
        await asyncio.to_thread(self._folders.sweep)
        await asyncio.to_thread(self._folders.try_again)
        numbers = await asyncio.to_thread(self._folders.collections)
        numbers |= {number for number, indexes in self._owner.loaded().items() if indexes.filed}
        for number in sorted(numbers):
            await self._look_at(number)

    async def _look_at(self, number: int) -> None:
        state = await self._swept(number)
        if state is None:
            self._owner.forget(number)
            await asyncio.to_thread(self._folders.drop, number)
            return
        for kind in self._owner.kinds:
            await self._look_at_kind(number, kind, state)

    async def _look_at_kind(self, number: int, kind: str, state: _CollectionState) -> None:
        saved = await asyncio.to_thread(self._folders.saved, number, kind)
        loaded = self._owner.loaded().get(number)
        own = None if loaded is None else loaded.followers[kind]
        old = saved is not None and (
            saved.manifest.deleted > 0 or state.removed_since(saved.manifest.version)
        )
        behind = own is not None and _holds_deleted(own, state)
        if not old and not behind:
            if saved is not None:  # otherwise another process may wait for the mark to be due
                await asyncio.to_thread(self._folders.unmark, number, kind)
            elif own is not None and own.filed:
                await self._owner.save(state.name, kind)
        elif saved is not None and not old:
            await self._owner.reopen(state.name, kind)
        elif await asyncio.to_thread(self._folders.mark, number, kind) >= self._folders.clear_within / 4:
            with self._folders.turn(number, "renewing") as free:
                if free:
                    await self._owner.renew(state.name, kind)
                    await self._remove(number, saved)

    async def _swept(self, number: int) -> _CollectionState | None:
        """The collection; None if it is gone.

        What was saved of another database, or of another past of this one, is removed.
        """
        with self._folders.turn(number, "saving") as free:
            state = await self._database.read(_state, number)
            if free and state is not None:
                sweep = self._folders.sweep_saved
                await asyncio.to_thread(sweep, number, state.tokens, self._owner.kinds)
        return state

    async def _remove(self, number: int, old: SavedIndex | None) -> None:
        """Remove a saved index that could not be replaced: the collection is small now, or the disk full."""
        if old is None:
            return
        with self._folders.turn(number, "saving") as free:
            present = await asyncio.to_thread(self._folders.saved, number, old.manifest.kind)
            if free and present == old:
                await asyncio.to_thread(self._folders.remove, old)


def _holds_deleted(own: Follower[Any], state: _CollectionState) -> bool:
    return own.filed and (own.deleted > 0 or state.removed_since(own.version))


def _state(session: Session, number: int) -> _CollectionState | None:
    """The collection; None if it is gone."""
    record = session.get(CollectionRecord, number)
    if record is None or record.name.startswith(DROPPED):
        return None
    removals = select(func.max(TombstoneRecord.version)).where(TombstoneRecord.collection_id == number)
    last = int(session.scalar(removals) or 0)
    tokens = session.scalars(select(SavedIndexRecord.token).where(SavedIndexRecord.collection_id == number))
    return _CollectionState(record.name, record.floor, last, frozenset(tokens))
