"""Writing and dropping graphs, in the caller's unit. A change notifies every process of the graph."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.orm import Session

from kernel.sdk import Unit, utc_now

from ..building.documents import BuiltGraph
from ..models import Alias, Entity, Graph, GraphPassage, Relation, seal_of

GRAPHS_CHANGED = "graph_rag.graphs"
"""Topic of the notice that a graph was written or dropped; the key is its id."""

GRAPHS_GONE = "graph_rag.gone"
"""Topic of the notice that a graph was dropped or replaced: stores must remove its contents."""

_PARTS: tuple[Any, ...] = (GraphPassage, Entity, Alias, Relation)
_ROWS_AT_ONCE = 2_000
_GRAPHS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose graph it is, and of which document. Omitted fields keep the existing graph's values."""

    maker: str
    document_id: str
    knowledge_base_id: str | None = None
    title: str | None = None
    source: str | None = None
    details: Mapping[str, Any] | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that were given."""
        named = ("knowledge_base_id", "title", "source", "details")
        return {name: value for name in named if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was dropped: graphs, relations, and entities that no graph of the same owner names any more."""

    graphs: int = 0
    relations: int = 0
    orphans: int = 0


def write_graph(unit: Unit, origin: Origin, built: BuiltGraph, engine: str, *, relationships: bool) -> int:
    """Write the graph of a document, replacing an existing one; returns its id."""
    stamp = uuid.uuid4().hex
    state = {
        "engine": engine,
        "relationships": relationships,
        "entity_count": len(built.entities),
        "relation_count": len(built.relations),
        "stamp": stamp,
        "seal": seal_of(stamp),
    }
    unit.lock(f"graph_rag:{origin.maker}:{origin.document_id}")
    graph_id = _place(unit, origin, state)
    _insert(unit.session, GraphPassage, _passages(graph_id, built))
    _insert(unit.session, Entity, ({"graph_id": graph_id, **_values(one)} for one in built.entities))
    _insert(unit.session, Alias, ({"graph_id": graph_id, **_values(one)} for one in built.aliases))
    _insert(unit.session, Relation, _relations(graph_id, built))
    unit.notify(GRAPHS_CHANGED, str(graph_id))
    return graph_id


def _place(unit: Unit, origin: Origin, state: Mapping[str, Any]) -> int:
    """The row of the graph, without dependent rows."""
    session = unit.session
    there = (Graph.maker == origin.maker) & (Graph.document_id == origin.document_id)
    row_id = session.scalar(select(Graph.id).where(there).with_for_update())  # locks it against being dropped
    if row_id is None:
        graph = Graph(maker=origin.maker, document_id=origin.document_id, created_at=utc_now())
        for name, value in {"details": {}, **origin.fields, **state}.items():
            setattr(graph, name, value)
        session.add(graph)
        session.flush()
        return int(graph.id)
    for table in _PARTS:
        session.execute(delete(table).where(table.graph_id == row_id))
    session.execute(update(Graph).where(Graph.id == row_id).values(**origin.fields, **state))
    unit.notify(GRAPHS_GONE, str(row_id))
    return int(row_id)


def _passages(graph_id: int, built: BuiltGraph) -> Iterable[dict[str, Any]]:
    for passage, mentions in zip(built.passages, built.mentions, strict=True):
        yield {
            "graph_id": graph_id,
            "position": passage.position,
            "passage_id": passage.chunk_id,
            "page": passage.page,
            "char_start": passage.char_start,
            "char_end": passage.char_end,
            "text": passage.text,
            "mentions": [[one.start, one.end, one.key, one.label] for one in mentions],
        }


def _relations(graph_id: int, built: BuiltGraph) -> Iterable[dict[str, Any]]:
    for number, relation in enumerate(built.relations):
        yield {
            "graph_id": graph_id,
            "number": number,
            "subject": relation.link.subject,
            "predicate": relation.link.predicate,
            "object": relation.link.object,
            "kind": relation.link.kind,
            "weight": relation.weight,
            "position": relation.position,
            "start": relation.link.start,
            "end": relation.link.end,
        }


def _values(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}


def _insert(session: Session, table: Any, rows: Iterable[dict[str, Any]]) -> None:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _ROWS_AT_ONCE:
            session.execute(insert(table), batch)
            batch = []
    if batch:
        session.execute(insert(table), batch)


def drop_of_document(unit: Unit, document_id: str) -> Dropped:
    """Drop the graph of a knowledge base's document, and return what went with it."""
    return _drop(unit, (Graph.maker == "") & (Graph.document_id == document_id))


def drop_of_maker(unit: Unit, maker: str, document_id: str | None = None) -> Dropped:
    """Drop what somebody constructed: of one document, or everything."""
    of_maker: ColumnElement[bool] = Graph.maker == maker
    return _drop(unit, of_maker if document_id is None else of_maker & (Graph.document_id == document_id))


def drop_graphs(unit: Unit, graph_ids: Sequence[int]) -> Dropped:
    """Drop these graphs."""
    return _drop(unit, Graph.id.in_(graph_ids))


def _drop(unit: Unit, which: ColumnElement[bool]) -> Dropped:
    session = unit.session
    _hold_owners(unit, which)
    columns = (Graph.id, Graph.maker, Graph.knowledge_base_id)
    # Locked, so that a graph being written is complete, and one that another unit drops isn't counted twice.
    rows = session.execute(select(*columns).where(which).order_by(Graph.id).with_for_update()).all()
    relations = orphans = 0
    for at in range(0, len(rows), _GRAPHS_AT_ONCE):
        part = rows[at : at + _GRAPHS_AT_ONCE]
        ids = [row.id for row in part]
        counted = select(func.count()).select_from(Relation).where(Relation.graph_id.in_(ids))
        relations += session.scalar(counted) or 0
        orphans += sum(_orphans(session, *group) for group in _by_owner(part))
        session.execute(delete(Graph).where(Graph.id.in_(ids)))
        for graph_id in ids:
            unit.notify(GRAPHS_CHANGED, str(graph_id))
            unit.notify(GRAPHS_GONE, str(graph_id))
    return Dropped(len(rows), relations, orphans)


def _hold_owners(unit: Unit, which: ColumnElement[bool]) -> None:
    """Lock the owners: only one unit may drop graphs of an owner at a time. Otherwise two could each assume
    that the other's graph still names a shared entity.
    """
    owners = select(Graph.maker, Graph.knowledge_base_id).where(which).distinct()
    names = {
        f"graph_rag:{maker}" if maker else f"graph_rag::{base}"
        for maker, base in unit.session.execute(owners)
    }
    for name in sorted(names):
        unit.lock(name)


def _by_owner(rows: Sequence[Any]) -> Iterable[tuple[list[int], str, str | None]]:
    ids_by_owner: dict[tuple[str, str | None], list[int]] = {}
    for row in rows:
        owner = (row.maker, None if row.maker else row.knowledge_base_id)
        ids_by_owner.setdefault(owner, []).append(row.id)
    return [(ids, *owner) for owner, ids in ids_by_owner.items()]


def _orphans(session: Session, ids: Sequence[int], maker: str, base: str | None) -> int:
    """How many entities of these graphs are in no other graph of the same maker or knowledge base."""
    same = Graph.maker == maker
    if base is not None:
        same &= Graph.knowledge_base_id == base
    others = select(Graph.id).where(same, Graph.id.not_in(ids))
    other_keys = select(Entity.key).where(Entity.graph_id.in_(others))
    going = select(Entity.key).where(Entity.graph_id.in_(ids), Entity.key.not_in(other_keys)).distinct()
    return session.scalar(select(func.count()).select_from(going.subquery())) or 0
