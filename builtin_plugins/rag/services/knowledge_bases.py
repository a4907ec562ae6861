"""Knowledge bases: make, find, change, delete. Every query goes through the caller's scope."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.rag.errors import DependentPipelines, KnowledgeBaseNotFound, NotOwner
from builtin_plugins.rag.events import DocumentDeleted
from builtin_plugins.rag.models import Document, KnowledgeBase, Pipeline, PipelineSource
from builtin_plugins.rag.schemas import (
    KnowledgeBaseCreate,
    KnowledgeBaseOut,
    KnowledgeBaseQuery,
    KnowledgeBaseUpdate,
)
from builtin_plugins.rag.services.sharing import share, share_anew
from kernel.sdk import Platform, Principal, Scope, Unit, audit, scope_of


async def find(session: AsyncSession, scope: Scope, kb_id: str, *, lock: bool = False) -> KnowledgeBase:
    """A knowledge base that the caller may see. Raises KnowledgeBaseNotFound, also for an invisible one."""
    query = select(KnowledgeBase).where(KnowledgeBase.id == kb_id, scope.sees(KnowledgeBase))
    found: KnowledgeBase | None = await session.scalar(query.with_for_update() if lock else query)
    if found is None:
        raise KnowledgeBaseNotFound()
    return found


async def find_own(session: AsyncSession, scope: Scope, kb_id: str, *, lock: bool = False) -> KnowledgeBase:
    """A knowledge base that the caller may change. Raises KnowledgeBaseNotFound, NotOwner."""
    found = await find(session, scope, kb_id, lock=lock)
    if not scope.owns(found):
        raise NotOwner()
    return found


async def create(
    platform: Platform, principal: Principal, wanted: KnowledgeBaseCreate, model: str
) -> KnowledgeBaseOut:
    """A new knowledge base of the caller, embedded by `model`."""
    scope = await scope_of(platform, principal)
    made = KnowledgeBase(
        id=str(uuid.uuid4()),
        name=wanted.name,
        description=wanted.description,
        embedding_model=model,
        llm_model=wanted.llm_model,
        chunk_size=wanted.chunk_size,
        chunk_overlap=wanted.chunk_overlap,
        owner_id=principal.id,
    )
    share(made, scope, wanted)
    async with platform.database.unit() as unit:
        unit.session.add(made)
    return render(made, 0, 0)


async def list_page(
    platform: Platform, principal: Principal, query: KnowledgeBaseQuery
) -> tuple[list[KnowledgeBaseOut], int]:
    """The visible knowledge bases, oldest first, and how many there are."""
    scope = await scope_of(platform, principal)
    wanted: ColumnElement[bool] = scope.sees(KnowledgeBase)
    if query.owner_id is not None:
        wanted &= or_(KnowledgeBase.owner_id == query.owner_id, KnowledgeBase.owner_id.is_(None))
    async with platform.database.read() as session:
        total = await session.scalar(select(func.count()).select_from(KnowledgeBase).where(wanted))
        ordered = select(KnowledgeBase).where(wanted).order_by(KnowledgeBase.created_at, KnowledgeBase.id)
        rows = (await session.scalars(ordered.limit(query.limit).offset(query.offset))).all()
        counts = await _counts(session, [row.id for row in rows])
    return [render(row, *counts.get(row.id, (0, 0))) for row in rows], int(total or 0)


async def get(platform: Platform, principal: Principal, kb_id: str) -> KnowledgeBaseOut:
    """One knowledge base with its counts."""
    scope = await scope_of(platform, principal)
    async with platform.database.read() as session:
        found = await find(session, scope, kb_id)
        counts = await _counts(session, [kb_id])
    return render(found, *counts.get(kb_id, (0, 0)))


async def update(
    platform: Platform, principal: Principal, kb_id: str, change: KnowledgeBaseUpdate
) -> KnowledgeBaseOut:
    """Change name, description, model or visibility in place; documents and vectors stay as they are."""
    scope = await scope_of(platform, principal)
    sent = change.model_fields_set
    async with platform.database.unit() as unit:
        found = await find_own(unit.session, scope, kb_id, lock=True)
        for field in ("name", "description", "llm_model"):
            value = getattr(change, field)
            if field in sent and (value is not None or field == "llm_model"):
                setattr(found, field, value)
        share_anew(found, scope, change)
        counts = await _counts(unit.session, [kb_id])
    return render(found, *counts.get(kb_id, (0, 0)))


async def remove(
    platform: Platform, principal: Principal, kb_id: str, confirmed: Sequence[str], origin: dict[str, Any]
) -> None:
    """Delete with all documents and vectors. Raises DependentPipelines unless exactly those are confirmed.

    Pipelines of others stay, and are not spoken of: they answer from what is left to them.
    """
    scope = await scope_of(platform, principal)
    async with platform.database.unit() as unit:
        found = await find_own(unit.session, scope, kb_id, lock=True)
        dependents = await _dependents(unit.session, scope, kb_id)
        if dependents and {p.id for p in dependents} != set(confirmed):
            raise _refusal(dependents)
        await _delete_documents(platform, unit, found)
        for pipeline in dependents:
            await unit.session.delete(pipeline)
        await platform.vectors.drop(unit, found.collection)
        await unit.session.delete(found)
        audit(
            unit,
            "rag.knowledge_base.deleted",
            "knowledge_base",
            kb_id,
            before={"name": found.name},
            origin=origin,
        )
    await platform.database.scrub()


async def _delete_documents(platform: Platform, unit: Unit, base: KnowledgeBase) -> None:
    mine = Document.knowledge_base_id == base.id
    for document in await unit.session.scalars(select(Document).where(mine)):
        await platform.blobs.release(unit, document.sha256, document.holder)
        unit.emit(DocumentDeleted(document_id=document.id, knowledge_base_id=base.id, owner_id=base.owner_id))
    await unit.session.execute(delete(Document).where(mine))


async def _dependents(session: AsyncSession, scope: Scope, kb_id: str) -> Sequence[Pipeline]:
    """The pipelines over a knowledge base that the caller may change."""
    using = select(PipelineSource.pipeline_id).where(PipelineSource.knowledge_base_id == kb_id)
    query = select(Pipeline).where(Pipeline.id.in_(using)).order_by(Pipeline.name)
    if not scope.everything:
        query = query.where(or_(Pipeline.owner_id == scope.account_id, Pipeline.owner_id.is_(None)))
    return (await session.scalars(query)).all()


def _refusal(dependents: Sequence[Pipeline]) -> DependentPipelines:
    """Names the pipelines in the way."""
    listed = [{"pipeline_id": p.id, "name": p.name} for p in dependents]
    message = (
        "Pipelines use this knowledge base; "
        "list exactly these in confirm_delete_pipeline_ids to delete them too"
    )
    return DependentPipelines({"message": message, "dependent_pipelines": listed})


async def _counts(session: AsyncSession, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Documents and vectors of completed documents, by knowledge base."""
    query = (
        select(Document.knowledge_base_id, func.count(), func.sum(Document.chunk_count))
        .where(Document.knowledge_base_id.in_(ids), Document.status == "completed")
        .group_by(Document.knowledge_base_id)
    )
    return {kb: (int(count), int(chunks or 0)) for kb, count, chunks in await session.execute(query)}


def render(base: KnowledgeBase, documents: int, vectors: int) -> KnowledgeBaseOut:
    """The record as clients see it."""
    fields = {name: getattr(base, name) for name in _FIELDS}
    return KnowledgeBaseOut(**fields, document_count=documents, vector_count=vectors)


_FIELDS = (
    "id",
    "name",
    "description",
    "embedding_model",
    "llm_model",
    "chunk_size",
    "chunk_overlap",
    "owner_id",
    "visibility",
    "team_id",
    "organization_id",
    "created_at",
)
