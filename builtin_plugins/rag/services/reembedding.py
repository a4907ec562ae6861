"""Change the embedding model of a knowledge base while it keeps answering.

A job embeds the stored passages again, in batches across documents, into a collection that nobody searches.
When it has all completed documents, one transaction puts it in place of the old one; it locks the knowledge
base's row, for which the end of every ingestion waits. Until then all answers come from the old vectors. If
killed, the job continues after the written passages; if cancelled or given up, it removes the new collection.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from builtin_plugins.documents.api import subject_of
from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.errors import ReembeddingUnderWay
from builtin_plugins.rag.models import Document, KnowledgeBase, coming_collection
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.embedding import embed, engine_changed
from builtin_plugins.rag.services.loading import context_of, sections_of, seen_bases
from builtin_plugins.rag.trees.job import queue_one
from builtin_plugins.vectors.api import CONTEXT, VECTORS, EngineMismatch, Point, StoredPoint, searched_text
from kernel.sdk import (
    Caller,
    JobFailed,
    LongJob,
    Platform,
    Progress,
    Scope,
    Unit,
    scope_of,
)

_BATCH = 96
_PAGE = 2_000
"""Passages of a document that are read at once to see what it is about."""


class ReembedPayload(BaseModel):
    """The knowledge base, its new model, and the name of this change: `KnowledgeBase.reembedding`."""

    knowledge_base_id: str
    model: str
    change: str


async def start(caller: Caller, kb_id: str, model: str) -> str:
    """Queue the change; returns the job's id. Raises KnowledgeBaseNotFound, NotOwner, ReembeddingUnderWay."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_start, scope, kb_id, model)


def _start(unit: Unit, scope: Scope, kb_id: str, model: str) -> str:
    base = knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
    if base.reembedding is not None:
        raise ReembeddingUnderWay()
    base.reembedding = str(uuid.uuid4())
    payload = ReembedPayload(knowledge_base_id=kb_id, model=model, change=base.reembedding)
    return unit.enqueue(REEMBED, payload, owner_id=scope.account_id or base.owner_id, subject=kb_id)


async def reembed(platform: Platform, payload: ReembedPayload, progress: Progress) -> str | None:
    """Embed what is missing until nothing is, then switch; returns the knowledge base's path."""
    path = f"/v1/rag/knowledge-bases/{payload.knowledge_base_id}"
    done: dict[str, int] = {}
    while (missing := await platform.database.write(_switch, platform, payload, done)) is not None:
        before = sum(done.values())
        total = before + sum(missing.values())
        progress.report(before, total=total, unit="passages", message="Embedding passages")
        async for batch in _batches(platform, payload, missing, progress):
            await _copy(platform, payload, batch)
            progress.advance(sum(len(part.rows) for part in batch))
        done |= missing
        progress.report(total)
    return path


def _switch(
    unit: Unit, platform: Platform, payload: ReembedPayload, done: Mapping[str, int]
) -> dict[str, int] | None:
    """Switch if all is embedded (None), or return the missing documents and how many passages each has."""
    base = _lock_base(unit.session, payload)
    if base is None:
        return None
    condition = (Document.knowledge_base_id == base.id) & (Document.status == "completed")
    counted = select(Document.id, Document.chunk_count).where(condition)
    rows = unit.session.execute(counted.order_by(Document.uploaded_at, Document.id))
    missing = {one: passages for one, passages in rows if one not in done}
    if missing:
        return missing
    vectors, coming = platform.resource(VECTORS), coming_collection(base.id, payload.change)
    vectors.drop(unit, base.collection)
    vectors.rename(unit, coming, base.collection)
    _renew_trees(unit, platform, base)
    base.embedding_model, base.reembedding = payload.model, None
    base.revision += 1
    return None


def _lock_base(session: Session, payload: ReembedPayload) -> KnowledgeBase | None:
    """Lock the knowledge base, if this change is still current; no ingestion ends before the unit does."""
    mine = (KnowledgeBase.id == payload.knowledge_base_id) & (KnowledgeBase.reembedding == payload.change)
    base: KnowledgeBase | None = session.scalar(select(KnowledgeBase).where(mine).with_for_update())
    return base


def _renew_trees(unit: Unit, platform: Platform, base: KnowledgeBase) -> None:
    """Rebuild the summary trees, as their vectors are by the old model."""
    grown = (Document.knowledge_base_id == base.id) & Document.tree_built_at.is_not(None)
    for document in unit.session.scalars(select(Document).where(grown)):
        queue_one(unit, document, base.owner_id)
    values = {"tree_nodes": 0, "tree_levels": 0, "tree_built_at": None}
    unit.session.execute(update(Document).where(grown).values(values))
    platform.resource(VECTORS).drop(unit, base.tree_collection)


@dataclass(frozen=True)
class _Part:
    """Some passages of a document; `is_last` says whether they are its last ones."""

    document_id: str
    rows: list[StoredPoint]
    is_last: bool


async def _batches(
    platform: Platform, payload: ReembedPayload, documents: Iterable[str], progress: Progress
) -> AsyncIterator[list[_Part]]:
    """The passages still to embed, in batches: several documents at a time, or parts of one."""
    live = f"rag:{payload.knowledge_base_id}"
    coming = coming_collection(payload.knowledge_base_id, payload.change)
    batch: list[_Part] = []
    room = _BATCH
    for document_id in documents:
        offset = await platform.resource(VECTORS).staged(coming, document_id)
        progress.advance(offset)
        is_last = False
        while not is_last:
            rows, total = await platform.resource(VECTORS).points(live, document_id, room, offset)
            if not rows:
                break  # already complete, or deleted
            rows = await _with_subject(platform, live, document_id, rows, total)
            offset += len(rows)
            room -= len(rows)
            is_last = offset == total
            batch.append(_Part(document_id, rows, is_last))
            if room == 0:
                yield batch
                batch, room = [], _BATCH
    if batch:
        yield batch


async def _with_subject(
    platform: Platform, live: str, document_id: str, rows: Sequence[StoredPoint], total: int
) -> list[StoredPoint]:
    """The passages, with what their document is about if they were stored without it."""
    if total < 2 or all(CONTEXT in row.payload for row in rows):
        return list(rows)
    document = await platform.database.read(lambda session: session.get(Document, document_id))
    texts: list[str] = []
    while len(texts) < total:
        page, _ = await platform.resource(VECTORS).points(live, document_id, _PAGE, len(texts))
        if not page:
            break  # deleted
        texts += [row.text for row in page]
    subject = await asyncio.to_thread(subject_of, document.filename if document else "", texts)
    contexts = (context_of(subject, sections_of(row.payload)) for row in rows)
    return [
        replace(row, payload={**row.payload, CONTEXT: context})
        for row, context in zip(rows, contexts, strict=True)
    ]


async def _copy(platform: Platform, payload: ReembedPayload, batch: list[_Part]) -> None:
    """Embed passages into the coming collection. Raises JobFailed if another engine embedded them."""
    texts = [searched_text(row.text, row.payload) for part in batch for row in part.rows]
    embedded = await embed(platform, payload.model, texts, "passage")
    try:
        await platform.database.write(_write, platform, payload, batch, embedded)
    except EngineMismatch as error:
        await abandon(platform, payload)
        raise JobFailed(str(engine_changed(payload.model, error).detail)) from None


def _write(
    unit: Unit, platform: Platform, payload: ReembedPayload, batch: list[_Part], embedded: Embedded
) -> None:
    """Stage a batch and publish the documents that end in it, unless they or the change are gone."""
    mine = (KnowledgeBase.id == payload.knowledge_base_id) & (KnowledgeBase.reembedding == payload.change)
    query = select(KnowledgeBase.id).where(mine).with_for_update(read=True, key_share=True)
    if unit.session.scalar(query) is None:
        return
    condition = Document.id.in_([part.document_id for part in batch]) & (Document.status == "completed")
    ids = set(
        unit.session.scalars(select(Document.id).where(condition).order_by(Document.id).with_for_update())
    )
    vectors = platform.resource(VECTORS)
    coming = coming_collection(payload.knowledge_base_id, payload.change)
    rows = [(part.document_id, row) for part in batch for row in part.rows]
    points = [
        Point(row.id, document_id, row.position, row.text, vector, row.payload)
        for (document_id, row), vector in zip(rows, embedded.vectors, strict=True)
        if document_id in ids
    ]
    if points:
        vectors.ensure(unit, coming, embedded.vectors.shape[1], embedded.engine)
        vectors.stage(unit, coming, points)
    complete = [part.document_id for part in batch if part.is_last and part.document_id in ids]
    if complete:
        vectors.publish(unit, coming, *complete)


async def abandon(platform: Platform, payload: ReembedPayload) -> None:
    """End the change and keep the old vectors; does nothing if it is already over."""
    await platform.database.write(_abandon, platform, payload)


def _abandon(unit: Unit, platform: Platform, payload: ReembedPayload) -> None:
    base = _lock_base(unit.session, payload)
    if base is not None:
        base.reembedding = None
        platform.resource(VECTORS).drop(unit, coming_collection(base.id, payload.change))


async def _give_up(platform: Platform, payload: ReembedPayload, _reason: str) -> None:
    await abandon(platform, payload)


REEMBED = LongJob(
    "rag.reembed",
    ReembedPayload,
    reembed,
    title="Change the embedding model",
    lane="large",
    retries=60,  # about an hour: meanwhile the old vectors answer, and giving up would lose all new ones
    on_give_up=_give_up,
    on_cancel=abandon,
    visible=seen_bases,
)
