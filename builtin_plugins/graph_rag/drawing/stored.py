"""The graphs of a knowledge base, drawn from the database."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ..models import Entity, Graph, Relation
from .svg import Picture, draw

_MOST_RELATIONS = 20_000


def draw_base(session: Session, knowledge_base_id: str, *, most: int, title: str) -> Picture | None:
    """The picture of a knowledge base's graph; None without one. For operators: checks no permissions."""
    graphs = select(Graph.id).where(Graph.maker == "", Graph.knowledge_base_id == knowledge_base_id)
    weight = func.sum(Relation.weight).label("weight")
    query = (
        select(Relation.subject, Relation.object, weight)
        .where(Relation.graph_id.in_(graphs))
        .group_by(Relation.subject, Relation.object)
        .order_by(weight.desc(), Relation.subject, Relation.object)
        .limit(_MOST_RELATIONS)
    )
    edges = [(row.subject, row.object, float(row.weight)) for row in session.execute(query)]
    if not edges:
        return None
    keys = {key for edge in edges for key in edge[:2]}
    named = select(Entity.key, func.min(Entity.name)).where(Entity.graph_id.in_(graphs)).group_by(Entity.key)
    names = {key: name for key, name in session.execute(named) if key in keys}
    return draw(names, edges, most=most, title=title)
