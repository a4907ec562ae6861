"""Change the embedding model of a knowledge base while it keeps answering.

A job embeds the stored passages again, document by document, into a collection that nobody searches. When it
has all completed documents, one transaction puts it in place of the old one; it locks the knowledge base's
row, for which the end of every ingestion waits. Until then all answers come from the old vectors. If killed,
the job continues after the written passages; if cancelled or given up, it removes the new collection.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from pydantic import BaseModel
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import ReembeddingUnderWay
from builtin_plugins.rag.models import Document, KnowledgeBase, coming_collection
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.embedding import embed, engine_changed
from builtin_plugins.rag.trees.job import queue_one, visible
from kernel.sdk import (
    Caller,
    Embedded,
    EngineMismatch,
    JobFailed,
    LongJob,
    Platform,
    Point,
    Progress,
    Scope,
    StoredPoint,
    Unit,
    scope_of,
)

_BATCH = 96


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
        for document_id, passages in missing.items():
            try:
                await _copy(platform, payload, document_id, progress)
            except EngineMismatch as error:
                await abandon(platform, payload)
                raise JobFailed(str(engine_changed(payload.model, error).detail)) from None
            done[document_id] = passages
            before += passages
            progress.report(before)
    return path


def _switch(
    unit: Unit, platform: Platform, payload: ReembedPayload, done: Mapping[str, int]
) -> dict[str, int] | None:
    """Switch if all is embedded, else return a missing document and its passages; None when done."""
    base = _held(unit.session, payload)
    if base is None:
        return None
    wanted = (Document.knowledge_base_id == base.id) & (Document.status == "completed")
    counted = select(Document.id, Document.chunk_count).where(wanted)
    rows = unit.session.execute(counted.order_by(Document.uploaded_at, Document.id))
    missing = {one: passages for one, passages in rows if one not in done}
    if missing:
        return missing
    vectors, coming = platform.vectors, coming_collection(base.id, payload.change)
    vectors.drop(unit, base.collection)
    vectors.rename(unit, coming, base.collection)
    _renew_trees(unit, platform, base)
    base.embedding_model, base.reembedding = payload.model, None
    base.revision += 1
    return None


def _held(session: Session, payload: ReembedPayload) -> KnowledgeBase | None:
    """Lock the knowledge base, if this change is still current; no ingestion ends before the unit does."""
    mine = (KnowledgeBase.id == payload.knowledge_base_id) & (KnowledgeBase.reembedding == payload.change)
    found: KnowledgeBase | None = session.scalar(select(KnowledgeBase).where(mine).with_for_update())
    return found


def _renew_trees(unit: Unit, platform: Platform, base: KnowledgeBase) -> None:
    """Rebuild the summary trees, as their vectors are by the old model."""
    grown = (Document.knowledge_base_id == base.id) & Document.tree_built_at.is_not(None)
    for document in unit.session.scalars(select(Document).where(grown)):
        queue_one(unit, document, base.owner_id)
    values = {"tree_nodes": 0, "tree_levels": 0, "tree_built_at": None}
    unit.session.execute(update(Document).where(grown).values(values))
    platform.vectors.drop(unit, base.tree_collection)


async def _copy(platform: Platform, payload: ReembedPayload, document_id: str, progress: Progress) -> None:
    """Embed a document's passages into the coming collection, continuing after the existing ones."""
    live = f"rag:{payload.knowledge_base_id}"
    coming = coming_collection(payload.knowledge_base_id, payload.change)
    written = await platform.vectors.staged(coming, document_id)
    progress.advance(written)
    total = written + 1
    while written < total:
        rows, total = await platform.vectors.points(live, document_id, _BATCH, written)
        if not rows:
            return  # already complete, or deleted
        embedded = await embed(platform, payload.model, [row.text for row in rows], "passage")
        last = written + len(rows) == total
        if not await platform.database.write(_write, platform, payload, document_id, rows, embedded, last):
            return
        written += len(rows)
        progress.advance(len(rows))


def _write(
    unit: Unit,
    platform: Platform,
    payload: ReembedPayload,
    document_id: str,
    rows: list[StoredPoint],
    embedded: Embedded,
    last: bool,
) -> bool:
    """Stage a batch; the last one publishes the document. False if the document or the change is gone."""
    mine = (KnowledgeBase.id == payload.knowledge_base_id) & (KnowledgeBase.reembedding == payload.change)
    held = select(KnowledgeBase.id).where(mine).with_for_update(read=True, key_share=True)
    if unit.session.scalar(held) is None:
        return False
    if unit.session.get(Document, document_id, with_for_update=True) is None:
        return False
    vectors = platform.vectors
    coming = coming_collection(payload.knowledge_base_id, payload.change)
    points = [
        Point(row.id, document_id, row.position, row.text, vector, row.payload)
        for row, vector in zip(rows, embedded.vectors, strict=True)
    ]
    vectors.ensure(unit, coming, embedded.vectors.shape[1], embedded.engine)
    vectors.stage(unit, coming, points)
    if last:
        vectors.publish(unit, coming, document_id)
    return True


async def abandon(platform: Platform, payload: ReembedPayload) -> None:
    """End the change and keep the old vectors; does nothing if it is already over."""
    await platform.database.write(_abandon, platform, payload)


def _abandon(unit: Unit, platform: Platform, payload: ReembedPayload) -> None:
    base = _held(unit.session, payload)
    if base is not None:
        base.reembedding = None
        platform.vectors.drop(unit, coming_collection(base.id, payload.change))


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
    visible=visible,
)
