"""The entities of a collection and their connections, for drawing."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from kernel.sdk import Caller

from .. import schemas_insight as schemas
from ..models import Entity, Graph, Relation
from ..storing.access import GraphSight, sight_of
from .entities import describe

_CONNECTIONS_EACH = 4
"""Connections per entity in a picture; with more, none would be recognizable."""


async def network(caller: Caller, query: schemas.NetworkQuery) -> schemas.Network:
    """The entities named by the most documents, and the strongest connections between them."""
    sight = await sight_of(caller)
    return await caller.platform.database.read(_network, sight, query)


def _network(session: Session, sight: GraphSight, query: schemas.NetworkQuery) -> schemas.Network:
    graphs = sight.graphs
    if query.kb_id is not None:
        graphs = graphs.where(Graph.knowledge_base_id == query.kb_id)
    counts = _most_named(session, graphs, query.limit)
    by_key = describe(session, sight, set(counts))
    places = {key: place for place, key in enumerate(key for key in counts if key in by_key)}
    entities = [
        schemas.NetworkEntity(text=by_key[key].name, label=by_key[key].label, documents=counts[key])
        for key in places
    ]
    return schemas.Network(entities=entities, connections=_connections(session, graphs, places))


def _most_named(session: Session, graphs: Select[int], limit: int) -> dict[str, int]:
    documents, mentions = func.count(), func.sum(Entity.mentions)
    query = (
        select(Entity.key, documents.label("documents"))
        .where(Entity.graph_id.in_(graphs))
        .group_by(Entity.key)
        .order_by(documents.desc(), mentions.desc(), Entity.key)
        .limit(limit)
    )
    return {row.key: row.documents for row in session.execute(query)}


def _connections(
    session: Session, graphs: Select[int], places: Mapping[str, int]
) -> list[schemas.NetworkConnection]:
    weight = func.sum(Relation.weight).label("weight")
    query = (
        select(Relation.subject, Relation.object, weight)
        .where(
            Relation.graph_id.in_(graphs),
            Relation.subject.in_(places),
            Relation.object.in_(places),
            Relation.subject != Relation.object,
        )
        .group_by(Relation.subject, Relation.object)
        .order_by(weight.desc(), Relation.subject, Relation.object)
        .limit(_CONNECTIONS_EACH * len(places))
    )
    return [
        schemas.NetworkConnection(source=places[row.subject], target=places[row.object], weight=row.weight)
        for row in session.execute(query)
    ]
