"""The job that ingests a document, and the lane that it waits in, by its expected work."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import select

from builtin_plugins.documents.api import CSV, JSON, JSON_LINES, MARKDOWN, PLAIN, UnparsableDocument
from builtin_plugins.rag.models import INGESTING, Document, KnowledgeBase
from builtin_plugins.rag.rights.reading import readable_documents
from builtin_plugins.rag.services.attempts import (
    Gone,
    IngestPayload,
    cancelled,
    give_up,
    give_up_document,
    load,
    outcome,
)
from builtin_plugins.rag.services.ingest import ingest
from builtin_plugins.rag.services.members import DEEPEST, Inside, take_out
from builtin_plugins.rag.services.small_texts import ingest_small
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import LongJob, Platform, Progress, Unit
from kernel.sdk.jobs import Gather, Lane

log = logging.getLogger("platform.rag.ingest")

TEXTS: Final = frozenset({PLAIN, MARKDOWN, CSV, JSON, JSON_LINES})
"""A byte of these is about a character; their parsers are plain Python."""
_SMALL_BYTES: Final = 16 * 1024
_LARGE_TEXT_BYTES: Final = 256 * 1024


async def _read(platform: Platform, payload: IngestPayload, progress: Progress) -> str | None:
    """Ingest the document; the files inside it become separate documents."""
    try:
        inside = await _take_out(platform, payload)
        result = await ingest(platform, payload, progress, inside.left_out if inside else None)
    except Gone:
        log.info("document %s was deleted, cancelled or started over in the meantime", payload.document_id)
        return await outcome(platform, payload)
    if inside is not None and not inside.guarded:
        progress.report(message=inside.message)
    return result


async def _take_out(platform: Platform, payload: IngestPayload) -> Inside | None:
    pair = await platform.database.read(load, payload)
    if pair is None:
        raise Gone
    if payload.depth >= DEEPEST:
        return None
    asked_at = payload.asked or pair[0].uploaded_at
    queue = partial(_queue_member, platform, payload.depth + 1, asked_at)
    with suppress(UnparsableDocument):  # ingesting it will report what is wrong
        return await take_out(platform, *pair, asked_at, queue)
    return None


def _queue_member(platform: Platform, depth: int, asked_at: datetime, unit: Unit, document: Document) -> None:
    largest = platform.settings_of(RagSettings).large_document_mb * 1024 * 1024
    owner = unit.session.scalar(
        select(KnowledgeBase.owner_id).where(KnowledgeBase.id == document.knowledge_base_id)
    )
    # The earlier of both, as another machine's clock may be slow.
    queue_document(unit, document, owner, int(largest), depth, min(asked_at, document.uploaded_at))


INGEST = LongJob(
    INGESTING,
    IngestPayload,
    _read,
    title="Read a document",
    on_give_up=give_up,
    on_cancel=cancelled,
    on_unreadable=give_up_document,
    visible=readable_documents,
    together=ingest_small,
)


class _Place(NamedTuple):
    lane: Lane
    weight: int


def queue_document(
    unit: Unit,
    document: Document,
    owner_id: int | None,
    largest: int,
    depth: int = 0,
    asked_at: datetime | None = None,
) -> None:
    """Queue the ingestion of a document. Files of more than `largest` bytes count as large."""
    place = _place(document, largest)
    payload = IngestPayload(
        document_id=document.id,
        large=place.lane == "large",
        depth=depth,
        attempt=document.uploaded_at,
        asked=asked_at,
    )
    gather = Gather(document.knowledge_base_id, place.weight)
    if document.audience_id is not None:
        owner_id = None  # jobs are shown to their owners, who may not read it
    unit.enqueue(INGEST, payload, lane=place.lane, owner_id=owner_id, subject=document.id, gather=gather)


def _place(document: Document, largest: int) -> _Place:
    """For other kinds, the amount of work is known only after parsing: see `LARGE_PASSAGES`."""
    size, is_text = document.size_bytes, document.content_type in TEXTS
    if is_text and size <= _SMALL_BYTES:
        return _Place("quick", max(1, -(-size // 1024)))
    if size > largest or (is_text and size > _LARGE_TEXT_BYTES):
        return _Place("large", 1)
    return _Place("standard", 1)
