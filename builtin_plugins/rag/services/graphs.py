"""Graphs of knowledge bases: tells the plugin that builds them which documents they are made of."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Platform, Prepared, Scope, Unit, Unprocessable


def check_graph(platform: Platform, graph: bool) -> None:
    """Raise Unprocessable if a graph is wanted but no plugin builds graphs."""
    if graph and not builds_graphs(platform):
        raise Unprocessable.field(
            ("body", "graph"), "no active plugin builds graphs; ask the operator to enable graph_rag", graph
        )


def builds_graphs(platform: Platform) -> bool:
    """Whether a plugin here builds graphs."""
    return bool(platform.hooks.implementations(api.on_graph_switched))


def tell_of_graph(platform: Platform, unit: Unit, base: KnowledgeBase) -> None:
    """Notify plugins that build graphs that this one is wanted or not any more, in the changing unit."""
    platform.hooks.ask_now(
        api.on_graph_switched,
        platform=platform,
        unit=unit,
        knowledge_base_id=base.id,
        owner_id=base.owner_id,
    )


def documents_with_graph(scope: Scope) -> Select[str]:
    """The ids of documents that a scope may read, in knowledge bases that have a graph and that it sees."""
    query = select(Document.id).join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
    completed = (KnowledgeBase.graph, Document.status == "completed")
    return query.where(*completed, scope.sees(KnowledgeBase), readable(scope))


def graph_documents(session: Session, kb_id: str) -> list[api.GraphDocument]:
    """The readable documents of a knowledge base that wants a graph, oldest first."""
    ordered = _graph_documents().where(KnowledgeBase.id == kb_id).order_by(Document.uploaded_at, Document.id)
    return [api.GraphDocument(*row) for row in session.execute(ordered)]


def hold(unit: Unit, document_id: str) -> api.GraphDocument | None:
    """Lock a document that needs a graph, and its knowledge base, until the unit ends."""
    row = _LOCKED_DOCUMENT.first(unit.session, {"wanted": document_id})
    return None if row is None else api.GraphDocument(**row)


async def read_passages(
    platform: Platform, kb_id: str, document_id: str, limit: int, offset: int
) -> api.DocumentPassages:
    """Passages of a document in their order."""
    points, total = await platform.resource(VECTORS).points(f"rag:{kb_id}", document_id, limit, offset)
    passages = [
        api.Passage(
            point.text,
            "",
            0.0,
            point.id,
            document_id,
            point.payload.get("page"),
            point.payload["char_start"],
            point.payload["char_end"],
            knowledge_base_id=kb_id,
            position=point.position,
        )
        for point in points
    ]
    return api.DocumentPassages(passages, total)


def _graph_documents() -> Select[Any]:
    columns: list[Any] = [
        Document.id.label("document_id"),
        KnowledgeBase.id.label("knowledge_base_id"),
        KnowledgeBase.owner_id,
        Document.filename.label("name"),
    ]
    return (
        select(*columns)
        .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
        .where(KnowledgeBase.graph, Document.status == "completed")
    )


_LOCKED_DOCUMENT = Prepared(
    _graph_documents().where(Document.id == bindparam("wanted")).with_for_update(read=True)
)
"""Built once: it runs after every ingestion."""
