"""The graphs' part in a deletion that can be proven: what goes with a document or a knowledge base."""

from __future__ import annotations

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from kernel.sdk import Unit, contracts

from ..models import Graph
from .writing import drop_of_document

_PLACE = "graphs"


def remove(unit: Unit, base: str, document_id: str | None) -> list[contracts.RemovedPart]:
    """Drop a document's graph now. Those of a whole knowledge base are counted, and dropped by a job."""
    if document_id is None:
        left = count(unit.session, base, None)[_PLACE]
        return [contracts.RemovedPart(_PLACE, left, pending=left > 0)]
    dropped = drop_of_document(unit, document_id)
    return [
        contracts.RemovedPart(_PLACE, dropped.graphs),
        contracts.RemovedPart("graph_relations", dropped.relations),
    ]


def count(session: Session, base: str, document_id: str | None) -> dict[str, int]:
    """How many graphs there are of a document or of a knowledge base."""
    of: ColumnElement[bool] = Graph.knowledge_base_id == base
    if document_id is not None:
        of = Graph.document_id == document_id
    query = select(func.count()).select_from(Graph).where(Graph.maker == "", of)
    return {_PLACE: session.scalar(query) or 0}
