"""Pipelines and documents by their ids, for plugins that refer to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import Document, KnowledgeBase, Pipeline, PipelineSource
from kernel.sdk import Caller, Scope, contracts, scope_of

_AT_ONCE = 500
ENTRY: tuple[Any, ...] = (
    Document.knowledge_base_id,
    Document.id,
    Document.filename,
    Document.content_type,
    Document.size_bytes,
    Document.uploaded_at,
)


async def find_pipelines(caller: Caller, pipeline_ids: Sequence[str]) -> dict[str, contracts.PipelineEntry]:
    """See the hook of this name."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_pipelines, scope, list(pipeline_ids))


def _pipelines(session: Session, scope: Scope, ids: list[str]) -> dict[str, contracts.PipelineEntry]:
    wanted = Pipeline.id.in_(ids[:_AT_ONCE])
    return {entry.id: entry for entry in pipeline_entries(session, scope, wanted, _AT_ONCE)}


def pipeline_entries(
    session: Session, scope: Scope, wanted: ColumnElement[bool], limit: int
) -> list[contracts.PipelineEntry]:
    """Those of these pipelines that the caller may ask, oldest first."""
    bases = (
        select(func.count())
        .select_from(PipelineSource)
        .join(KnowledgeBase, KnowledgeBase.id == PipelineSource.knowledge_base_id)
        .where(PipelineSource.pipeline_id == Pipeline.id, scope.sees(KnowledgeBase))
        .correlate(Pipeline)
        .scalar_subquery()
    )
    columns = (Pipeline.id, Pipeline.name, Pipeline.owner_id, Pipeline.created_at, bases.label("bases"))
    query = select(*columns).where(wanted, scope.sees(Pipeline)).order_by(Pipeline.created_at, Pipeline.id)
    return [
        contracts.PipelineEntry(
            row.id, row.name, row.owner_id in (None, scope.account_id), row.created_at, row.bases
        )
        for row in session.execute(query.limit(limit))
    ]


def pipelines_over(session: Session, scope: Scope, kb_id: str) -> list[str]:
    """The ids of the pipelines over a knowledge base that the scope sees, the latest first; at most 500."""
    mine = select(PipelineSource.pipeline_id).where(PipelineSource.knowledge_base_id == kb_id)
    seen = select(Pipeline.id).where(Pipeline.id.in_(mine), scope.sees(Pipeline))
    return list(session.scalars(seen.order_by(Pipeline.created_at.desc(), Pipeline.id).limit(_AT_ONCE)))


async def find_documents(caller: Caller, document_ids: Sequence[str]) -> dict[str, contracts.DocumentEntry]:
    """See the hook of this name."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_documents, scope, list(document_ids))


def _documents(session: Session, scope: Scope, ids: list[str]) -> dict[str, contracts.DocumentEntry]:
    found: dict[str, contracts.DocumentEntry] = {}
    for start in range(0, max(1, len(ids)), _AT_ONCE):
        query = (
            select(*ENTRY)
            .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
            .where(Document.id.in_(ids[start : start + _AT_ONCE]), scope.sees(KnowledgeBase))
        )
        found.update((row.id, entry_of(row)) for row in session.execute(query))
    return found


def entry_of(row: Row[Any]) -> contracts.DocumentEntry:
    """A document as other plugins see it, of the columns in `ENTRY`."""
    return contracts.DocumentEntry(
        row.knowledge_base_id, row.id, row.filename, row.content_type, row.size_bytes, row.uploaded_at
    )
