"""Pipelines: make, find, change, delete."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, func, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import KnowledgeBaseNotFound, NotOwner, PipelineNotFound
from builtin_plugins.rag.filters.binding import FilterSource, bind
from builtin_plugins.rag.models import KnowledgeBase, Pipeline, PipelineSource
from builtin_plugins.rag.schemas import (
    PipelineCreate,
    PipelineOut,
    PipelineQuery,
    PipelineUpdate,
    RetrievalConfig,
)
from builtin_plugins.rag.services.sharing import (
    limit_naming,
    note_sharing,
    owner_and_scope,
    share,
    share_anew,
    sharing_of,
)
from kernel.sdk import Caller, Platform, Scope, Unit, scope_of


def find(session: Session, scope: Scope, pipeline_id: str, *, lock: bool = False) -> Pipeline:
    """A pipeline that the caller may see. Raises PipelineNotFound, also for an invisible one."""
    query = select(Pipeline).where(Pipeline.id == pipeline_id, scope.sees(Pipeline))
    pipeline: Pipeline | None = session.scalar(query.with_for_update() if lock else query)
    if pipeline is None:
        raise PipelineNotFound()
    return pipeline


def find_own(session: Session, scope: Scope, pipeline_id: str) -> Pipeline:
    """A pipeline that the caller may change. Raises PipelineNotFound, NotOwner."""
    pipeline = find(session, scope, pipeline_id, lock=True)
    if not scope.owns(pipeline):
        raise NotOwner()
    return pipeline


async def create(caller: Caller, body: PipelineCreate) -> PipelineOut:
    """A new pipeline of the caller over knowledge bases that it may see.

    Raises KnowledgeBaseNotFound, Unprocessable, NotInTeam.
    """
    await limit_naming(caller, body)
    owner_id, scope = await owner_and_scope(caller, body.owner_user_id, "owner_user_id")
    pipeline = Pipeline(
        id=str(uuid.uuid4()),
        name=body.name,
        retrieval_config=body.retrieval_config.model_dump(mode="json", exclude_unset=True),
        generation_config=body.generation_config.model_dump(exclude_unset=True),
        owner_id=owner_id,
    )
    return await caller.platform.database.write(_add, caller.platform, scope, pipeline, body)


def _add(
    unit: Unit, platform: Platform, scope: Scope, pipeline: Pipeline, body: PipelineCreate
) -> PipelineOut:
    share(unit, platform, pipeline, scope, body)
    ids = _checked(unit.session, scope, body.knowledge_base_ids)
    _check_filter(unit.session, scope, pipeline, ids)
    unit.session.add(pipeline)
    unit.session.flush()
    unit.session.add_all(_sources(pipeline.id, ids))
    return _render(pipeline, ids)


async def list_page(caller: Caller, query: PipelineQuery) -> tuple[list[PipelineOut], int]:
    """The visible pipelines, oldest first, and how many there are."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_page, scope, query)


def _page(session: Session, scope: Scope, query: PipelineQuery) -> tuple[list[PipelineOut], int]:
    condition: ColumnElement[bool] = scope.sees(Pipeline)
    if query.owner_user_id is not None:
        condition &= or_(Pipeline.owner_id == query.owner_user_id, Pipeline.owner_id.is_(None))
    total = session.scalar(select(func.count()).select_from(Pipeline).where(condition))
    ordered = select(Pipeline).where(condition).order_by(Pipeline.created_at, Pipeline.id)
    rows = session.scalars(ordered.limit(query.limit).offset(query.offset)).all()
    ids = _ids_of(session, scope, [row.id for row in rows])
    return [_render(row, ids.get(row.id, [])) for row in rows], int(total or 0)


async def get(caller: Caller, pipeline_id: str) -> PipelineOut:
    """One pipeline. Raises PipelineNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_get, scope, pipeline_id)


def _get(session: Session, scope: Scope, pipeline_id: str) -> PipelineOut:
    return _render_visible(session, scope, find(session, scope, pipeline_id))


async def update(caller: Caller, pipeline_id: str, change: PipelineUpdate) -> PipelineOut:
    """Change the name, the knowledge bases, how it retrieves or answers, or the visibility.

    Knowledge bases that the caller can't see stay until the list is sent.

    Raises PipelineNotFound, NotOwner, KnowledgeBaseNotFound, Unprocessable, NotInTeam.
    """
    await limit_naming(caller, change)
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_update, caller, scope, pipeline_id, change)


def _update(
    unit: Unit, caller: Caller, scope: Scope, pipeline_id: str, change: PipelineUpdate
) -> PipelineOut:
    pipeline = find_own(unit.session, scope, pipeline_id)
    if change.name is not None:
        pipeline.name = change.name
    before = sharing_of(pipeline)
    share_anew(unit, caller.platform, pipeline, scope, change)
    note_sharing(unit, caller, "pipeline", pipeline, before)
    if change.retrieval_config is not None:
        pipeline.retrieval_config = change.retrieval_config.model_dump(mode="json", exclude_unset=True)
    if change.generation_config is not None:
        pipeline.generation_config = change.generation_config.model_dump(exclude_unset=True)
    if change.knowledge_base_ids is not None:
        _replace_sources(unit.session, scope, pipeline_id, change.knowledge_base_ids)
    if change.retrieval_config is not None or change.knowledge_base_ids is not None:
        sources = select(PipelineSource.knowledge_base_id).where(PipelineSource.pipeline_id == pipeline_id)
        _check_filter(unit.session, scope, pipeline, list(unit.session.scalars(sources)))
    return _render_visible(unit.session, scope, pipeline)


def _check_filter(session: Session, scope: Scope, pipeline: Pipeline, base_ids: Sequence[str]) -> None:
    """Check the pipeline's own filter against the fields of its knowledge bases. Raises Unprocessable."""
    fixed = RetrievalConfig.model_validate(pipeline.retrieval_config).metadata_filter
    bind(session, scope, base_ids, [FilterSource(fixed, ("body", "retrieval_config", "metadata_filter"))])


def _replace_sources(session: Session, scope: Scope, pipeline_id: str, base_ids: Sequence[str]) -> None:
    ids = _checked(session, scope, base_ids)
    session.execute(delete(PipelineSource).where(PipelineSource.pipeline_id == pipeline_id))
    session.add_all(_sources(pipeline_id, ids))
    session.flush()


async def remove(caller: Caller, pipeline_id: str) -> None:
    """Delete a pipeline; its knowledge bases stay. Raises PipelineNotFound, NotOwner."""
    scope = await scope_of(caller.platform, caller.principal)
    await caller.platform.database.write(_remove, scope, pipeline_id)


def _remove(unit: Unit, scope: Scope, pipeline_id: str) -> None:
    unit.session.delete(find_own(unit.session, scope, pipeline_id))


def _checked(session: Session, scope: Scope, ids: Sequence[str]) -> list[str]:
    """The ids once each, all of them visible. Raises KnowledgeBaseNotFound naming the first that is not."""
    unique_ids = list(dict.fromkeys(ids))
    query = select(KnowledgeBase.id).where(KnowledgeBase.id.in_(unique_ids), scope.sees(KnowledgeBase))
    visible_ids = set(session.scalars(query))
    missing = next((kb_id for kb_id in unique_ids if kb_id not in visible_ids), None)
    if missing is not None:
        raise KnowledgeBaseNotFound(f"Knowledge base not found: {missing}")
    return unique_ids


def _sources(pipeline_id: str, ids: Sequence[str]) -> list[PipelineSource]:
    return [
        PipelineSource(pipeline_id=pipeline_id, position=at, knowledge_base_id=kb)
        for at, kb in enumerate(ids)
    ]


def _ids_of(session: Session, scope: Scope, pipelines: Sequence[str]) -> dict[str, list[str]]:
    """For each pipeline, the ids of its knowledge bases that the caller may see."""
    query = (
        select(PipelineSource.pipeline_id, PipelineSource.knowledge_base_id)
        .join(KnowledgeBase, KnowledgeBase.id == PipelineSource.knowledge_base_id)
        .where(PipelineSource.pipeline_id.in_(pipelines), scope.sees(KnowledgeBase))
        .order_by(PipelineSource.pipeline_id, PipelineSource.position)
    )
    ids_by_pipeline: dict[str, list[str]] = {}
    for pipeline_id, kb_id in session.execute(query):
        ids_by_pipeline.setdefault(pipeline_id, []).append(kb_id)
    return ids_by_pipeline


def _render_visible(session: Session, scope: Scope, pipeline: Pipeline) -> PipelineOut:
    """The record of a pipeline, with the ids of the knowledge bases that the caller may see."""
    return _render(pipeline, _ids_of(session, scope, [pipeline.id]).get(pipeline.id, []))


def _render(pipeline: Pipeline, ids: list[str]) -> PipelineOut:
    return PipelineOut(
        id=pipeline.id,
        name=pipeline.name,
        knowledge_base_ids=ids,
        created_at=pipeline.created_at,
        owner_user_id=pipeline.owner_id,
        visibility=pipeline.visibility,
        team_id=pipeline.team_id,
        organization_id=pipeline.organization_id,
        metadata_filter=pipeline.retrieval_config.get("metadata_filter"),
    )
