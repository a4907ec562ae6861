"""Remove what a deleted knowledge base leaves behind, its documents' rows and files, in a durable job.

No document can be reached without its knowledge base, so the commit that deletes that one row removes all of
it from every answer. Each run of the job removes a bounded number of documents and leaves the rest to the
next, so that other jobs of its lane get their turn. A document's row, its hold on its file and the event of
its deletion share one transaction: if killed, the job continues with the remaining documents, and a starting
worker removes files that nobody holds.
"""

from __future__ import annotations

from pydantic import BaseModel
from sqlalchemy import delete, select

from builtin_plugins.rag.contradictions.storing import forget_report
from builtin_plugins.rag.events import DocumentDeleted
from builtin_plugins.rag.models import Document, KnowledgeBase, QuestionDay, StorageDay
from builtin_plugins.rag.services.deletions import forget_all
from builtin_plugins.rag.services.graphs import tell_of_graph
from builtin_plugins.rag.services.metadata import remove_declarations, remove_values
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Job, Platform, Unit

_AT_ONCE = 50  # documents per transaction
_OF_ONE_RUN = 500


class RemovalPayload(BaseModel):
    """The deleted knowledge base and its owner."""

    knowledge_base_id: str
    owner_id: int | None


def delete_base(unit: Unit, platform: Platform, base: KnowledgeBase) -> None:
    """Delete a knowledge base in this unit, whatever is in it; a job removes its documents.

    The row goes first: that waits for running ingestions, which may create the collection.
    """
    unit.session.delete(base)
    unit.session.flush()
    forget_all(unit, base.id)
    forget_report(unit, base.id)
    remove_declarations(unit, base.id)
    for figures in (QuestionDay, StorageDay):
        unit.session.execute(delete(figures).where(figures.knowledge_base_id == base.id))
    platform.resource(VECTORS).drop(unit, base.collection)
    platform.resource(VECTORS).drop(unit, base.tree_collection)
    platform.resource(VECTORS).drop(unit, base.earlier_collection)
    platform.resource(VECTORS).drop(unit, base.reading_collection)
    if base.coming_collection is not None:
        platform.resource(VECTORS).drop(unit, base.coming_collection)
    if base.graph:
        tell_of_graph(platform, unit, base)
    unit.enqueue(REMOVE, RemovalPayload(knowledge_base_id=base.id, owner_id=base.owner_id))


async def remove_documents(platform: Platform, payload: RemovalPayload) -> None:
    """Remove documents of a deleted knowledge base, and queue the next run while there are more."""
    for _ in range(0, _OF_ONE_RUN, _AT_ONCE):
        removed = await platform.database.write(_remove_some, platform, payload)
        if removed < _AT_ONCE:
            await platform.database.scrub()
            return
    await platform.database.write(lambda unit: unit.enqueue(REMOVE, payload))


def _remove_some(unit: Unit, platform: Platform, payload: RemovalPayload) -> int:
    query = select(Document).where(Document.knowledge_base_id == payload.knowledge_base_id)
    # In a fixed order: stores lock released blobs, and two removals may share some.
    ordered = query.order_by(Document.sha256).limit(_AT_ONCE).with_for_update()
    documents = unit.session.scalars(ordered).all()
    remove_values(unit, [document.id for document in documents])
    for document in documents:
        platform.blobs.release(unit, document.sha256, document.holder)
        unit.session.delete(document)
        unit.emit(
            DocumentDeleted(
                document_id=document.id,
                knowledge_base_id=payload.knowledge_base_id,
                owner_id=payload.owner_id,
            )
        )
    return len(documents)


REMOVE = Job("rag.remove_knowledge_base", RemovalPayload, remove_documents, retries=20, lane="quick")
