"""Keeps what was deleted from staying in the files of search indexes, and removes files that nothing needs.

tantivy keeps the words of removed texts in its files until it merges them, which nobody can ask it to do. So
an index that holds such words is built again from the rows, by one process of the machine; the others open
the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.vectors.index_folders import IndexFolders, SavedIndex
from builtin_plugins.vectors.indexes import CollectionIndexes
from builtin_plugins.vectors.models import CollectionRecord, SavedIndexRecord, TombstoneRecord
from builtin_plugins.vectors.purging import DROPPED
from kernel.sdk import Database

_LEAST_PAUSE = 0.1
_TEXT = "text"


class IndexOwner(Protocol):
    """The store whose indexes are looked after."""

    def loaded(self) -> Mapping[int, CollectionIndexes]:
        """The indexes in this process, by collection."""

    def forget(self, collection_id: int) -> None:
        """The collection is gone."""

    async def renew_words(self, collection: str) -> None:
        """Build the index of words again from the rows, and save it."""

    async def save_words(self, collection: str) -> None:
        """Save the index of words as it is."""

    async def reopen_words(self, collection: str) -> None:
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
        state, saved = await self._saved_here(number)
        if state is None:
            self._owner.forget(number)
            await asyncio.to_thread(self._folders.drop, number)
            return
        own = self._owner.loaded().get(number)
        old = saved is not None and (
            saved.manifest.deleted > 0 or state.removed_since(saved.manifest.version)
        )
        behind = own is not None and _holds_deleted(own, state)
        if not old and not behind:
            if saved is not None:  # otherwise another process may wait for the mark to be due
                await asyncio.to_thread(self._folders.unmark, number)
            elif own is not None and own.filed:
                await self._owner.save_words(state.name)
        elif saved is not None and not old:
            await self._owner.reopen_words(state.name)
        elif await asyncio.to_thread(self._folders.mark, number) >= self._folders.clear_within / 4:
            with self._folders.turn(number, "renewing") as free:
                if free:
                    await self._owner.renew_words(state.name)
                    await self._remove(number, saved)

    async def _saved_here(self, number: int) -> tuple[_CollectionState | None, SavedIndex | None]:
        """The collection, None if it is gone, and what is saved of it.

        What was saved of another database, or of another past of this one, is removed.
        """
        with self._folders.turn(number, "saving") as free:
            state = await self._database.read(_state, number)
            if free and state is not None:
                await asyncio.to_thread(self._folders.sweep_saved, number, state.tokens)
        return state, await asyncio.to_thread(self._folders.saved, number, _TEXT)

    async def _remove(self, number: int, old: SavedIndex | None) -> None:
        """Remove a saved index that could not be replaced: the collection is small now, or the disk full."""
        with self._folders.turn(number, "saving") as free:
            present = await asyncio.to_thread(self._folders.saved, number, _TEXT)
            if free and old is not None and present == old:
                await asyncio.to_thread(self._folders.sweep_saved, number, ())


def _holds_deleted(own: CollectionIndexes, state: _CollectionState) -> bool:
    index = own.text.index
    if index is None or index.folder is None:
        return False
    return index.deleted > 0 or state.removed_since(own.text.version)


def _state(session: Session, number: int) -> _CollectionState | None:
    """The collection; None if it is gone."""
    found = session.get(CollectionRecord, number)
    if found is None or found.name.startswith(DROPPED):
        return None
    removals = select(func.max(TombstoneRecord.version)).where(TombstoneRecord.collection_id == number)
    last = int(session.scalar(removals) or 0)
    tokens = session.scalars(select(SavedIndexRecord.token).where(SavedIndexRecord.collection_id == number))
    return _CollectionState(found.name, found.floor, last, frozenset(tokens))
