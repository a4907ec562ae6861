"""Builds and saves the indexes of large collections before a search needs them.

After many documents, or with other versions of the software, the first search would wait 7 seconds for each
100,000 points.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.vectors.index_folders import IndexFolders
from builtin_plugins.vectors.index_saving import WORTH_SAVING, number_of_points
from builtin_plugins.vectors.indexes import DENSE, CollectionIndexes, Follower, VectorIndex
from builtin_plugins.vectors.models import CollectionRecord, PointRecord
from builtin_plugins.vectors.point_rows import read_collection
from builtin_plugins.vectors.upkeep import Upkeep
from kernel.sdk import Database, in_abandonable_thread

QUIET: Final = 10.0
"""Seconds without a change after which a collection is looked at: most will be searched then."""
_LONGEST_UNREST: Final = 600.0
"""Seconds after which one is looked at that changes all the time, and again and again."""


class IndexBuilding:
    """Looks after the saved indexes of collections that this process changes, and of all at the start."""

    def __init__(
        self,
        database: Database,
        folders: IndexFolders,
        kinds: Sequence[str],
        indexes_of: Callable[[CollectionRecord], CollectionIndexes],
        quiet: float = QUIET,
    ) -> None:
        """`indexes_of` makes empty indexes of a collection; `quiet` is in seconds."""
        self._database = database
        self._folders = folders
        self._kinds = kinds
        self._indexes_of = indexes_of
        self._quiet = quiet
        # When the first change that nobody has looked at was committed, and when the last.
        self._changes: dict[str, tuple[float, float]] = {}
        self._upkeep = Upkeep()

    async def note_change(self, collection: str) -> None:
        """Points of a collection have changed."""
        now = time.monotonic()
        self._changes[collection] = (self._changes.get(collection, (now, now))[0], now)

    async def run(self) -> None:
        """Build what is missing whenever a collection has not changed for a while."""
        await asyncio.sleep(self._quiet)
        for collection in await self._database.read(_large):
            await self._begin(collection, outdated_only=True)
        while True:
            await asyncio.sleep(self._quiet)
            now = time.monotonic()
            for collection, (first, last) in list(self._changes.items()):
                if last <= now - self._quiet or first <= now - _LONGEST_UNREST:
                    del self._changes[collection]
                    await self._begin(collection)

    async def _begin(self, collection: str, *, outdated_only: bool = False) -> None:
        """Build, and log an error: the next collection may be all right."""
        work = partial(self.build, collection, outdated_only=outdated_only)
        self._upkeep.begin(f"building the indexes of {collection}", work)
        try:
            await self._upkeep.settled()
        finally:
            await self._upkeep.close()

    async def build(self, collection: str, *, outdated_only: bool = False) -> None:
        """Save the indexes of a collection as it is now, unless little has changed since they were saved.

        With `outdated_only`, not those that can be opened and catch up.
        """
        record = await self._database.read(read_collection, collection)
        if record is None or await self._database.read(number_of_points, record) < WORTH_SAVING:
            return
        for kind in self._kinds:
            if kind == DENSE and not record.dimension:  # only words
                continue
            with (
                self._folders.blame("save search indexes"),
                self._folders.turn(record.id, f"building-{kind}") as free,
            ):
                index = self._indexes_of(record).followers[kind]
                if not free or (outdated_only and await index.is_saved(record)):
                    continue
                try:
                    await self._build(collection, record, kind, index)
                finally:
                    index.release()  # at once: a thread may still know what it read last

    async def _build(
        self, collection: str, record: CollectionRecord, kind: str, index: Follower[VectorIndex]
    ) -> None:
        await index.load(self._database, record)
        if not index.filed:  # a full disk
            return
        await self._database.snapshot(_catch_up, collection, index)
        built = index.index
        is_new = kind == DENSE and built is not None and built.wants_approximate
        if is_new and built is not None:
            await in_abandonable_thread(built.build_approximate)
        if is_new or index.wants_saving:
            await index.save(self._database, record, nullcontext)


def _large(session: Session) -> list[str]:
    """The collections whose indexes are kept in files. Reads an index of all points: 0.2 s for a million."""
    number = func.count(PointRecord.version)
    large = (
        select(PointRecord.collection_id).group_by(PointRecord.collection_id).having(number >= WORTH_SAVING)
    )
    return list(session.scalars(select(CollectionRecord.name).where(CollectionRecord.id.in_(large))))


def _catch_up(session: Session, collection: str, index: Follower[VectorIndex]) -> None:
    record = read_collection(session, collection)
    if record is not None:
        index.catch_up(session, record)
