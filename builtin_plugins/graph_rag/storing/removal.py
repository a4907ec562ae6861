"""The graphs' part in provable deletions: what is removed with a document or a knowledge base."""

from __future__ import annotations

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api as rag
from kernel.sdk import Unit

from ..models import Entity, Graph, Relation
from .writing import drop_of_document

_PLACE, _RELATIONS, _ENTITIES = "graphs", "graph_relations", "graph_entities"


def remove(unit: Unit, base: str, document_id: str | None) -> list[rag.RemovedPart]:
    """Drop a document's graph now. For a whole knowledge base, only count them: a job drops them."""
    if document_id is None:
        left = _graphs(unit.session, _of(base, None))
        return [rag.RemovedPart(_PLACE, left, pending=left > 0)]
    dropped = drop_of_document(unit, document_id)
    return [
        rag.RemovedPart(_PLACE, dropped.graphs),
        rag.RemovedPart(_RELATIONS, dropped.relations),
        rag.RemovedPart(_ENTITIES, dropped.orphans),
    ]


def count(session: Session, base: str, document_id: str | None) -> dict[str, int]:
    """Count what is left of a document or a knowledge base; entities only exist with a graph."""
    which = _of(base, document_id)
    ids = select(Graph.id).where(which)
    related = select(func.count()).select_from(Relation).where(Relation.graph_id.in_(ids))
    named = select(func.count()).select_from(Entity).where(Entity.graph_id.in_(ids))
    return {
        _PLACE: _graphs(session, which),
        _RELATIONS: session.scalar(related) or 0,
        _ENTITIES: session.scalar(named) or 0,
    }


def _of(base: str, document_id: str | None) -> ColumnElement[bool]:
    of = Graph.knowledge_base_id == base if document_id is None else Graph.document_id == document_id
    return (Graph.maker == "") & of


def _graphs(session: Session, which: ColumnElement[bool]) -> int:
    return session.scalar(select(func.count()).select_from(Graph).where(which)) or 0
