"""Files as they are uploaded: kept as they are until they are deleted."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session

from builtin_plugins.openai_files.errors import FileNotKnown
from builtin_plugins.openai_files.models import MakingRequest, UploadedFile
from builtin_plugins.openai_files.names import file_name, key_of, row_in
from builtin_plugins.openai_files.schemas import FileOut, FileQuery
from builtin_plugins.openai_files.services.retries import RETRIED
from builtin_plugins.openai_files.settings import OpenAIFilesSettings
from builtin_plugins.rag import api as rag
from kernel.sdk import Account, Caller, Platform, Scope, Unauthorized, Unit, scope_of, utc_now
from kernel.sdk.http import ReceivedFile

_MEGABYTE: Final = 1024 * 1024


async def add(caller: Caller, received: ReceivedFile, purpose: str, *, is_retry: bool) -> FileOut:
    """Keep a file; it is durable when this returns. A retry of the same upload is the same file.

    Raises StorageLimit, and Unauthorized if the account was deleted meanwhile.
    """
    limit = caller.platform.settings_of(OpenAIFilesSettings).openai_files_account_mb * _MEGABYTE
    file = UploadedFile(
        id=str(uuid.uuid4()),
        owner_id=caller.id,
        visibility="private",
        filename=received.filename,
        purpose=purpose,
        size_bytes=received.staged.size,
        sha256=received.staged.sha256,
        created_at=utc_now(),
    )

    def write(unit: Unit) -> FileOut:
        _hold_owner(unit, caller)
        unit.lock(f"openai_files.usage.{file.owner_id}")
        earlier = _uploaded_before(unit.session, file) if is_retry else None
        if earlier is None:
            _admit(unit.session, file, limit)
            unit.session.add(file)
            caller.platform.blobs.keep(unit, received.staged, file.holder)
        return render(earlier or file)

    return await caller.platform.database.write(write)


def _hold_owner(unit: Unit, caller: Caller) -> None:
    """Keep the account until the end of the unit: a deletion comes later, and finds the file."""
    if caller.id is None:
        return
    mine = (Account.id == caller.id) & Account.deleted_at.is_(None)
    account = select(Account.id).where(mine).with_for_update(read=True)
    if unit.session.scalar(account) is None:
        raise Unauthorized("The account has been deleted")


def _uploaded_before(session: Session, file: UploadedFile) -> UploadedFile | None:
    same = (
        (UploadedFile.owner_id == file.owner_id)
        & (UploadedFile.sha256 == file.sha256)
        & (UploadedFile.filename == file.filename)
        & (UploadedFile.purpose == file.purpose)
        & (UploadedFile.created_at > file.created_at - RETRIED)
    )
    earlier: UploadedFile | None = session.scalar(
        select(UploadedFile).where(same).order_by(UploadedFile.created_at.desc()).limit(1)
    )
    return earlier


def _admit(session: Session, file: UploadedFile, limit: int) -> None:
    mine = UploadedFile.owner_id == file.owner_id
    used = int(session.scalar(select(func.sum(UploadedFile.size_bytes)).where(mine)) or 0)
    if limit and used + file.size_bytes > limit:
        raise rag.StorageLimit(
            f"The uploaded files of this account take up {used / _MEGABYTE:.1f} of {limit // _MEGABYTE} MB, "
            f"and this one has {file.size_bytes / _MEGABYTE:.1f} MB. Delete some files, or ask the "
            "operator for more room."
        )


async def list_page(caller: Caller, query: FileQuery) -> tuple[list[FileOut], bool]:
    """The caller's files, and whether there are more. Raises Unprocessable."""
    scope = await scope_of(caller.platform, caller.principal)
    page = rag.CursorPage(
        query.limit,
        query.order == "desc",
        None if query.after is None else row_in(query.after),
        None if query.before is None else row_in(query.before),
    )

    def read(session: Session) -> tuple[list[FileOut], bool]:
        only = [] if query.purpose is None else [UploadedFile.purpose == query.purpose]
        rows, more = rag.read_cursor_page(
            session,
            UploadedFile,
            UploadedFile.created_at,
            UploadedFile.id,
            _mine(scope),
            page,
            *only,
        )
        return [render(row) for row in rows], more

    return await caller.platform.database.read(read)


async def get(caller: Caller, file_id: str) -> UploadedFile:
    """A file of the caller's. Raises FileNotKnown."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_get, scope, file_id)


async def among(caller: Caller, file_ids: Sequence[str]) -> dict[str, UploadedFile]:
    """Those of these files that are the caller's, by the id of their rows."""
    scope = await scope_of(caller.platform, caller.principal)
    row_ids = [row_in(one) for one in file_ids]

    def read(session: Session) -> dict[str, UploadedFile]:
        query = select(UploadedFile).where(_mine(scope), UploadedFile.id.in_(row_ids))
        return {row.id: row for row in session.scalars(query)}

    return await caller.platform.database.read(read)


def _mine(scope: Scope) -> ColumnElement[bool]:
    """The caller's own files: administrators manage knowledge bases, not what others have uploaded."""
    return scope.sees(UploadedFile) & (UploadedFile.owner_id == scope.account_id)


def _get(session: Session, scope: Scope, file_id: str) -> UploadedFile:
    query = select(UploadedFile).where(_mine(scope), UploadedFile.id == row_in(file_id))
    file: UploadedFile | None = session.scalar(query)
    if file is None:
        raise FileNotKnown()
    return file


async def show(caller: Caller, file_id: str) -> FileOut:
    """A file, or a document of a knowledge base that the caller may read. Raises FileNotKnown."""
    try:
        return render(await get(caller, file_id))
    except FileNotKnown:
        document = await _document(caller, file_id)
    return FileOut(
        id=file_name(document.id),
        bytes=document.size_bytes,
        created_at=int(document.uploaded_at.timestamp()),
        filename=document.filename,
        purpose="assistants",
    )


async def content(caller: Caller, file_id: str) -> tuple[Path, UploadedFile | rag.CatalogDocument]:
    """A file with the bytes of a file or document, and its record. Raises FileNotKnown."""
    try:
        file = await get(caller, file_id)
    except FileNotKnown:
        document = await _document(caller, file_id)
        return await caller.platform.resource(rag.CATALOG).original(caller, document), document
    return await caller.platform.blobs.local(file.sha256), file


async def _document(caller: Caller, file_id: str) -> rag.CatalogDocument:
    row = row_in(file_id)
    document = (await caller.platform.resource(rag.CATALOG).by_ids(caller, [row])).get(row)
    if document is None:
        raise FileNotKnown()
    return document


async def remove(caller: Caller, file_id: str) -> None:
    """Delete a file, and the documents that were made of it where the caller may. Raises FileNotKnown."""
    file = await get(caller, file_id)
    await _drop_documents(caller, file.id)
    await caller.platform.database.write(_remove, caller.platform, file.id)
    await _drop_documents(caller, file.id)  # of those who put it into a vector store meanwhile


async def _drop_documents(caller: Caller, row_id: str) -> None:
    hooks = caller.platform.hooks
    for entry in await caller.platform.resource(rag.CATALOG).keyed(caller, [key_of(row_id)]):
        try:
            await hooks.ask(rag.drop_document, caller, entry.knowledge_base_id, key_of(row_id))
        except rag.NotOwner:
            continue


def _remove(unit: Unit, platform: Platform, row_id: str) -> None:
    row = unit.session.get(UploadedFile, row_id)
    if row is not None:
        platform.blobs.release(unit, row.sha256, row.holder)
        unit.session.delete(row)


async def remove_owned(platform: Platform, account_id: int) -> None:
    """Delete the files of a deleted account."""

    def write(unit: Unit) -> None:
        unit.session.execute(delete(MakingRequest).where(MakingRequest.owner_id == account_id))
        rows = unit.session.scalars(select(UploadedFile).where(UploadedFile.owner_id == account_id))
        for row in rows.all():
            platform.blobs.release(unit, row.sha256, row.holder)
            unit.session.delete(row)

    await platform.database.write(write)


def render(row: UploadedFile) -> FileOut:
    """A file as clients see it."""
    return FileOut(
        id=file_name(row.id),
        bytes=row.size_bytes,
        created_at=int(row.created_at.timestamp()),
        filename=row.filename,
        purpose=row.purpose,
    )
