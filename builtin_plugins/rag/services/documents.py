"""Documents: add, list, show, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

from sqlalchemy import ColumnElement, Select, bindparam, func, literal_column, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api
from builtin_plugins.rag.errors import DocumentNotFound
from builtin_plugins.rag.events import DocumentDeleted
from builtin_plugins.rag.filters.binding import FilterSource, bind, json_filter
from builtin_plugins.rag.filters.grammar import MetadataFilter
from builtin_plugins.rag.metadata.editing import IncomingMetadata, look_up_people, store_incoming
from builtin_plugins.rag.metadata.rendering import Metadata, load_metadata, name_people, read_metadata
from builtin_plugins.rag.models import (
    SUPERSEDED,
    Document,
    KnowledgeBase,
    earlier_collection,
    reading_collection,
)
from builtin_plugins.rag.rights.audiences import DocumentReaders, settle_audience
from builtin_plugins.rag.rights.reading import read_binds, readable, readable_by_binds
from builtin_plugins.rag.schemas import ChunkOut, DocumentOut, DocumentQuery, Status, UploadedDocument
from builtin_plugins.rag.schemas_receipts import Receipt
from builtin_plugins.rag.schemas_trash import Trash
from builtin_plugins.rag.services import (
    deletions,
    identities,
    knowledge_bases,
    loading,
    receipts,
    trash,
    versions,
)
from builtin_plugins.rag.services.identities import CURRENT, Replacement
from builtin_plugins.rag.services.ingestion_jobs import queue_document
from builtin_plugins.rag.services.loading import seen_among
from builtin_plugins.rag.services.metadata import remove_values
from builtin_plugins.rag.services.receipts import SIGNER, Signer
from builtin_plugins.rag.services.records import (
    Arrived,
    keep_document,
    original,
    read_portions,
    write_kept,
)
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.vectors.api import VECTORS, StoredPoint
from kernel.sdk import Caller, Job, NoPayload, PageQuery, Platform, Prepared, Scope, Unit, audit, scope_of
from kernel.sdk.accounts import operator_of, visible
from kernel.sdk.storage import page_of, read_page

_WAITS_FOR_ROOM = "The server's disk is full; reading continues once there is room."
_ALL = 2**31 - 1
"""The limit of a page without one."""
PLAIN = Replacement()
"""An upload that replaces nothing."""
_MANY = 1000
"""Documents that are rendered in a thread: each takes about 5 µs."""


@dataclass(frozen=True)
class Guarding:
    """Who may read a document that a plugin keeps; without `readers`, whoever sees its knowledge base."""

    readers: DocumentReaders | None


async def check_upload(caller: Caller, kb_id: str) -> None:
    """Refuse an upload before a byte is read. Raises KnowledgeBaseNotFound, NotOwner, and Unavailable for a
    damaged database.
    """
    caller.platform.database.require_sound()
    await loading.own_knowledge_base(caller, kb_id)


async def add(
    caller: Caller,
    kb_id: str,
    file: Arrived,
    placing: Replacement = PLAIN,
    source: str | None = None,
    incoming: IncomingMetadata | None = None,
    guarding: Guarding | None = None,
) -> tuple[UploadedDocument, bool]:
    """Keep the file and queue its ingestion, in one transaction; returns the record, and whether it is new.

    The same bytes in one knowledge base are one document; one that had failed is tried again. Under an
    identity, other bytes are a new version. Its `incoming` metadata is stored with it; without `guarding`,
    its readers are those of the version before. Raises
    DocumentExists and VersionMismatch, as `placing` says, Unprocessable for such fields, and DocumentNotFound
    if the file is that of a document, `source`, which was deleted meanwhile.
    """
    scope = await scope_of(caller.platform, caller.principal)
    if incoming is not None:
        incoming = replace(incoming, people=await look_up_people(caller, kb_id, [incoming.values]))
    record, new = await write_kept(
        caller.platform, _add, caller, scope, kb_id, file, placing, source, incoming, guarding
    )
    await name_people(caller, [record.metadata])
    return record, new


def _add(
    unit: Unit,
    caller: Caller,
    scope: Scope,
    kb_id: str,
    file: Arrived,
    placing: Replacement,
    source: str | None,
    incoming: IncomingMetadata | None,
    guarding: Guarding | None,
) -> tuple[UploadedDocument, bool]:
    platform, base = caller.platform, loading.hold_own(unit.session, scope, kb_id)
    if source is not None:
        _find(unit.session, scope, kb_id, source)
    digest = file.staged.sha256
    identity = identities.settle_identity(unit.session, scope, base.id, file.filename, digest, placing)
    uploader = None if identities.is_of_plugin(identity) else scope.account_id
    file = replace(file, identity=identity, uploaded_by=uploader)
    if guarding is not None:
        audience = None if guarding.readers is None else settle_audience(unit, guarding.readers)
        file = replace(file, audience_id=audience, audience_settled=True)
    document, new = keep_document(unit, platform, base, file)
    if incoming is not None:
        # One that was there may be read at this moment, and what its file says is stored.
        unit.session.scalar(select(Document.id).where(Document.id == document.id).with_for_update())
        store_incoming(unit, base.id, document.id, incoming)
    if new:
        largest = platform.settings_of(RagSettings).large_document_mb * 1024 * 1024
        queue_document(unit, document, scope.account_id or base.owner_id, int(largest))
        if guarding is None:  # what a plugin keeps in step with its source is in its own report
            _note_upload(unit, caller, document)
    names = [] if guarding is not None else identities.same_name(unit.session, scope, document)
    metadata = {} if new and incoming is None else read_metadata(unit.session, document.id)
    return UploadedDocument(**render(document, metadata).model_dump(), same_name=names), new


def _note_upload(unit: Unit, caller: Caller, document: Document) -> None:
    place = {"knowledge_base_id": document.knowledge_base_id}
    audit(unit, "rag.document.uploaded", "document", document.id, after=place, origin=caller.origin)


async def restore(caller: Caller, kb_id: str, document_id: str) -> tuple[UploadedDocument, bool]:
    """Make a replaced version the newest again: its file is read again, as a further version.

    Raises KnowledgeBaseNotFound, NotOwner, DocumentNotFound, OriginalLost.
    """
    await check_upload(caller, kb_id)
    document, path = await content(caller, kb_id, document_id)
    limit = document.size_bytes
    staged = await caller.platform.blobs.stage(read_portions(path), limit)
    try:
        arrived = Arrived(staged, document.filename, document.content_type)
        return await add(caller, kb_id, arrived, Replacement(document.identity), document.id)
    finally:
        staged.discard()


async def find_by_path(caller: Caller, kb_id: str, path: str) -> DocumentOut:
    """The newest version of the document with a path. Raises KnowledgeBaseNotFound, DocumentNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    record = await caller.platform.database.read(_at_path, scope, kb_id, identities.identity_at(path))
    return await _with_metadata(caller, record)


def _at_path(session: Session, scope: Scope, kb_id: str, identity: str) -> DocumentOut:
    knowledge_bases.find(session, scope, kb_id)
    newest = identities.present(session, kb_id, identity)
    if newest is None:
        raise DocumentNotFound()
    return render(_find(session, scope, kb_id, newest.id))


async def list_versions(
    caller: Caller, kb_id: str, document_id: str, query: PageQuery
) -> tuple[list[DocumentOut], int]:
    """The versions of a document, newest first, and how many there are; the document is any of them.

    Raises KnowledgeBaseNotFound, DocumentNotFound.
    """
    scope = await scope_of(caller.platform, caller.principal)

    def read(session: Session) -> tuple[list[DocumentOut], int]:
        rows = versions.all_versions(session, _get(session, scope, kb_id, document_id))
        return [render(row) for row in rows[query.offset : query.offset + query.limit]], len(rows)

    documents, total = await caller.platform.database.read(read)
    metadata = await load_metadata(caller, [document.document_id for document in documents])
    for document in documents:
        document.metadata = metadata.get(document.document_id, {})
    return documents, total


async def list_page(caller: Caller, kb_id: str, query: DocumentQuery) -> tuple[list[DocumentOut], int]:
    """Documents of a visible knowledge base, oldest first, and how many there are.

    Raises KnowledgeBaseNotFound, and Unprocessable for a filter that can't be.
    """
    scope = await scope_of(caller.platform, caller.principal)
    disk_full = await caller.platform.disk.runs_short()
    limit = _ALL if query.limit is None else query.limit
    values = {"kb_id": kb_id, "parent_id": query.parent_id, "limit": limit, "offset": query.offset}
    parsed_filter = None if query.filter is None else json_filter(query.filter, ("query", "filter"))
    if parsed_filter is not None:
        read = partial(
            _filtered, scope=scope, values=values, status=query.status, parsed_filter=parsed_filter
        )
        rows, total = await caller.platform.database.read(read)
    else:
        binds = {**scope.binds, **read_binds(scope), **values}
        page = _PAGES[query.status, query.parent_id is not None]
        rows, total = await caller.platform.database.read(read_page, page, binds)
    if not total:  # the knowledge base itself may be missing
        await loading.knowledge_base(caller, kb_id)
    metadata = await load_metadata(caller, [row["id"] for row in rows])
    work = partial(_rendered, rows, metadata, disk_full)
    return await asyncio.to_thread(work) if len(rows) > _MANY else work(), total


def _filtered(
    session: Session,
    scope: Scope,
    values: Mapping[str, Any],
    status: Status | None,
    parsed_filter: MetadataFilter,
) -> tuple[list[dict[str, Any]], int]:
    """A page of the documents that match a filter, and how many do."""
    bases = seen_among(session, scope, [values["kb_id"]])
    if not bases:
        return [], 0
    matching = bind(session, scope, bases, [FilterSource(parsed_filter, ("query", "filter"))])
    conditions = [matching.condition(), CURRENT if status is None else Document.status == status]
    if values["parent_id"] is not None:
        conditions.append(Document.parent_id == values["parent_id"])
    total = session.scalar(select(func.count()).select_from(Document).where(*conditions))
    ordered = select(*_DOCUMENT.c).where(*conditions).order_by(Document.uploaded_at, Document.id)
    rows = session.execute(ordered.limit(values["limit"]).offset(values["offset"])).mappings()
    return [dict(row) for row in rows], int(total or 0)


def _rendered(
    rows: list[dict[str, Any]], metadata: Mapping[str, Metadata], disk_full: bool
) -> list[DocumentOut]:
    return [render(SimpleNamespace(**row), metadata.get(row["id"]), disk_full=disk_full) for row in rows]


async def _with_metadata(caller: Caller, record: DocumentOut) -> DocumentOut:
    metadata = await load_metadata(caller, [record.document_id])
    record.metadata = metadata.get(record.document_id, {})
    return record


async def show(caller: Caller, kb_id: str, document_id: str) -> DocumentOut:
    """The record of a document. Raises KnowledgeBaseNotFound, DocumentNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    values = {**scope.binds, **read_binds(scope), "kb_id": kb_id, "document_id": document_id}
    row = await caller.platform.database.read(_ONE.first, values)
    if row is None:
        await loading.knowledge_base(caller, kb_id)
        raise DocumentNotFound()
    record = render(SimpleNamespace(**row), disk_full=await caller.platform.disk.runs_short())
    return await _with_metadata(caller, record)


async def get(caller: Caller, kb_id: str, document_id: str) -> Document:
    """One document of a visible knowledge base that the caller may read.

    Raises KnowledgeBaseNotFound, DocumentNotFound.
    """
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_get, scope, kb_id, document_id)


def _get(session: Session, scope: Scope, kb_id: str, document_id: str) -> Document:
    knowledge_bases.find(session, scope, kb_id)
    return _find(session, scope, kb_id, document_id)


async def content(caller: Caller, kb_id: str, document_id: str) -> tuple[Document, Path]:
    """A document and the file with its original bytes.

    Raises KnowledgeBaseNotFound, DocumentNotFound, OriginalLost.
    """
    document = await get(caller, kb_id, document_id)
    return document, await original(caller.platform, document)


async def chunks(
    caller: Caller, kb_id: str, document_id: str, limit: int, offset: int
) -> tuple[list[ChunkOut], int]:
    """A document's passages in order, and how many there are.

    Raises KnowledgeBaseNotFound, DocumentNotFound.
    """
    document = await get(caller, kb_id, document_id)
    collection = f"rag:{kb_id}"
    if document.status == SUPERSEDED:
        collection = earlier_collection(kb_id)
    elif document.searchable_count:
        collection = reading_collection(kb_id)
    points, total = await caller.platform.resource(VECTORS).points(collection, document_id, limit, offset)
    return [_chunk(point) for point in points], total


async def remove(caller: Caller, kb_id: str, document_id: str) -> Receipt:
    """Delete a document with its passages, vectors and file, and all its versions, or only an earlier one, or
    one that failed while an earlier one answers; no search that starts later finds it.

    Returns the receipt. Raises KnowledgeBaseNotFound, NotOwner, DocumentNotFound.
    """
    scope = await scope_of(caller.platform, caller.principal)
    signer = caller.platform.resource(SIGNER)
    receipt = await caller.platform.database.write(_remove, caller, signer, scope, kb_id, document_id)
    await caller.platform.database.scrub()
    return receipt


def _remove(
    unit: Unit, caller: Caller, signer: Signer, scope: Scope, kb_id: str, document_id: str
) -> Receipt:
    base = knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
    document = _find(unit.session, scope, kb_id, document_id)
    rows = [document] if _is_alone(unit.session, document) else versions.all_versions(unit.session, document)
    return _erase(unit, caller, signer, base, document, rows)


def _is_alone(session: Session, document: Document) -> bool:
    """Whether deleting it leaves other versions: it is an earlier one, or failed while one answers."""
    failed = document.status == "failed" and identities.replaced_by(session, document) is not None
    return failed or document.status == SUPERSEDED


async def move_to_trash(caller: Caller, kb_id: str, document_id: str) -> Receipt | None:
    """Put a document into the trash with all its versions, or delete it as `remove` does if there is no trash
    or other versions stay. Returns the receipt of a deletion.

    Raises KnowledgeBaseNotFound, NotOwner, DocumentNotFound.
    """
    if not caller.platform.settings_of(RagSettings).trash_days:
        return await remove(caller, kb_id, document_id)
    scope = await scope_of(caller.platform, caller.principal)
    signer = caller.platform.resource(SIGNER)

    def write(unit: Unit) -> Receipt | None:
        base = knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
        document = _find(unit.session, scope, kb_id, document_id)
        if _is_alone(unit.session, document):
            return _erase(unit, caller, signer, base, document, [document])
        trash.put(unit, caller, document, versions.all_versions(unit.session, document))
        return None

    receipt = await caller.platform.database.write(write)
    if receipt is not None:
        await caller.platform.database.scrub()
    return receipt


async def list_trash(caller: Caller, kb_id: str, query: PageQuery) -> Trash:
    """A page of the trash of the caller's knowledge base. Raises KnowledgeBaseNotFound, NotOwner."""
    return await trash.list_page(caller, kb_id, query, knowledge_bases.find_own)


async def take_back(caller: Caller, kb_id: str, document_id: str) -> DocumentOut:
    """Take a document out of the trash. Raises KnowledgeBaseNotFound, NotOwner, DocumentNotFound."""
    scope = await scope_of(caller.platform, caller.principal)

    def write(unit: Unit) -> None:
        knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
        trash.restore(unit, caller, trash.find(unit.session, scope, kb_id, document_id))

    await caller.platform.database.write(write)
    return await show(caller, kb_id, document_id)


async def remove_from_trash(caller: Caller, kb_id: str, document_id: str) -> Receipt:
    """Delete a document in the trash for good, with all its versions; returns the receipt.

    Raises KnowledgeBaseNotFound, NotOwner, DocumentNotFound.
    """
    scope = await scope_of(caller.platform, caller.principal)
    signer = caller.platform.resource(SIGNER)

    def write(unit: Unit) -> Receipt:
        base = knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
        document = trash.find(unit.session, scope, kb_id, document_id)
        return _erase(unit, caller, signer, base, document, versions.all_versions(unit.session, document))

    receipt = await caller.platform.database.write(write)
    await caller.platform.database.scrub()
    return receipt


async def remove_kept(caller: Caller, kb_id: str, document_id: str) -> None:
    """Delete a document that a plugin keeps, with all its versions, whoever may read it, also in the trash.

    Raises KnowledgeBaseNotFound, NotOwner.
    """
    scope = await scope_of(caller.platform, caller.principal)
    signer = caller.platform.resource(SIGNER)

    def write(unit: Unit) -> None:
        base = knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
        document = unit.session.get(Document, document_id)
        if document is not None:
            rows = versions.all_versions(unit.session, document)
            _erase(unit, caller, signer, base, document, rows)

    await caller.platform.database.write(write)
    await caller.platform.database.scrub()


async def empty_trash(platform: Platform, _payload: NoPayload) -> None:
    """Once a day: delete what has been in the trash for longer than `trash_days`."""
    caller, signer = operator_of(platform), platform.resource(SIGNER)
    days = platform.settings_of(RagSettings).trash_days

    def write(unit: Unit) -> bool:
        overdue = trash.overdue(unit.session, unit, days)
        if overdue is None:
            return False
        base = unit.session.get(KnowledgeBase, overdue[0], with_for_update={"key_share": True})
        document = unit.session.get(Document, overdue[1])
        if base is not None and document is not None:
            rows = versions.all_versions(unit.session, document)
            _erase(unit, caller, signer, base, document, rows)
        return True

    while await platform.database.write(write):
        pass
    await platform.database.scrub()


EMPTY_TRASH = Job("rag.empty_trash", NoPayload, empty_trash, schedule="20 3 * * *")


def _erase(
    unit: Unit,
    caller: Caller,
    signer: Signer,
    base: KnowledgeBase,
    document: Document,
    rows: Sequence[Document],
) -> Receipt:
    """The row goes first: a running ingestion finds it gone and writes nothing more."""
    platform = caller.platform
    passages = summaries = 0
    values = remove_values(unit, [row.id for row in rows])
    for row in rows:
        unit.session.delete(row)
    unit.session.flush()
    vectors = platform.resource(VECTORS)
    for row in rows:
        for collection in filter(None, (base.collection, base.earlier_collection, base.coming_collection)):
            removed = vectors.remove_group(unit, collection, row.id)
            passages += removed if collection != base.coming_collection else 0
        vectors.remove_group(unit, base.reading_collection, row.id)
        summaries += vectors.remove_group(unit, base.tree_collection, row.id)
        platform.blobs.release(unit, row.sha256, row.holder)
        deletions.remember(unit, platform, base, row.sha256)
        unit.emit(DocumentDeleted(document_id=row.id, knowledge_base_id=base.id, owner_id=base.owner_id))
    own = [
        api.RemovedPart("rows", len(rows)),
        api.RemovedPart("vectors", passages),
        api.RemovedPart("texts", passages),
        api.RemovedPart("tree_nodes", summaries),
        api.RemovedPart("files", len(rows)),
        api.RemovedPart("metadata", values),
    ]
    return receipts.of_document(
        unit, caller, signer, [document, *(r for r in rows if r is not document)], own
    )


def _find(session: Session, scope: Scope, kb_id: str, document_id: str) -> Document:
    mine = (Document.id == document_id) & (Document.knowledge_base_id == kb_id)
    document: Document | None = session.scalar(select(Document).where(mine, readable(scope)))
    if document is None:
        raise DocumentNotFound()
    return document


def render(
    document: Document | SimpleNamespace, metadata: Metadata | None = None, *, disk_full: bool = False
) -> DocumentOut:
    """The record or its row as clients see it; each chunk has one vector.

    The notice about a full disk is added here, as a full disk can't store it.
    """
    waits = disk_full and document.status == "processing"
    return DocumentOut(
        document_id=document.id,
        filename=document.filename,
        content_type=document.content_type,
        size_bytes=document.size_bytes,
        sha256=document.sha256,
        status=document.status,
        chunk_count=document.chunk_count,
        vector_count=document.chunk_count,
        searchable_count=document.chunk_count
        if document.status == "completed"
        else document.searchable_count,
        page_count=document.page_count,
        error=document.error,
        notice=_WAITS_FOR_ROOM if waits else document.notice,
        parent_id=document.parent_id,
        uploaded_at=document.uploaded_at,
        completed_at=document.completed_at,
        tree_nodes_created=document.tree_nodes,
        path=identities.path_in(document.identity),
        external_id=identities.external_id_in(document.identity),
        kept_by=identities.plugin_in(document.identity),
        version=document.version,
        superseded_at=document.superseded_at,
        metadata=metadata or {},
    )


def _chunk(point: StoredPoint) -> ChunkOut:
    payload = point.payload
    return ChunkOut(
        chunk_id=point.id,
        chunk_index=point.position,
        text=point.text,
        page=payload.get("page"),
        char_start=payload["char_start"],
        char_end=payload["char_end"],
    )


# What clients poll is built once, and selects columns, which are cheaper to load than objects.
_DOCUMENT: Any = Document.__table__
_BASE: Any = KnowledgeBase.__table__


def _rows(*conditions: ColumnElement[bool]) -> Select[Any]:
    """Documents of the knowledge base `kb_id` that the caller may read, if it may see that."""
    in_base = (_BASE.c.id == bindparam("kb_id")) & (_DOCUMENT.c.knowledge_base_id == bindparam("kb_id"))
    visibility = (visible(_BASE.c), readable_by_binds(_DOCUMENT.c))
    return select(*_DOCUMENT.c).join(_BASE, in_base).where(*visibility, *conditions)


def _page(status: str | None, of_parent: bool) -> Prepared:
    """The status is part of the statement: only so does a database use an index of one status."""
    is_of: ColumnElement[str] = literal_column(f"'{status or SUPERSEDED}'")
    conditions = [_DOCUMENT.c.status != is_of if status is None else _DOCUMENT.c.status == is_of]
    if of_parent:
        conditions.append(_DOCUMENT.c.parent_id == bindparam("parent_id"))
    return page_of(_rows(*conditions), "uploaded_at", "id")


_PAGES = {
    (status, of_parent): _page(status, of_parent)
    for status, of_parent in product((None, *get_args(Status)), (False, True))
}
_ONE = Prepared(_rows(_DOCUMENT.c.id == bindparam("document_id")))
