"""Documents: take an upload in, list, show, delete."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.rag.errors import DocumentNotFound
from builtin_plugins.rag.events import DocumentDeleted
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.schemas import ChunkOut, DocumentOut, DocumentQuery
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.ingest import INGEST, IngestPayload
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Lane, Platform, Principal, Scope, Staged, StoredPoint, Unit, scope_of, utc_now


@dataclass(frozen=True)
class Arrived:
    """A file that has been received completely."""

    staged: Staged
    filename: str
    content_type: str


async def check_upload(platform: Platform, principal: Principal, kb_id: str) -> None:
    """Refuse before a byte is read. Raises KnowledgeBaseNotFound, NotOwner."""
    scope = await scope_of(platform, principal)
    async with platform.database.read() as session:
        await knowledge_bases.find_own(session, scope, kb_id)


async def add(
    platform: Platform, principal: Principal, kb_id: str, file: Arrived
) -> tuple[DocumentOut, bool]:
    """Keep the file and queue its ingestion, in one transaction; the record, and whether it is new.

    The same bytes in one knowledge base are one document; one that had failed is tried again.
    """
    scope = await scope_of(platform, principal)
    try:
        return await _add(platform, scope, kb_id, file)
    except IntegrityError:
        # The same file came twice at the same time: the other one is the document.
        return await _add(platform, scope, kb_id, file)


async def _add(platform: Platform, scope: Scope, kb_id: str, file: Arrived) -> tuple[DocumentOut, bool]:
    async with platform.database.unit() as unit:
        base = await knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
        same = (Document.knowledge_base_id == kb_id) & (Document.sha256 == file.staged.sha256)
        known = await unit.session.scalar(select(Document).where(same))
        if known is not None and known.status != "failed":
            return render(known), False
        document = known or _new(base, file)
        if known is None:
            unit.session.add(document)
        else:
            _start_over(document, file)
        await unit.session.flush()
        await platform.blobs.keep(unit, file.staged, document.holder)
        largest = platform.settings_of(RagSettings).large_document_mb * 1024 * 1024
        lane: Lane = "large" if file.staged.size > largest else "standard"
        await unit.enqueue(INGEST, IngestPayload(document_id=document.id), lane=lane)
        return render(document), True


def _new(base: KnowledgeBase, file: Arrived) -> Document:
    return Document(
        id=str(uuid.uuid4()),
        knowledge_base_id=base.id,
        filename=file.filename,
        content_type=file.content_type,
        size_bytes=file.staged.size,
        sha256=file.staged.sha256,
        status="processing",
        chunk_count=0,
        uploaded_at=utc_now(),
    )


def _start_over(document: Document, file: Arrived) -> None:
    """The name may tell the kind of text, so it counts as much as in the first attempt."""
    document.filename, document.content_type = file.filename, file.content_type
    document.status, document.error, document.error_code = "processing", None, None
    document.uploaded_at, document.completed_at = utc_now(), None


async def list_page(
    platform: Platform, principal: Principal, kb_id: str, query: DocumentQuery
) -> tuple[list[DocumentOut], int]:
    """Documents of a visible knowledge base, oldest first, and how many there are."""
    scope = await scope_of(platform, principal)
    async with platform.database.read() as session:
        await knowledge_bases.find(session, scope, kb_id)
        wanted = Document.knowledge_base_id == kb_id
        if query.status is not None:
            wanted &= Document.status == query.status
        total = await session.scalar(select(func.count()).select_from(Document).where(wanted))
        ordered = select(Document).where(wanted).order_by(Document.uploaded_at, Document.id)
        rows = await session.scalars(ordered.limit(query.limit).offset(query.offset))
        return [render(row) for row in rows], int(total or 0)


async def get(platform: Platform, principal: Principal, kb_id: str, document_id: str) -> Document:
    """One document of a visible knowledge base. Raises KnowledgeBaseNotFound, DocumentNotFound."""
    scope = await scope_of(platform, principal)
    async with platform.database.read() as session:
        await knowledge_bases.find(session, scope, kb_id)
        return await _find(session, kb_id, document_id)


async def content(
    platform: Platform, principal: Principal, kb_id: str, document_id: str
) -> tuple[Document, Path]:
    """A document and the file with its original bytes."""
    document = await get(platform, principal, kb_id, document_id)
    return document, platform.blobs.path(document.sha256)


async def chunks(
    platform: Platform, principal: Principal, kb_id: str, document_id: str, limit: int, offset: int
) -> tuple[list[ChunkOut], int]:
    """A document's passages in order, and how many there are."""
    await get(platform, principal, kb_id, document_id)
    points, total = await platform.vectors.points(f"rag:{kb_id}", document_id, limit, offset)
    return [_chunk(point) for point in points], total


async def remove(platform: Platform, principal: Principal, kb_id: str, document_id: str) -> None:
    """Delete a document with its passages, vectors and file; no search that starts later finds it."""
    scope = await scope_of(platform, principal)
    async with platform.database.unit() as unit:
        base = await knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
        document = await _find(unit.session, kb_id, document_id)
        await _remove(platform, unit, base, document)
    await platform.database.scrub()


async def _remove(platform: Platform, unit: Unit, base: KnowledgeBase, document: Document) -> None:
    """The row goes first: an ingestion under way finds it gone and writes nothing more."""
    await unit.session.delete(document)
    await unit.session.flush()
    await platform.vectors.remove_group(unit, base.collection, document.id)
    await platform.blobs.release(unit, document.sha256, document.holder)
    unit.emit(DocumentDeleted(document_id=document.id, knowledge_base_id=base.id, owner_id=base.owner_id))


async def _find(session: AsyncSession, kb_id: str, document_id: str) -> Document:
    query = select(Document).where(Document.id == document_id, Document.knowledge_base_id == kb_id)
    found: Document | None = await session.scalar(query)
    if found is None:
        raise DocumentNotFound()
    return found


def render(document: Document) -> DocumentOut:
    """The record as clients see it; each chunk has one vector."""
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
        uploaded_at=document.uploaded_at,
        completed_at=document.completed_at,
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
