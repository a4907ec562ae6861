"""One attempt to ingest a document: whether it is still wanted, how it fails, and how its job ends."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.services.deletions import forget
from builtin_plugins.rag.services.early_search import withdraw_words
from builtin_plugins.rag.services.records import note_outcome
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import JobFailed, Platform, Unit

CANCELLED = "Processing was cancelled. Retry it, or upload the file again, to start over."


class IngestPayload(BaseModel):
    """Which document to ingest. `large`: it is in the lane of large documents already. `has_words`: it can be
    found by its words. `depth`: how many documents it is nested in. `attempt`: when it was uploaded or
    started over, as each attempt has its own job; None in jobs of earlier releases. `asked`: when the
    document that contains it, if any, was uploaded or retried.
    """

    document_id: str
    large: bool = False
    has_words: bool = False
    depth: int = 0
    attempt: datetime | None = None
    asked: datetime | None = None


class Gone(Exception):
    """The document was deleted, cancelled or started over in the meantime: this run is over."""


def is_wanted(document: Document | None, attempt: datetime | None) -> bool:
    """Whether this attempt is still wanted; the passages of two attempts must never be mixed."""
    return (
        document is not None and document.status == "processing" and attempt in (None, document.uploaded_at)
    )


def load(session: Session, payload: IngestPayload) -> tuple[Document, KnowledgeBase] | None:
    """The document to ingest, and its knowledge base; None if this attempt is no longer wanted."""
    query = (
        select(Document, KnowledgeBase)
        .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
        .where(Document.id == payload.document_id)
    )
    row = session.execute(query).one_or_none()
    return (row[0], row[1]) if row is not None and is_wanted(row[0], payload.attempt) else None


def path_of(document: Document) -> str:
    """The document's path in the API."""
    return f"/v1/rag/knowledge-bases/{document.knowledge_base_id}/documents/{document.id}"


async def outcome(platform: Platform, payload: IngestPayload) -> str | None:
    """The result of a job whose attempt is over: the document's path, or None if that was deleted.

    Raises `JobFailed` if it failed or was cancelled.
    """
    document = await platform.database.read(lambda session: session.get(Document, payload.document_id))
    if document is None or payload.attempt is None:
        return None
    if payload.attempt != document.uploaded_at:
        raise JobFailed(CANCELLED)
    if document.status == "failed":
        raise JobFailed(document.error or CANCELLED)
    return path_of(document)


async def give_up(platform: Platform, payload: IngestPayload, reason: str) -> None:
    """Record in the document that the job was given up."""
    await fail(platform, payload.document_id, _given_up(reason), payload.attempt)


async def give_up_document(platform: Platform, document_id: str, reason: str) -> None:
    """The same if only the document is known because the job's payload can't be read."""
    await fail(platform, document_id, _given_up(reason), None)


def _given_up(reason: str) -> str:
    return f"The document could not be processed: {reason}. Upload it again to retry."


async def cancelled(platform: Platform, payload: IngestPayload) -> None:
    """Record in the document that the job was cancelled."""
    await fail(platform, payload.document_id, CANCELLED, payload.attempt)


async def fail(platform: Platform, document_id: str, detail: str, attempt: datetime | None) -> None:
    """Mark a document `failed` and remove its staged data, unless this attempt is over."""
    await platform.database.write(_fail, platform, document_id, detail, attempt)


def _fail(unit: Unit, platform: Platform, document_id: str, detail: str, attempt: datetime | None) -> None:
    document: Document | None = unit.session.get(Document, document_id, with_for_update=True)
    if document is not None and is_wanted(document, attempt):
        fail_in(unit, platform, document, detail)


def fail_in(unit: Unit, platform: Platform, document: Document, detail: str) -> None:
    """Mark a locked document `failed` in this unit, and remove its passages."""
    document.status, document.error, document.chunk_count = "failed", detail, 0
    document.completed_at = unit.now()
    platform.resource(VECTORS).remove_group(unit, f"rag:{document.knowledge_base_id}", document.id)
    withdraw_words(unit, platform, document)
    note_outcome(unit, "failed")
    forget(unit, platform, document)
