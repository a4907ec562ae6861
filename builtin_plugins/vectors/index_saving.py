"""Saves the indexes of one collection in files, and opens what was saved, if it belongs to this database."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from builtin_plugins.vectors.index_folders import IndexFolders, SavedIndex
from builtin_plugins.vectors.index_manifest import IndexManifest, checksums
from builtin_plugins.vectors.models import CollectionRecord, PointRecord, SavedIndexRecord
from kernel.sdk import Database, Unit

log = logging.getLogger("platform.vectors")

WORTH_SAVING = 2000
"""Points from which a collection's indexes are kept in files; fewer are loaded in 0.3 seconds."""

FORM = "form"
"""The parameter of an index that took long to prepare: how. It is saved in place of one without."""

_ATTEMPTS = 6000  # ten minutes: a large index of another kind may be saved first
_PAUSE = 0.1  # seconds, while another process saves
_MOST_TOKENS = 400  # of a collection, the latest: two for each of 200 machines that use one database


class FiledIndex(Protocol):
    """What an index must offer to be saved. All methods may be called from any thread."""

    folder: Path | None
    deleted: int

    @property
    def parameters(self) -> Mapping[str, str]: ...

    def link_to(self, folder: Path, /) -> None: ...


F = TypeVar("F", bound=FiledIndex)


class OpenedIndex(NamedTuple, Generic[F]):
    """An index, the version of its collection, and when it was built."""

    built: F
    version: int
    built_at: float


class IndexShelf(Generic[F]):
    """The saved index of one kind of one collection."""

    def __init__(
        self,
        folders: IndexFolders,
        kind: str,
        software: Callable[[], str],
        make: Callable[[Path, Mapping[str, str]], F],
        worth_saving_again: float = 0.0,
    ) -> None:
        """`make` opens the index in a folder; `software` names all that the files' content depends on.

        `worth_saving_again` is the share of points that must have changed before the files are replaced.
        """
        self.folders = folders
        self.kind = kind
        self._software = software
        self._make = make
        self.worth_saving_again = worth_saving_again

    async def new(self, database: Database, record: CollectionRecord) -> tuple[F, float] | None:
        """An empty index in a folder, and its time of building: all that was deleted before is gone from
        the rows. None for a small collection, or if there can't be a folder.
        """
        size = await database.read(number_of_points, record)
        if size < WORTH_SAVING:
            return None
        built_at = await database.write(_time_between_changes, record.id)
        index = await asyncio.to_thread(self._new, record.id, built_at)
        return None if index is None else (index, built_at)

    def has(self, record: CollectionRecord) -> bool:
        """Whether an index of this collection and software was saved."""
        saved = self.folders.saved(record.id, self.kind)
        return saved is not None and self._fits(saved.manifest, record)

    async def open(self, database: Database, record: CollectionRecord) -> OpenedIndex[F] | None:
        """What was saved, if it is whole and was saved from this database."""
        saved = await asyncio.to_thread(self.folders.saved, record.id, self.kind)
        if saved is None or not self._fits(saved.manifest, record):
            return None
        manifest = saved.manifest
        if await database.read(_version_of, manifest.token, record.id) != manifest.version:
            log.info("the saved index %s is not of this database's past", saved.folder)
            return None
        index = await asyncio.to_thread(self._opened, saved)
        return None if index is None else OpenedIndex(index, manifest.version, manifest.built_at)

    async def save(
        self,
        database: Database,
        record: CollectionRecord,
        unchanged: Callable[[], AbstractAsyncContextManager[OpenedIndex[F]]],
    ) -> bool:
        """Replace what is saved; False if another process has saved what is as good.

        `unchanged` yields the index, and nobody changes it during the block.
        """
        with self.folders.blame("save search indexes"):
            for _ in range(_ATTEMPTS):
                with self.folders.turn(record.id, "saving") as free:
                    if free:
                        return await self._save(database, record, unchanged)
                await asyncio.sleep(_PAUSE)
        return True

    async def _save(
        self,
        database: Database,
        record: CollectionRecord,
        unchanged: Callable[[], AbstractAsyncContextManager[OpenedIndex[F]]],
    ) -> bool:
        before = await asyncio.to_thread(self.folders.saved, record.id, self.kind)
        folder = await asyncio.to_thread(self.folders.new_saved, record.id)
        try:
            async with unchanged() as opened:
                if before is not None and _covers(before.manifest, opened):
                    return False
                await asyncio.to_thread(opened.built.link_to, folder)
                version, built_at = opened.version, opened.built_at
                deleted, parameters = opened.built.deleted, dict(opened.built.parameters)
            manifest = IndexManifest(
                software=self._software(),
                collection=record.id,
                kind=self.kind,
                engine=record.engine,
                version=version,
                token=uuid.uuid4().hex,
                built_at=built_at,
                deleted=deleted,
                parameters=parameters,
                files=await asyncio.to_thread(checksums, folder),
            )
            if await database.write(_note, manifest, None if before is None else before.manifest.token):
                await asyncio.to_thread(self.folders.publish, folder, manifest)
            return True
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _fits(self, manifest: IndexManifest, record: CollectionRecord) -> bool:
        return (
            (manifest.software, manifest.collection, manifest.kind)
            == (self._software(), record.id, self.kind)
            and manifest.engine == record.engine
            and record.floor <= manifest.version <= record.version
        )

    def _new(self, collection: int, built_at: float) -> F | None:
        folder = self.folders.new_working(collection, self.kind, built_at)
        return None if folder is None else self._in(folder, {})

    def _opened(self, saved: SavedIndex) -> F | None:
        folder = self.folders.borrow(saved)
        return None if folder is None else self._in(folder, saved.manifest.parameters)

    def _in(self, folder: Path, parameters: Mapping[str, str]) -> F | None:
        """The index in a folder, which is removed with it; None if it can't be opened."""
        try:
            index = self._make(folder, parameters)
        except (OSError, ValueError) as error:
            log.warning("an index can't be opened in %s: %s", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
            return None
        self.folders.bind(index, folder)
        return index


def _covers(saved: IndexManifest, opened: OpenedIndex[Any]) -> bool:
    """Whether what another process has saved is at least as good."""
    if saved.built_at > time.time():  # the clock was set back
        return False
    form = opened.built.parameters.get(FORM)
    if form and saved.parameters.get(FORM) != form:
        return False
    return saved.version >= opened.version and saved.built_at >= opened.built_at


def _time_between_changes(unit: Unit, collection: int) -> float:
    """The time while nobody changes the collection: a deletion that began before is committed."""
    mine = select(CollectionRecord.id).where(CollectionRecord.id == collection)
    unit.session.execute(mine.with_for_update())
    return time.time()


def number_of_points(session: Session, record: CollectionRecord) -> int:
    """How many points a collection has, counted only up to `WORTH_SAVING`."""
    mine = (PointRecord.collection_id == record.id) & (PointRecord.version <= record.version)
    some = select(PointRecord.label).where(mine).limit(WORTH_SAVING).subquery()
    return int(session.scalar(select(func.count()).select_from(some)) or 0)


def _version_of(session: Session, token: str, collection: int) -> int | None:
    query = select(SavedIndexRecord.version).where(
        SavedIndexRecord.token == token, SavedIndexRecord.collection_id == collection
    )
    return session.scalar(query)


def _note(unit: Unit, manifest: IndexManifest, before: str | None) -> bool:
    """Remember that an index was saved at this version; False if this database is not at it."""
    mine = SavedIndexRecord.collection_id == manifest.collection
    version = unit.session.scalar(
        select(CollectionRecord.version).where(CollectionRecord.id == manifest.collection)
    )
    if version is None or version < manifest.version:
        return False
    last = int(unit.session.scalar(select(func.max(SavedIndexRecord.number)).where(mine)) or 0)
    gone = (SavedIndexRecord.token == before) | (SavedIndexRecord.number <= last - _MOST_TOKENS)
    unit.session.execute(delete(SavedIndexRecord).where(mine, gone))
    values: dict[str, Any] = {"token": manifest.token, "version": manifest.version, "number": last + 1}
    unit.session.add(SavedIndexRecord(collection_id=manifest.collection, **values))
    return True
