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
from kernel.sdk import Caller, Unavailable, Unit, Unprocessable, utc_now
from kernel.sdk.http import ReceivedFile

_KEPT: Final = "kept:"
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
    wanted = {one.place: one for one in manifest}
    for place, one in wanted.items():
        row = stored.get(place)
        if row is None:
            added.append(NewFile(filename=one.filename, path=one.path))
        elif row.checksum != one.checksum:
            stale = _KEPT + row.document_id
            modified.append(ChangedFile(filename=one.filename, path=one.path, stale_file_id=stale))
        else:
            unmodified += 1
    return SyncDifference(
        added=added,
        modified=modified,
        deleted=[_stale(row) for place, row in stored.items() if place not in wanted],
        unmodified_count=unmodified,
        directory_map={one.path: one.path for one in manifest if one.path},
    )


def _stale(row: SyncedFile) -> StaleFile:
    folder, _, name = row.path.rpartition("/")
    return StaleFile(file_id=row.document_id, filename=name, path=folder)


async def upload(caller: Caller, note: UploadNote, received: ReceivedFile) -> SyncedUpload:
    """Store a file as the document for its path, or as its next version; it is durable when this returns.

    Raises what `put_document` raises.
    """
    place = place_of(note.directory_id or "", received.filename)
    if len(place) > LONGEST_PATH:
        message = f"folder and name must have at most {LONGEST_PATH} characters"
        raise Unprocessable.field(("body", "metadata", "directory_id"), message)
    document = rag.PluginDocument(key_of(place), received.filename, rag.read_portions(received.staged.path))
    document_id = await caller.platform.hooks.ask(rag.put_document, caller, note.knowledge_id, document)
    if document_id is None:
        raise Unavailable("Documents can't be stored now; try again later")
    row = SyncedFile(
        knowledge_base_id=note.knowledge_id,
        path=place,
        checksum=note.file_hash,
        size_bytes=received.staged.size,
        document_id=document_id,
        changed_at=utc_now(),
    )
    await caller.platform.database.write(_store, row)
    return SyncedUpload(id=document_id, filename=received.filename)


def _store(unit: Unit, row: SyncedFile) -> None:
    unit.session.merge(row)


async def clean_up(caller: Caller, base_id: str, file_ids: Sequence[str] | None) -> int:
    """Remove these files that the synchronizer has put in, or all of them, each with a receipt.

    Others are left alone, and so are those whose next version comes. Raises KnowledgeBaseNotFound, NotOwner.
    """
    await caller.platform.resource(rag.CATALOG).check_own(caller, base_id)
    rows = await caller.platform.database.read(_rows, base_id)
    wanted = None if file_ids is None else set(file_ids)
    removed = 0
    for row in rows:
        if wanted is not None and row.document_id not in wanted:
            continue
        await caller.platform.hooks.ask(rag.drop_document, caller, base_id, key_of(row.path))
        await caller.platform.database.write(_forget, base_id, row.path)
        removed += 1
    return removed


def _forget(unit: Unit, base_id: str, path: str) -> None:
    mine = (SyncedFile.knowledge_base_id == base_id) & (SyncedFile.path == path)
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
    found = unit.session.scalars(select(SyncedFile).where(where)).all()
    for row in found:
        unit.session.delete(row)
    return len(found)


def count_rows(session: Session, base_id: str, document_id: str | None) -> int:
    """How many rows there are of a document, or of a knowledge base."""
    where = SyncedFile.knowledge_base_id == base_id
    if document_id is not None:
        where = where & (SyncedFile.document_id == document_id)
    return int(session.scalar(select(func.count()).select_from(SyncedFile).where(where)) or 0)
