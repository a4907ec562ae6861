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

    async def reopen_words(self, collection: str) -> None:
        """Use what another process has saved."""


class _CollectionState(NamedTuple):
    name: str
    version: int
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
        await asyncio.to_thread(self._folders.sweep)
        while True:
            await asyncio.sleep(max(_LEAST_PAUSE, self._folders.clear_within / 4))
            with self._folders.blame("tidy search indexes"):
                await self.tidy()

    async def tidy(self) -> None:
        """Look at each index with files once. Raises OSError."""
        await asyncio.to_thread(self._folders.sweep)
        loaded = self._owner.loaded()
        numbers = await asyncio.to_thread(self._folders.collections)
        numbers |= {number for number, indexes in loaded.items() if indexes.filed}
        states = await self._database.read(_states) if numbers else {}
        for number in sorted(numbers):
            state = states.get(number)
            if state is None or state.name.startswith(DROPPED):
                self._owner.forget(number)
                await asyncio.to_thread(self._folders.drop, number)
            else:
                await self._look_at(number, state, loaded.get(number))

    async def _look_at(self, number: int, state: _CollectionState, own: CollectionIndexes | None) -> None:
        saved = await self._saved_here(number, state)
        old = saved is not None and (
            saved.manifest.deleted > 0 or state.removed_since(saved.manifest.version)
        )
        behind = own is not None and _holds_deleted(own, state)
        if not old and not behind:
            await asyncio.to_thread(self._folders.unmark, number)
        elif saved is not None and not old:
            await self._owner.reopen_words(state.name)
        elif await asyncio.to_thread(self._folders.mark, number) >= self._folders.clear_within / 4:
            with self._folders.turn(number, "renewing") as free:
                if free:
                    await self._owner.renew_words(state.name)

    async def _saved_here(self, number: int, state: _CollectionState) -> SavedIndex | None:
        """What is saved; that of another database, or of another past of this one, is removed."""
        with self._folders.turn(number, "saving") as free:
            if free:
                await asyncio.to_thread(self._folders.sweep_saved, number, state.tokens)
        return await asyncio.to_thread(self._folders.saved, number, _TEXT)


def _holds_deleted(own: CollectionIndexes, state: _CollectionState) -> bool:
    index = own.text.index
    if index is None or index.folder is None:
        return False
    return index.deleted > 0 or state.removed_since(own.text.version)


def _states(session: Session) -> dict[int, _CollectionState]:
    removals = select(
        TombstoneRecord.collection_id, func.max(TombstoneRecord.version).label("last")
    ).group_by(TombstoneRecord.collection_id)
    last = {row.collection_id: row.last for row in session.execute(removals)}
    tokens: dict[int, set[str]] = {}
    for number, token in session.execute(select(SavedIndexRecord.collection_id, SavedIndexRecord.token)):
        tokens.setdefault(number, set()).add(token)
    return {
        one.id: _CollectionState(
            one.name, one.version, one.floor, last.get(one.id, 0), frozenset(tokens.get(one.id, ()))
        )
        for one in session.scalars(select(CollectionRecord))
    }
