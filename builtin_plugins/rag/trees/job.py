"""Build the tree of an uploaded document, or those of a whole knowledge base, in a visible job.

Documents with a tree are skipped, as a document's text never changes. `rebuild` builds all again; `since`
then tells which are already done, in case the job runs twice.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.embedding import engine_changed
from builtin_plugins.rag.services.loading import seen_bases
from builtin_plugins.rag.trees.building import FEWEST, MOST, build
from builtin_plugins.vectors.api import EngineMismatch
from kernel.sdk import (
    Caller,
    JobFailed,
    LongJob,
    Platform,
    Progress,
    Scope,
    Unit,
    scope_of,
)


class TreePayload(BaseModel):
    """The knowledge base, and the document if it is only one. Trees older than `since` are built again."""

    knowledge_base_id: str
    document_id: str | None = None
    since: datetime | None = None


async def start(caller: Caller, kb_id: str, *, rebuild: bool) -> str:
    """Queue the trees of a knowledge base; returns the job's id. Raises KnowledgeBaseNotFound, NotOwner."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_start, scope, kb_id, rebuild)


def _start(unit: Unit, scope: Scope, kb_id: str, rebuild: bool) -> str:
    base = knowledge_bases.find_own(unit.session, scope, kb_id)
    payload = TreePayload(knowledge_base_id=kb_id, since=unit.now() if rebuild else None)
    return unit.enqueue(BUILD_TREES, payload, owner_id=scope.account_id or base.owner_id, subject=kb_id)


def queue_one(unit: Unit, document: Document, owner_id: int | None) -> None:
    """Queue the tree of a completed document, in this unit."""
    payload = TreePayload(knowledge_base_id=document.knowledge_base_id, document_id=document.id)
    unit.enqueue(BUILD_TREES, payload, owner_id=owner_id, subject=document.knowledge_base_id)


async def build_trees(platform: Platform, payload: TreePayload, progress: Progress) -> str | None:
    """Build missing trees, document by document; returns the knowledge base's path."""
    total, missing = await platform.database.read(_counts, payload)
    progress.report(total - missing, total=total, unit="documents", message="Building trees")
    after = ""
    while (pair := await platform.database.read(_next, payload, after)) is not None:
        document, base = pair
        try:
            await build(platform, document, base)
        except EngineMismatch as error:
            raise JobFailed(str(engine_changed(base.embedding_model, error).detail)) from None
        progress.advance()
        after = document.id
    return f"/v1/rag/knowledge-bases/{payload.knowledge_base_id}"


def _fitting(payload: TreePayload) -> ColumnElement[bool]:
    """Documents that can have a tree; none in the trash, whose texts no model may see."""
    condition = (Document.knowledge_base_id == payload.knowledge_base_id) & (Document.status == "completed")
    condition &= readable(Scope(None, everything=True))
    if payload.document_id is not None:
        condition &= Document.id == payload.document_id
    return condition & Document.chunk_count.between(FEWEST, MOST)


def _missing(payload: TreePayload) -> ColumnElement[bool]:
    outdated: ColumnElement[bool] = Document.tree_built_at.is_(None)
    if payload.since is not None:
        outdated = or_(outdated, Document.tree_built_at < payload.since)
    return _fitting(payload) & outdated


def _counts(session: Session, payload: TreePayload) -> tuple[int, int]:
    counted = select(func.count()).select_from(Document)
    return (
        int(session.scalar(counted.where(_fitting(payload))) or 0),
        int(session.scalar(counted.where(_missing(payload))) or 0),
    )


def _next(session: Session, payload: TreePayload, after: str) -> tuple[Document, KnowledgeBase] | None:
    query = (
        select(Document, KnowledgeBase)
        .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
        .where(_missing(payload), Document.id > after)
        .order_by(Document.id)
        .limit(1)
    )
    row = session.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])


BUILD_TREES = LongJob(
    "rag.build_trees", TreePayload, build_trees, title="Build summary trees", visible=seen_bases
)
