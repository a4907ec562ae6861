"""Synchronizing: what differs, what is uploaded, what goes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from builtin_plugins.oikb_sync.models import SyncedFile
from builtin_plugins.oikb_sync.schemas import (
    LONGEST_PATH,
    ChangedFile,
    NewFile,
    SourceFile,
    StaleFile,
    SyncDifference,
    SyncedEntry,
    SyncedPage,
    SyncedUpload,
    UploadNote,
    place_of,
)
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, PlatformError, Unavailable, Unit, Unprocessable, utc_now
from kernel.sdk.http import ReceivedFile

_STORED_PREFIX: Final = "kept:"
"""Before the id of a changed file: it is not removed before its next version is read."""


def key_of(place: str) -> str:
    """The key of the document for a path."""
    return f"oikb_sync:{hashlib.sha256(place.encode()).hexdigest()}"


async def difference(caller: Caller, base_id: str, manifest: Sequence[SourceFile]) -> SyncDifference:
    """What has to be uploaded and removed so that a knowledge base has these files, beside those of others.

    Raises KnowledgeBaseNotFound, NotOwner.
    """
    await caller.platform.resource(rag.CATALOG).check_own(caller, base_id)
    stored = {row.path: row for row in await caller.platform.database.read(_rows, base_id)}
    return await asyncio.to_thread(_difference, manifest, stored)


def _difference(manifest: Sequence[SourceFile], stored: dict[str, SyncedFile]) -> SyncDifference:
    added: list[NewFile] = []
    modified: list[ChangedFile] = []
    unmodified = 0
    manifest_files = {entry.place: entry for entry in manifest}
    for place, entry in manifest_files.items():
        row = stored.get(place)
        if row is None or not row.document_id:
            added.append(NewFile(filename=entry.filename, path=entry.path))
        elif row.checksum != entry.checksum:
            stale = _STORED_PREFIX + row.document_id
            modified.append(ChangedFile(filename=entry.filename, path=entry.path, stale_file_id=stale))
        else:
            unmodified += 1
    return SyncDifference(
        added=added,
        modified=modified,
        deleted=[_stale(row) for place, row in stored.items() if place not in manifest_files],
        unmodified_count=unmodified,
        directory_map={entry.path: entry.path for entry in manifest if entry.path},
    )


def _stale(row: SyncedFile) -> StaleFile:
    folder, _, name = row.path.rpartition("/")
    return StaleFile(file_id=_id_of(row), filename=name, path=folder)


def _id_of(row: SyncedFile) -> str:
    """Its document, or the digest of its path if an upload was cut off, which may have left a document."""
    return row.document_id or key_of(row.path).rpartition(":")[2]


async def upload(caller: Caller, note: UploadNote, received: ReceivedFile) -> SyncedUpload:
    """Store a file as the document for its path, or as its next version; it is durable when this returns.

    The path is noted first, so that an upload that is cut off can be cleaned up. Raises what `put_document`
    raises.
    """
    base_id = note.knowledge_id
    await caller.platform.resource(rag.CATALOG).check_own(caller, base_id)
    place = place_of(note.directory_id or "", received.filename)
    if len(place) > LONGEST_PATH:
        message = f"folder and name must have at most {LONGEST_PATH} characters"
        raise Unprocessable.field(("body", "metadata", "directory_id"), message)
    document = rag.PluginDocument(key_of(place), received.filename, rag.read_portions(received.staged.path))
    await caller.platform.database.write(_begin, base_id, place)
    try:
        document_id = await caller.platform.hooks.ask(rag.put_document, caller, base_id, document)
    except PlatformError:
        await caller.platform.database.write(_forget, base_id, place, only_unfinished=True)
        raise
    if document_id is None:
        raise Unavailable("Documents can't be stored now; try again later")
    stored = await caller.platform.resource(rag.CATALOG).document(caller, base_id, key_of(place))
    is_newest = stored.sha256 == received.staged.sha256  # otherwise another upload came after this one
    checksum = note.file_hash if is_newest else ""
    await caller.platform.database.write(_store, base_id, place, stored.id, checksum, received.staged.size)
    return SyncedUpload(id=document_id, filename=received.filename)


def _begin(unit: Unit, base_id: str, path: str) -> None:
    unit.lock(f"oikb_sync.{base_id}")
    if unit.session.get(SyncedFile, (base_id, path)) is None:
        unfinished = SyncedFile(
            knowledge_base_id=base_id, path=path, checksum="", size_bytes=0, document_id=""
        )
        unit.session.add(unfinished)


def _store(unit: Unit, base_id: str, path: str, document_id: str, checksum: str, size_bytes: int) -> None:
    """Note what was uploaded for a path, unless the path or the knowledge base was removed meanwhile."""
    row = unit.session.get(SyncedFile, (base_id, path), with_for_update=True)
    if row is not None:
        row.document_id, row.checksum, row.size_bytes = document_id, checksum, size_bytes
        row.changed_at = utc_now()


async def clean_up(caller: Caller, base_id: str, file_ids: Sequence[str] | None) -> int:
    """Remove these files that the synchronizer has put in, or all of them, each with a receipt.

    Others are left alone, and so are those whose next version comes. Raises KnowledgeBaseNotFound, NotOwner.
    """
    await caller.platform.resource(rag.CATALOG).check_own(caller, base_id)
    rows = await caller.platform.database.read(_rows, base_id)
    chosen_ids = None if file_ids is None else set(file_ids)
    removed = 0
    for row in rows:
        if chosen_ids is not None and _id_of(row) not in chosen_ids:
            continue
        await caller.platform.hooks.ask(rag.drop_document, caller, base_id, key_of(row.path))
        await caller.platform.database.write(_forget, base_id, row.path)
        removed += 1
    return removed


def _forget(unit: Unit, base_id: str, path: str, *, only_unfinished: bool = False) -> None:
    mine = (SyncedFile.knowledge_base_id == base_id) & (SyncedFile.path == path)
    if only_unfinished:
        mine = mine & (SyncedFile.document_id == "")
    unit.session.execute(delete(SyncedFile).where(mine))


async def list_files(caller: Caller, base_id: str) -> SyncedPage:
    """The files that the synchronizer has put in. Raises KnowledgeBaseNotFound."""
    await caller.platform.resource(rag.CATALOG).base(caller, base_id)
    rows = await caller.platform.database.read(_rows, base_id)
    items = [
        SyncedEntry(
            id=row.document_id,
            filename=row.path.rpartition("/")[2],
            meta={"name": row.path, "size": row.size_bytes, "file_hash": row.checksum},
        )
        for row in rows
        if row.document_id
    ]
    return SyncedPage(items=items, total=len(items))


def _rows(session: Session, base_id: str) -> Sequence[SyncedFile]:
    mine = SyncedFile.knowledge_base_id == base_id
    return session.scalars(select(SyncedFile).where(mine).order_by(SyncedFile.path)).all()


def remove_rows(unit: Unit, base_id: str, document_id: str | None) -> int:
    """Forget a document, or all of a knowledge base; returns how many rows there were."""
    where = SyncedFile.knowledge_base_id == base_id
    if document_id is not None:
        where = where & (SyncedFile.document_id == document_id)
    rows = unit.session.scalars(select(SyncedFile).where(where)).all()
    for row in rows:
        unit.session.delete(row)
    return len(rows)


def count_rows(session: Session, base_id: str, document_id: str | None) -> int:
    """How many rows there are of a document, or of a knowledge base."""
    where = SyncedFile.knowledge_base_id == base_id
    if document_id is not None:
        where = where & (SyncedFile.document_id == document_id)
    return int(session.scalar(select(func.count()).select_from(SyncedFile).where(where)) or 0)
