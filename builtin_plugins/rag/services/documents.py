"""Documents: add, list, show, delete."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import DocumentNotFound
from builtin_plugins.rag.events import DocumentDeleted
from builtin_plugins.rag.models import Document
from builtin_plugins.rag.schemas import ChunkOut, DocumentOut, DocumentQuery
from builtin_plugins.rag.schemas_receipts import Receipt
from builtin_plugins.rag.services import deletions, knowledge_bases, loading, receipts
from builtin_plugins.rag.services.ingestion_jobs import queue_document
from builtin_plugins.rag.services.originals import original
from builtin_plugins.rag.services.receipts import SIGNER, Signer
from builtin_plugins.rag.services.records import Arrived, keep_document, write_kept
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, Platform, Scope, StoredPoint, Unit, contracts, scope_of

_WAITS_FOR_ROOM = "The server's disk is full; reading continues once there is room."


async def check_upload(caller: Caller, kb_id: str) -> None:
    """Refuse an upload before a byte is read. Raises KnowledgeBaseNotFound, NotOwner."""
    await loading.own_knowledge_base(caller, kb_id)


async def add(caller: Caller, kb_id: str, file: Arrived) -> tuple[DocumentOut, bool]:
    """Keep the file and queue its ingestion, in one transaction; returns the record, and whether it is new.

    The same bytes in one knowledge base are one document; one that had failed is tried again.
    """
    scope = await scope_of(caller.platform, caller.principal)
    return await write_kept(caller.platform, _add, caller.platform, scope, kb_id, file)


def _add(unit: Unit, platform: Platform, scope: Scope, kb_id: str, file: Arrived) -> tuple[DocumentOut, bool]:
    base = loading.hold_own(unit.session, scope, kb_id)
    document, new = keep_document(unit, platform, base, file)
    if new:
        largest = platform.settings_of(RagSettings).large_document_mb * 1024 * 1024
        queue_document(unit, document, scope.account_id or base.owner_id, int(largest))
    return render(document), new


async def list_page(caller: Caller, kb_id: str, query: DocumentQuery) -> tuple[list[DocumentOut], int]:
    """Documents of a visible knowledge base, oldest first, and how many there are.

    Raises KnowledgeBaseNotFound.
    """
    scope = await scope_of(caller.platform, caller.principal)
    disk_full = caller.platform.disk.is_short()
    return await caller.platform.database.read(_page, scope, kb_id, query, disk_full)


def _page(
    session: Session, scope: Scope, kb_id: str, query: DocumentQuery, disk_full: bool
) -> tuple[list[DocumentOut], int]:
    knowledge_bases.find(session, scope, kb_id)
    wanted = Document.knowledge_base_id == kb_id
    if query.status is not None:
        wanted &= Document.status == query.status
    if query.parent_id is not None:
        wanted &= Document.parent_id == query.parent_id
    total = session.scalar(select(func.count()).select_from(Document).where(wanted))
    ordered = select(Document).where(wanted).order_by(Document.uploaded_at, Document.id)
    rows = session.scalars(ordered.limit(query.limit).offset(query.offset))
    return [render(row, disk_full=disk_full) for row in rows], int(total or 0)


async def show(caller: Caller, kb_id: str, document_id: str) -> DocumentOut:
    """The record of a document. Raises KnowledgeBaseNotFound, DocumentNotFound."""
    return render(await get(caller, kb_id, document_id), disk_full=caller.platform.disk.is_short())


async def get(caller: Caller, kb_id: str, document_id: str) -> Document:
    """One document of a visible knowledge base. Raises KnowledgeBaseNotFound, DocumentNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_get, scope, kb_id, document_id)


def _get(session: Session, scope: Scope, kb_id: str, document_id: str) -> Document:
    knowledge_bases.find(session, scope, kb_id)
    return _find(session, kb_id, document_id)


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
    await get(caller, kb_id, document_id)
    points, total = await caller.platform.vectors.points(f"rag:{kb_id}", document_id, limit, offset)
    return [_chunk(point) for point in points], total


async def remove(caller: Caller, kb_id: str, document_id: str) -> Receipt:
    """Delete a document with its passages, vectors and file; no search that starts later finds it.

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
    """The row goes first: a running ingestion finds it gone and writes nothing more."""
    platform = caller.platform
    base = knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
    document = _find(unit.session, kb_id, document_id)
    unit.session.delete(document)
    unit.session.flush()
    passages = platform.vectors.remove_group(unit, base.collection, document.id)
    if base.coming_collection is not None:
        platform.vectors.remove_group(unit, base.coming_collection, document.id)
    summaries = platform.vectors.remove_group(unit, base.tree_collection, document.id)
    platform.blobs.release(unit, document.sha256, document.holder)
    deletions.remember(unit, platform, base, document.sha256)
    unit.emit(DocumentDeleted(document_id=document.id, knowledge_base_id=base.id, owner_id=base.owner_id))
    own = [
        contracts.RemovedPart("rows", 1),
        contracts.RemovedPart("vectors", passages),
        contracts.RemovedPart("texts", passages),
        contracts.RemovedPart("tree_nodes", summaries),
        contracts.RemovedPart("files", 1),
    ]
    return receipts.of_document(unit, caller, signer, document, own)


def _find(session: Session, kb_id: str, document_id: str) -> Document:
    query = select(Document).where(Document.id == document_id, Document.knowledge_base_id == kb_id)
    found: Document | None = session.scalar(query)
    if found is None:
        raise DocumentNotFound()
    return found


def render(document: Document, *, disk_full: bool = False) -> DocumentOut:
    """The record as clients see it; each chunk has one vector.

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
        page_count=document.page_count,
        error=document.error,
        notice=_WAITS_FOR_ROOM if waits else document.notice,
        parent_id=document.parent_id,
        uploaded_at=document.uploaded_at,
        completed_at=document.completed_at,
        tree_nodes_created=document.tree_nodes,
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
