"""Batches: many files that go into a vector store together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from builtin_plugins.openai_files.errors import BatchNotKnown, FileNotKnown
from builtin_plugins.openai_files.models import FileBatch, UploadedFile
from builtin_plugins.openai_files.names import batch_name, file_name, key_of, row_in, store_name
from builtin_plugins.openai_files.schemas import (
    Attributes,
    BatchCreate,
    BatchOut,
    FileStatus,
    LastError,
    StoreFileCreate,
    StoreFileOut,
    StoreFileQuery,
)
from builtin_plugins.openai_files.services import files, store_files
from builtin_plugins.openai_files.services.retries import Attempt, id_for
from builtin_plugins.openai_files.services.stores import counts_of
from builtin_plugins.openai_files.settings import OpenAIFilesSettings
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, PayloadTooLarge, Unit, Unprocessable, utc_now


async def create(caller: Caller, store_id: str, request: BatchCreate, attempt: Attempt) -> BatchOut:
    """Put files into a vector store. Raises what `add` raises, and Unprocessable."""
    base_id = row_in(store_id)
    await caller.platform.resource(rag.CATALOG).check_own(caller, base_id)
    batch_files = await files_of(caller, request)
    await _check_attributes(caller, base_id, request)
    return await add(caller, store_id, batch_files, await id_for(caller, attempt, request, base_id))


async def _check_attributes(caller: Caller, base_id: str, request: BatchCreate) -> None:
    if not request.files:
        await store_files.check_attributes(caller, base_id, request.attributes)
    for at, entry in enumerate(request.files):
        await store_files.check_attributes(caller, base_id, entry.attributes, "files", at)


async def add(
    caller: Caller,
    store_id: str,
    batch_files: Sequence[tuple[UploadedFile, Attributes | None]],
    batch_id: str,
) -> BatchOut:
    """Put files into a vector store; one that can't be taken is counted as failed. A batch that has this id
    already stays as it is.

    All of it is durable when this returns. Raises KnowledgeBaseNotFound, NotOwner, and QueueLimit: what was
    stored until then stays, and a retry continues.
    """
    base_id = row_in(store_id)
    await caller.platform.resource(rag.CATALOG).check_own(caller, base_id)
    before = await caller.platform.database.read(_read, batch_id)
    if before is not None:
        return await _state(caller, before)
    refused = {}
    for file, attributes in batch_files:
        reason = await _put(caller, base_id, file, attributes)
        if reason is not None:
            refused[file.id] = reason
    row = FileBatch(
        id=batch_id,
        knowledge_base_id=base_id,
        file_ids=list(dict.fromkeys(file.id for file, _ in batch_files)),
        refused=refused,
        cancelled=[],
        is_cancelled=False,
        created_at=utc_now(),
    )
    await caller.platform.database.write(_store, row)
    return await _state(caller, row)


async def _put(
    caller: Caller, base_id: str, file: UploadedFile, attributes: Attributes | None
) -> tuple[str, str] | None:
    """Put one file in; returns why it can't be taken, as a code and a message."""
    try:
        await store_files.put(caller, base_id, file, attributes)
    except rag.UnsupportedDocument as error:
        return "unsupported_file", str(error.detail)
    except rag.EmptyDocument:
        return "invalid_file", "The file is empty"
    except FileNotKnown:
        return "invalid_file", "The file was deleted meanwhile"
    except (rag.StorageLimit, PayloadTooLarge) as error:
        return "server_error", str(error.detail)
    return None


def _store(unit: Unit, row: FileBatch) -> None:
    unit.session.merge(row)


async def files_of(caller: Caller, request: BatchCreate) -> list[tuple[UploadedFile, Attributes | None]]:
    """The files that a batch names, with their attributes. Raises Unprocessable."""
    several = _file_requests(caller, request)
    by_id = await files.among(caller, [entry.file_id for entry in several])
    batch_files = []
    for at, entry in enumerate(several):
        file = by_id.get(row_in(entry.file_id))
        if file is None:
            place = ("body", "files", at, "file_id") if request.files else ("body", "file_ids", at)
            raise Unprocessable.field(place, "there is no such file", entry.file_id)
        batch_files.append((file, entry.attributes))
    return batch_files


def _file_requests(caller: Caller, request: BatchCreate) -> list[StoreFileCreate]:
    if bool(request.file_ids) == bool(request.files):
        raise Unprocessable.field(("body", "file_ids"), "send either file_ids or files, and at least one")
    several = request.files or [
        StoreFileCreate(file_id=one, attributes=request.attributes) for one in request.file_ids
    ]
    most = caller.platform.settings_of(OpenAIFilesSettings).openai_files_at_once
    if len(several) > most:
        field = "files" if request.files else "file_ids"
        raise Unprocessable.field(("body", field), f"must name at most {most} files")
    for strategy in (request.chunking_strategy, *(one.chunking_strategy for one in several)):
        store_files.check_chunking(strategy)
    return several


async def show(caller: Caller, store_id: str, batch_id: str) -> BatchOut:
    """A batch and how far it is. Raises KnowledgeBaseNotFound, BatchNotKnown."""
    return await _state(caller, await _find(caller, store_id, batch_id))


async def _find(caller: Caller, store_id: str, batch_id: str) -> FileBatch:
    base_id, row_id = row_in(store_id), row_in(batch_id)
    await caller.platform.resource(rag.CATALOG).base(caller, base_id)

    row = await caller.platform.database.read(_read, row_id)
    if row is None or row.knowledge_base_id != base_id:
        raise BatchNotKnown()
    return row


def _read(session: Session, batch_id: str) -> FileBatch | None:
    return session.get(FileBatch, batch_id)


async def cancel(caller: Caller, store_id: str, batch_id: str) -> BatchOut:
    """Take out the files of a batch that are still to be read. Raises NotOwner."""
    await caller.platform.resource(rag.CATALOG).check_own(caller, row_in(store_id))
    row = await _find(caller, store_id, batch_id)
    waiting = [
        file_id for file_id, entry in (await _entries(caller, row)).items() if entry.status == "processing"
    ]
    for file_id in waiting:
        await caller.platform.hooks.ask(rag.drop_document, caller, row.knowledge_base_id, key_of(file_id))

    def write(unit: Unit) -> FileBatch:
        batch = unit.session.get(FileBatch, row.id, with_for_update=True)
        if batch is None:
            raise BatchNotKnown()
        batch.cancelled = [*batch.cancelled, *(one for one in waiting if one not in batch.cancelled)]
        batch.is_cancelled = True
        return batch

    return await _state(caller, await caller.platform.database.write(write))


async def _entries(caller: Caller, row: FileBatch) -> Mapping[str, rag.CatalogDocument]:
    """The documents of a batch that are still there, by the ids of their files."""
    by_key = {key_of(one): one for one in row.file_ids}
    documents = await caller.platform.resource(rag.CATALOG).keyed(caller, list(by_key), row.knowledge_base_id)
    return {by_key[one.key]: one for one in documents if one.key is not None}


async def _state(caller: Caller, row: FileBatch) -> BatchOut:
    entries = await _entries(caller, row)
    statuses = Counter(one.status for one in entries.values())
    statuses["failed"] += len(row.refused)
    counts = counts_of(statuses, len(row.cancelled))
    status: FileStatus = "in_progress" if counts.in_progress else "completed"
    return BatchOut(
        id=batch_name(row.id),
        created_at=int(row.created_at.timestamp()),
        vector_store_id=store_name(row.knowledge_base_id),
        status="cancelled" if row.is_cancelled else status,
        file_counts=counts,
    )


async def list_page(
    caller: Caller, store_id: str, batch_id: str, query: StoreFileQuery
) -> tuple[list[StoreFileOut], bool]:
    """The files of a batch, and whether there are more. Raises Unprocessable."""
    row = await _find(caller, store_id, batch_id)
    entries = await _entries(caller, row)
    every = [_rendered(row, one, entries.get(one)) for one in row.file_ids]
    if query.order == "desc":
        every.reverse()
    start, end = _place(every, "after", query.after), _place(every, "before", query.before)
    part = every[0 if start is None else start + 1 : end]
    part = [one for one in part if query.filter in (None, one.status)]
    if end is not None and start is None:
        return part[-query.limit :], len(part) > query.limit
    return part[: query.limit], len(part) > query.limit


def _place(every: Sequence[StoreFileOut], side: str, name: str | None) -> int | None:
    if name is None:
        return None
    for at, file in enumerate(every):
        if file.id == name:
            return at
    raise Unprocessable.field(("query", side), "names nothing in this list", name)


def _rendered(row: FileBatch, file_id: str, entry: rag.CatalogDocument | None) -> StoreFileOut:
    if entry is not None:
        return store_files.render(entry)
    code, message = row.refused.get(file_id, (None, ""))
    return StoreFileOut(
        id=file_name(file_id),
        created_at=int(row.created_at.timestamp()),
        vector_store_id=store_name(row.knowledge_base_id),
        status="cancelled" if code is None else "failed",
        last_error=None if code is None else LastError(code=code, message=message),
        usage_bytes=0,
        attributes={},
        filename="",
    )
