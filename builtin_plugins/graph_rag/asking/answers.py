"""Answers to questions about entities and documents (wire-facts 14)."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import distinct, func, select
from sqlalchemy.orm import Session

from kernel.sdk import Caller

from .. import schemas
from ..errors import EntityNotFound
from ..models import Alias, Entity, Graph, GraphPassage, Relation
from ..storing.access import GraphSight, sight_of
from . import entities
from .entities import KnownEntity, describe
from .labels import meaning
from .walking import Reached, reach

_MOST_DOCUMENTS = 50
_MOST_NAMES = 20


async def retrieve(caller: Caller, request: schemas.RetrieveRequest) -> schemas.Retrieved:
    """Find entities related to those that the query names."""
    started = time.perf_counter()
    sight = await sight_of(caller)
    related = await caller.platform.database.read(_related, sight, request)
    took = round((time.perf_counter() - started) * 1000, 2)
    return schemas.Retrieved(
        query=request.query, related_entities=related, entity_count=len(related), retrieval_time_ms=took
    )


def _related(
    session: Session, sight: GraphSight, request: schemas.RetrieveRequest
) -> list[schemas.RelatedEntity]:
    named = entities.named_in(session, sight, request.query)
    if not named:
        return []
    keys = entities.names_of(named)
    reached = reach(session, sight, keys, request.traversal_depth, request.limit)
    by_key = describe(session, sight, {one.key for one in reached})
    return [
        schemas.RelatedEntity(
            text=by_key[one.key].name,
            label=by_key[one.key].label,
            predicate=one.predicate,
            type=one.kind,
        )
        for one in reached
        if one.key in by_key
    ]


async def search(caller: Caller, request: schemas.SearchRequest) -> schemas.EntitiesFound:
    """Entities by name."""
    sight = await sight_of(caller)
    entities_found = await caller.platform.database.read(entities.search, sight, request.query, request.limit)
    rendered = [_entity(one) for one in entities_found]
    return schemas.EntitiesFound(query=request.query, entities=rendered, entity_count=len(rendered))


async def context(caller: Caller, request: schemas.ContextRequest) -> schemas.EntityContext:
    """An entity with its neighborhood. Raises EntityNotFound."""
    sight = await sight_of(caller)
    return await caller.platform.database.read(_context, sight, request)


def _context(session: Session, sight: GraphSight, request: schemas.ContextRequest) -> schemas.EntityContext:
    entity = entities.find(session, sight, request.entity_text)
    if entity is None:
        raise EntityNotFound()
    window = request.context_window
    near = reach(session, sight, entity.keys, 1, 10 * window) if request.include_neighbors else []
    return schemas.EntityContext(
        entity=_entity(entity),
        related_entities=_neighbors(session, sight, near),
        documents=_documents(session, sight, entity.keys),
        passages=_passages(session, sight, entity.keys, window),
        also_called=_also_called(session, sight, entity.keys),
        context_window=window,
    )


def _entity(entity: KnownEntity) -> schemas.EntityOut:
    return schemas.EntityOut(text=entity.name, label=entity.label, description=meaning(entity.label))


def _neighbors(session: Session, sight: GraphSight, reached: Sequence[Reached]) -> list[schemas.Neighbor]:
    by_key = describe(session, sight, {one.key for one in reached})
    return [
        schemas.Neighbor(text=by_key[one.key].name, label=by_key[one.key].label, predicate=one.predicate)
        for one in reached
        if one.key in by_key
    ]


def _naming(sight: GraphSight, keys: Collection[str]) -> Any:
    return select(Graph).join(Entity).where(sight.condition, Entity.key.in_(keys))


def _documents(session: Session, sight: GraphSight, keys: Collection[str]) -> list[schemas.DocumentRef]:
    counted = func.sum(Entity.mentions)
    query = (
        _naming(sight, keys)
        .with_only_columns(Graph.document_id, Graph.title)
        .group_by(Graph.id, Graph.document_id, Graph.title)
        .order_by(counted.desc(), Graph.document_id)
    )
    rows = session.execute(query.limit(_MOST_DOCUMENTS))
    return [schemas.DocumentRef(id=row.document_id, title=row.title) for row in rows]


def _passages(
    session: Session, sight: GraphSight, keys: Collection[str], window: int
) -> list[schemas.PassageRef]:
    """The first passage that names the entity in each of the documents that name it most."""
    first = (
        _naming(sight, keys)
        .with_only_columns(Graph.id, func.min(Entity.position).label("position"))
        .group_by(Graph.id)
        .order_by(func.sum(Entity.mentions).desc(), Graph.id)
        .limit(window)
        .subquery()
    )
    query = (
        select(Graph.document_id, GraphPassage.text, GraphPassage.char_start, GraphPassage.char_end)
        .join(first, (first.c.id == GraphPassage.graph_id) & (first.c.position == GraphPassage.position))
        .join(Graph, Graph.id == GraphPassage.graph_id)
        .order_by(Graph.id)
    )
    return [schemas.PassageRef(**row._mapping) for row in session.execute(query)]


def _also_called(session: Session, sight: GraphSight, keys: Collection[str]) -> list[schemas.SameAs]:
    query = (
        select(Alias.name, Alias.reason, Graph.document_id, GraphPassage.text, Alias.start, Alias.end)
        .join(Graph, Graph.id == Alias.graph_id)
        .join(
            GraphPassage,
            (GraphPassage.graph_id == Alias.graph_id) & (GraphPassage.position == Alias.position),
        )
        .where(sight.condition, Alias.key.in_(keys))
        .order_by(Alias.alias, Graph.document_id)
        .limit(_MOST_NAMES)
    )
    return [
        schemas.SameAs(
            text=row.name,
            reason=row.reason,
            document_id=row.document_id,
            evidence=row.text[row.start : row.end],
        )
        for row in session.execute(query)
    ]


async def stats(caller: Caller) -> schemas.Stats:
    """Count what the caller sees."""
    sight = await sight_of(caller)
    return await caller.platform.database.read(_stats, sight)


def _stats(session: Session, sight: GraphSight) -> schemas.Stats:
    documents = session.scalar(select(func.count()).select_from(Graph).where(sight.condition)) or 0
    related = select(func.count()).select_from(Relation).where(Relation.graph_id.in_(sight.graphs))
    is_visible = Entity.graph_id.in_(sight.graphs)
    entity_count = session.scalar(select(func.count(distinct(Entity.key))).where(is_visible)) or 0
    counted = func.count(distinct(Entity.key))
    types = select(Entity.label, counted).where(is_visible).group_by(Entity.label).order_by(Entity.label)
    return schemas.Stats(
        nodes=documents + entity_count,
        relationships=session.scalar(related) or 0,
        documents=documents,
        entities=entity_count,
        entity_types={row[0]: row[1] for row in session.execute(types)},
    )


async def documents(caller: Caller, query: schemas.DocumentsQuery) -> schemas.GraphDocuments:
    """The documents with a graph that the caller sees, newest first."""
    sight = await sight_of(caller)
    return await caller.platform.database.snapshot(_listed, sight, query)


def _listed(session: Session, sight: GraphSight, query: schemas.DocumentsQuery) -> schemas.GraphDocuments:
    where = sight.condition
    if query.kb_id is not None:
        where &= Graph.knowledge_base_id == query.kb_id
    count = session.scalar(select(func.count()).select_from(Graph).where(where)) or 0
    ordered = select(Graph).where(where).order_by(Graph.created_at.desc(), Graph.id.desc())
    documents_out = [
        schemas.GraphDocumentOut(
            id=row.document_id,
            title=row.title,
            source=row.source,
            kb_id=row.knowledge_base_id,
            created_at=row.created_at,
            entity_count=row.entity_count,
        )
        for row in session.scalars(ordered.limit(query.limit).offset(query.offset))
    ]
    return schemas.GraphDocuments(documents=documents_out, count=count)
