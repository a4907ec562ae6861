"""A graph's rows, read for deriving RDF from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..models import Alias, Entity, Graph, Passage, Relation
from ..storing.access import Sight
from . import names


@dataclass(frozen=True, slots=True)
class Listed:
    """A graph that is seen, the state in which it is, and the name of all documents of its owner."""

    id: int
    name: str
    stamp: str
    owner: str


@dataclass(frozen=True, slots=True)
class GraphRows:
    """All rows of one graph."""

    graph: Graph
    passages: Sequence[Passage]
    entities: Sequence[Entity]
    aliases: Sequence[Alias]
    relations: Sequence[Relation]


def seen(session: Session, sight: Sight, kb_id: str | None = None) -> list[Listed]:
    """The graphs that are seen, of one knowledge base if it is named; oldest first."""
    where = sight.condition if kb_id is None else sight.condition & (Graph.knowledge_base_id == kb_id)
    columns = (Graph.id, Graph.maker, Graph.document_id, Graph.stamp, Graph.knowledge_base_id)
    rows = session.execute(select(*columns).where(where).order_by(Graph.id))
    return [
        Listed(
            row.id,
            names.graph(row.maker, row.document_id),
            row.stamp,
            names.owner(row.maker, row.knowledge_base_id),
        )
        for row in rows
    ]


def there(session: Session) -> set[tuple[str, str]]:
    """All graphs that there are, by name and state, for clearing away the others."""
    rows = session.execute(select(Graph.maker, Graph.document_id, Graph.stamp))
    return {(names.graph(row.maker, row.document_id), row.stamp) for row in rows}


def rows_of(session: Session, graph_id: int) -> GraphRows | None:
    """The rows of a graph; None where it is gone."""
    found = session.get(Graph, graph_id)
    if found is None:
        return None

    passages = select(Passage).where(Passage.graph_id == graph_id).order_by(Passage.position)
    entities = select(Entity).where(Entity.graph_id == graph_id).order_by(Entity.key)
    aliases = select(Alias).where(Alias.graph_id == graph_id).order_by(Alias.alias)
    relations = select(Relation).where(Relation.graph_id == graph_id).order_by(Relation.number)
    return GraphRows(
        found,
        session.scalars(passages).all(),
        session.scalars(entities).all(),
        session.scalars(aliases).all(),
        session.scalars(relations).all(),
    )
