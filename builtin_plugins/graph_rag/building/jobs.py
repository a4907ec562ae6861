"""Build graphs in the background: for one ingested document, or for a whole knowledge base.

A document's graph is written in one transaction, so nobody sees half of one; a killed worker continues with
the documents that have no graph yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api as rag
from kernel.sdk import Job, LongJob, Platform, Progress, Unit

from ..models import Graph
from ..storing.writing import Dropped, Origin, drop_graphs, drop_of_document, write_graph
from .documents import build
from .engines import ENGINES, identity
from .protocol import ExtractionEngine

log = logging.getLogger("platform.graph_rag")

_PASSAGES = 500
_DROPS_AT_ONCE = 20


class DocumentPayload(BaseModel):
    """The document to build the graph of."""

    document_id: str


class BasePayload(BaseModel):
    """The knowledge base whose graphs to build or drop."""

    knowledge_base_id: str


def on_ingested(unit: Unit, platform: Platform, document_id: str) -> None:
    """Queue the building of a document's graph, if its knowledge base wants one."""
    document = _hold(platform, unit, document_id)
    if document is not None:
        unit.enqueue(BUILD_DOCUMENT, DocumentPayload(document_id=document_id))


def on_deleted(unit: Unit, document_id: str) -> Dropped:
    """Drop a document's graph with everything derived from it; returns what was dropped."""
    return drop_of_document(unit, document_id)


def on_switched(unit: Unit, knowledge_base_id: str, owner_id: int | None) -> None:
    """Queue the job that builds or drops the graphs of a knowledge base, as wanted now."""
    payload = BasePayload(knowledge_base_id=knowledge_base_id)
    unit.enqueue(BUILD_BASE, payload, owner_id=owner_id, subject=knowledge_base_id)


async def build_document(platform: Platform, payload: DocumentPayload) -> None:
    """Build the graph of one document, replacing any earlier one."""
    document = await platform.database.write(lambda unit: _hold(platform, unit, payload.document_id))
    if document is not None:
        await _build(platform, platform.resource(ENGINES).chosen(), document)


async def build_base(platform: Platform, payload: BasePayload, progress: Progress) -> str | None:
    """Drop a knowledge base's unwanted graphs, and build missing ones."""
    base = payload.knowledge_base_id
    extractor = platform.resource(ENGINES).chosen()
    missing, unwanted = await platform.database.read(_difference, platform, base, identity(extractor))
    for at in range(0, len(unwanted), _DROPS_AT_ONCE):
        await platform.database.write(drop_graphs, unwanted[at : at + _DROPS_AT_ONCE])
    if unwanted:
        await platform.database.scrub()
    if not missing:
        return None
    progress.report(0, total=len(missing), unit="documents", message="Building the graph")
    for document in missing:
        await _build(platform, extractor, document)
        progress.advance()
    return f"/v1/rag/knowledge-bases/{base}"


def _difference(
    session: Session, platform: Platform, base: str, engine: str
) -> tuple[list[rag.GraphDocument], list[int]]:
    """Documents without a graph by this engine, and the ids of unwanted graphs."""
    spec = rag.list_graph_documents
    documents = platform.hooks.ask_now(spec, platform=platform, session=session, knowledge_base_id=base) or ()
    columns = (Graph.id, Graph.document_id, Graph.engine)
    rows = session.execute(select(*columns).where(Graph.maker == "", Graph.knowledge_base_id == base)).all()
    built = {row.document_id for row in rows if row.engine == engine}
    ids = {document.document_id for document in documents}
    missing = [document for document in documents if document.document_id not in built]
    return missing, sorted(row.id for row in rows if row.document_id not in ids)


async def _build(platform: Platform, extractor: ExtractionEngine, document: rag.GraphDocument) -> None:
    passages = await _passages(platform, document)
    built = await asyncio.to_thread(build, extractor, passages, relationships=True)
    origin = Origin(
        "",
        document.document_id,
        knowledge_base_id=document.knowledge_base_id,
        title=document.name,
        source=document.name,
    )

    def write(unit: Unit) -> None:
        if _hold(platform, unit, document.document_id) is not None:
            write_graph(unit, origin, built, identity(extractor), relationships=True)

    await platform.database.write(write)


async def _passages(platform: Platform, document: rag.GraphDocument) -> Sequence[rag.Passage]:
    passages: list[rag.Passage] = []
    while True:
        part = await platform.hooks.ask(
            rag.read_passages,
            platform=platform,
            knowledge_base_id=document.knowledge_base_id,
            document_id=document.document_id,
            limit=_PASSAGES,
            offset=len(passages),
        )
        if part is None or not part.passages:
            return passages
        passages += part.passages
        if len(passages) >= part.total:
            return passages


def _hold(platform: Platform, unit: Unit, document_id: str) -> rag.GraphDocument | None:
    spec = rag.hold_graph_document
    return platform.hooks.ask_now(spec, platform=platform, unit=unit, document_id=document_id)


BUILD_DOCUMENT = Job("graph_rag.build_document", DocumentPayload, build_document, retries=20)
BUILD_BASE = LongJob(
    "graph_rag.build_base",
    BasePayload,
    build_base,
    title="Bring the graph of a knowledge base up to date",
    lane="large",
)
