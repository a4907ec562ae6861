"""Pipelines and documents by their ids, for plugins that refer to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Integer, Select, String, bindparam, func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api
from builtin_plugins.rag.models import Document, KnowledgeBase, Pipeline, PipelineSource
from builtin_plugins.rag.rights.reading import read_binds, readable_by_binds, reading_scope
from kernel.sdk import Caller, Prepared, Scope, Unit, scope_of
from kernel.sdk.accounts import visible
from kernel.sdk.storage import Among, Ids

MOST = 500
_BASE: Any = KnowledgeBase.__table__
_PIPELINE: Any = Pipeline.__table__
_SOURCE: Any = PipelineSource.__table__
_DOCUMENT: Any = Document.__table__

_SEARCHED = (
    select(func.count())
    .select_from(_SOURCE.join(_BASE, _BASE.c.id == _SOURCE.c.knowledge_base_id))
    .where(_SOURCE.c.pipeline_id == _PIPELINE.c.id, visible(_BASE.c))
    .correlate(_PIPELINE)
)
_UNPUBLISHABLE = _SEARCHED.where(
    _BASE.c.publishing != "allowed",
    _BASE.c.owner_id.is_distinct_from(bindparam("scope_account", type_=Integer())),
)
_PIPELINES: Select[Any] = (
    select(
        *(_PIPELINE.c.id, _PIPELINE.c.name, _PIPELINE.c.owner_id, _PIPELINE.c.created_at),
        _SEARCHED.scalar_subquery().label("bases"),
        _UNPUBLISHABLE.scalar_subquery().label("unpublishable"),
    )
    .where(visible(_PIPELINE.c))
    .order_by(_PIPELINE.c.created_at, _PIPELINE.c.id)
    .limit(MOST)
)
_ALL_PIPELINES = Prepared(_PIPELINES)
_SOME_PIPELINES = Prepared(_PIPELINES.where(Among(_PIPELINE.c.id, bindparam("wanted", type_=Ids(String)))))
ENTRY: Sequence[Any] = (
    *(_DOCUMENT.c.knowledge_base_id, _DOCUMENT.c.id.label("document_id"), _DOCUMENT.c.filename.label("name")),
    *(_DOCUMENT.c.content_type, _DOCUMENT.c.size_bytes, _DOCUMENT.c.uploaded_at),
    *(_DOCUMENT.c.version, _DOCUMENT.c.sha256, _DOCUMENT.c.superseded_at),
)
"""The columns of a `api.DocumentEntry`."""

_DOCUMENTS = Prepared(
    select(*ENTRY)
    .join(_BASE, _BASE.c.id == _DOCUMENT.c.knowledge_base_id)
    .where(Among(_DOCUMENT.c.id, bindparam("wanted", type_=Ids(String))), visible(_BASE.c))
    .where(readable_by_binds(_DOCUMENT.c))
)


async def find_pipelines(caller: Caller, pipeline_ids: Sequence[str]) -> dict[str, api.PipelineEntry]:
    """Implements the hook of the same name."""
    scope = await scope_of(caller.platform, caller.principal)
    values = {**scope.binds, "wanted": list(pipeline_ids)}
    rows = await caller.platform.database.read(_SOME_PIPELINES.all, values)
    return {row["id"]: _entry(row, scope) for row in rows}


async def list_pipelines(caller: Caller) -> list[api.PipelineEntry]:
    """Those that the caller may ask, oldest first; at most 500."""
    scope = await scope_of(caller.platform, caller.principal)
    rows = await caller.platform.database.read(_ALL_PIPELINES.all, scope.binds)
    return [_entry(row, scope) for row in rows]


def visible_pipelines(scope: Scope) -> Select[str]:
    """A query for the ids of the pipelines that the scope can see."""
    return select(Pipeline.id).where(scope.sees(Pipeline))


def _entry(row: Mapping[str, Any], scope: Scope) -> api.PipelineEntry:
    own = row["owner_id"] in (None, scope.account_id)
    unpublishable = 0 if scope.everything else row["unpublishable"]
    return api.PipelineEntry(row["id"], row["name"], own, row["created_at"], row["bases"], unpublishable)


def pipelines_over(session: Session, scope: Scope, kb_id: str) -> list[str]:
    """The ids of the pipelines over a knowledge base that the scope sees, newest first; at most 500."""
    mine = select(PipelineSource.pipeline_id).where(PipelineSource.knowledge_base_id == kb_id)
    query = select(Pipeline.id).where(Pipeline.id.in_(mine), scope.sees(Pipeline))
    return list(session.scalars(query.order_by(Pipeline.created_at.desc(), Pipeline.id).limit(MOST)))


def hold_documents(unit: Unit, kb_id: str, document_ids: Sequence[str]) -> list[str]:
    """Which of these documents are in a knowledge base, locked against deletion until the unit ends."""
    ids: list[str] = []
    mine = select(Document.id).where(Document.knowledge_base_id == kb_id).order_by(Document.id)
    for start in range(0, len(document_ids), MOST):
        some = mine.where(Document.id.in_(document_ids[start : start + MOST]))
        ids += unit.session.scalars(some.with_for_update(read=True, key_share=True))
    return ids


async def find_documents(caller: Caller, document_ids: Sequence[str]) -> dict[str, api.DocumentEntry]:
    """Implements the hook of the same name."""
    scope, reader = await scope_of(caller.platform, caller.principal), await reading_scope(caller)
    values = {**scope.binds, **read_binds(reader), "wanted": list(document_ids)}
    rows = await caller.platform.database.read(_DOCUMENTS.all, values)
    return {row["document_id"]: api.DocumentEntry(**row) for row in rows}
