"""Pipelines: make, find, change, delete."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.rag.errors import KnowledgeBaseNotFound, NotOwner, PipelineNotFound
from builtin_plugins.rag.models import KnowledgeBase, Pipeline, PipelineSource
from builtin_plugins.rag.schemas import PipelineCreate, PipelineOut, PipelineQuery, PipelineUpdate
from builtin_plugins.rag.services.sharing import share, share_anew
from kernel.sdk import Platform, Principal, Scope, scope_of


async def find(session: AsyncSession, scope: Scope, pipeline_id: str, *, lock: bool = False) -> Pipeline:
    """A pipeline that the caller may see. Raises PipelineNotFound, also for an invisible one."""
    query = select(Pipeline).where(Pipeline.id == pipeline_id, scope.sees(Pipeline))
    found: Pipeline | None = await session.scalar(query.with_for_update() if lock else query)
    if found is None:
        raise PipelineNotFound()
    return found


async def find_own(session: AsyncSession, scope: Scope, pipeline_id: str) -> Pipeline:
    """A pipeline that the caller may change. Raises PipelineNotFound, NotOwner."""
    found = await find(session, scope, pipeline_id, lock=True)
    if not scope.owns(found):
        raise NotOwner()
    return found


async def create(platform: Platform, principal: Principal, wanted: PipelineCreate) -> PipelineOut:
    """A new pipeline of the caller over knowledge bases that it may see."""
    scope = await scope_of(platform, principal)
    made = Pipeline(
        id=str(uuid.uuid4()),
        name=wanted.name,
        retrieval_config=wanted.retrieval_config.model_dump(exclude_unset=True),
        generation_config=wanted.generation_config.model_dump(exclude_unset=True),
        owner_id=principal.id,
    )
    share(made, scope, wanted)
    async with platform.database.unit() as unit:
        ids = await _checked(unit.session, scope, wanted.knowledge_base_ids)
        unit.session.add(made)
        await unit.session.flush()
        unit.session.add_all(_sources(made.id, ids))
    return _render(made, ids)


async def list_page(
    platform: Platform, principal: Principal, query: PipelineQuery
) -> tuple[list[PipelineOut], int]:
    """The visible pipelines, oldest first, and how many there are."""
    scope = await scope_of(platform, principal)
    wanted: ColumnElement[bool] = scope.sees(Pipeline)
    if query.owner_user_id is not None:
        wanted &= or_(Pipeline.owner_id == query.owner_user_id, Pipeline.owner_id.is_(None))
    async with platform.database.read() as session:
        total = await session.scalar(select(func.count()).select_from(Pipeline).where(wanted))
        ordered = select(Pipeline).where(wanted).order_by(Pipeline.created_at, Pipeline.id)
        rows = (await session.scalars(ordered.limit(query.limit).offset(query.offset))).all()
        ids = await _ids_of(session, scope, [row.id for row in rows])
    return [_render(row, ids.get(row.id, [])) for row in rows], int(total or 0)


async def get(platform: Platform, principal: Principal, pipeline_id: str) -> PipelineOut:
    """One pipeline."""
    scope = await scope_of(platform, principal)
    async with platform.database.read() as session:
        found = await find(session, scope, pipeline_id)
        ids = await _ids_of(session, scope, [pipeline_id])
    return _render(found, ids.get(pipeline_id, []))


async def update(
    platform: Platform, principal: Principal, pipeline_id: str, change: PipelineUpdate
) -> PipelineOut:
    """Change the name, the knowledge bases or the visibility.

    Knowledge bases that the caller does not see stay until the list is sent anew.
    """
    scope = await scope_of(platform, principal)
    async with platform.database.unit() as unit:
        found = await find_own(unit.session, scope, pipeline_id)
        if change.name is not None:
            found.name = change.name
        share_anew(found, scope, change)
        if change.knowledge_base_ids is not None:
            ids = await _checked(unit.session, scope, change.knowledge_base_ids)
            mine = PipelineSource.pipeline_id == pipeline_id
            await unit.session.execute(delete(PipelineSource).where(mine))
            unit.session.add_all(_sources(pipeline_id, ids))
            await unit.session.flush()
        ids = (await _ids_of(unit.session, scope, [pipeline_id])).get(pipeline_id, [])
    return _render(found, ids)


async def remove(platform: Platform, principal: Principal, pipeline_id: str) -> None:
    """Delete a pipeline; its knowledge bases stay."""
    scope = await scope_of(platform, principal)
    async with platform.database.unit() as unit:
        await unit.session.delete(await find_own(unit.session, scope, pipeline_id))


async def sources_of(session: AsyncSession, scope: Scope, pipeline_id: str) -> list[KnowledgeBase]:
    """Those knowledge bases of a pipeline that the caller may see, in their order."""
    query = (
        select(KnowledgeBase)
        .join(PipelineSource, PipelineSource.knowledge_base_id == KnowledgeBase.id)
        .where(PipelineSource.pipeline_id == pipeline_id, scope.sees(KnowledgeBase))
        .order_by(PipelineSource.position)
    )
    return list(await session.scalars(query))


async def _checked(session: AsyncSession, scope: Scope, ids: Sequence[str]) -> list[str]:
    """The ids once each, all of them visible. Raises KnowledgeBaseNotFound naming the first that is not."""
    wanted = list(dict.fromkeys(ids))
    query = select(KnowledgeBase.id).where(KnowledgeBase.id.in_(wanted), scope.sees(KnowledgeBase))
    known = set(await session.scalars(query))
    missing = next((kb_id for kb_id in wanted if kb_id not in known), None)
    if missing is not None:
        raise KnowledgeBaseNotFound(f"Knowledge base not found: {missing}")
    return wanted


def _sources(pipeline_id: str, ids: Sequence[str]) -> list[PipelineSource]:
    return [
        PipelineSource(pipeline_id=pipeline_id, position=at, knowledge_base_id=kb)
        for at, kb in enumerate(ids)
    ]


async def _ids_of(session: AsyncSession, scope: Scope, pipelines: Sequence[str]) -> dict[str, list[str]]:
    """By pipeline the ids of those of its knowledge bases that the caller may see."""
    query = (
        select(PipelineSource.pipeline_id, PipelineSource.knowledge_base_id)
        .join(KnowledgeBase, KnowledgeBase.id == PipelineSource.knowledge_base_id)
        .where(PipelineSource.pipeline_id.in_(pipelines), scope.sees(KnowledgeBase))
        .order_by(PipelineSource.pipeline_id, PipelineSource.position)
    )
    found: dict[str, list[str]] = {}
    for pipeline_id, kb_id in await session.execute(query):
        found.setdefault(pipeline_id, []).append(kb_id)
    return found


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
    )
