"""Reads the rows of graphs, to derive RDF from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.graph_rag.api import Alias, Entity, Graph, GraphPassage, GraphSight, Relation

from . import names


@dataclass(frozen=True, slots=True)
class VisibleGraph:
    """A visible graph, its state, and the name of its owner's graph."""

    id: int
    name: str
    stamp: str
    owner: str


@dataclass(frozen=True, slots=True)
class VisibleGraphs:
    """How many graphs of an owner are visible, and their states as the sum of their seals."""

    owner: str
    count: int
    seals: int


@dataclass(frozen=True, slots=True)
class GraphRows:
    """All rows of one graph, without the passages' texts."""

    graph: Any
    passages: Sequence[Any]
    entities: Sequence[Any]
    aliases: Sequence[Any]
    relations: Sequence[Any]


def visible_graphs(session: Session, sight: GraphSight, kb_id: str | None = None) -> list[VisibleGraph]:
    """The visible graphs, oldest first; only those of a knowledge base if one is given."""
    where = sight.condition if kb_id is None else sight.condition & (Graph.knowledge_base_id == kb_id)
    columns = (Graph.id, Graph.maker, Graph.document_id, Graph.stamp, Graph.knowledge_base_id)
    rows = session.execute(select(*columns).where(where).order_by(Graph.id))
    return [
        VisibleGraph(
            row.id,
            names.graph(row.maker, row.document_id),
            row.stamp,
            names.owner(row.maker, row.knowledge_base_id),
        )
        for row in rows
    ]


def holdings(session: Session, sight: GraphSight) -> list[VisibleGraphs]:
    """What is visible of each owner, counted by the database: far less to read than the graphs' names."""
    owner = (Graph.maker, Graph.knowledge_base_id)
    query = select(*owner, func.count(), func.sum(Graph.seal)).where(sight.condition).group_by(*owner)
    return [
        VisibleGraphs(names.owner(maker, base), count, int(seals))
        for maker, base, count, seals in session.execute(query)
    ]


def there(session: Session) -> set[tuple[str, str]]:
    """All existing graphs, by name and state, to remove others from stores."""
    rows = session.execute(select(Graph.maker, Graph.document_id, Graph.stamp))
    return {(names.graph(row.maker, row.document_id), row.stamp) for row in rows}


def rows_of(session: Session, graph_id: int) -> GraphRows | None:
    """The rows of a graph; None if it is gone."""
    return next(iter(rows_of_several(session, [graph_id])), None)


def rows_of_several(session: Session, graph_ids: Sequence[int]) -> list[GraphRows]:
    """The rows of those of these graphs that exist, in the order of their ids."""
    columns = (Graph.id, Graph.maker, Graph.document_id, Graph.title, Graph.source, Graph.stamp)
    graphs = session.execute(select(*columns).where(Graph.id.in_(graph_ids)).order_by(Graph.id))
    parts = [_by_graph(session, table, order, graph_ids) for table, order in _ORDERS.items()]
    return [GraphRows(graph, *(part.get(graph.id, []) for part in parts)) for graph in graphs]


def _by_graph(session: Session, table: Any, order: Any, graph_ids: Sequence[int]) -> dict[int, list[Any]]:
    columns = [column for column in table.__table__.columns if column.name != "text"]
    rows_by_graph: dict[int, list[Any]] = {}
    for row in session.execute(select(*columns).where(table.graph_id.in_(graph_ids)).order_by(order)):
        rows_by_graph.setdefault(row.graph_id, []).append(row)
    return rows_by_graph


_ORDERS = {
    GraphPassage: GraphPassage.position,
    Entity: Entity.key,
    Alias: Alias.alias,
    Relation: Relation.number,
}
"""The parts of a graph in the order of `GraphRows`, with the order of their rows."""
