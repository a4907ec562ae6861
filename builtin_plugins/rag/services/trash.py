"""The trash: documents that were deleted and can be taken back for some days.

What is there has the audience `TRASH`, which nobody is in: the condition that every query over documents has
keeps it out of lists, counts, searches, answers and exports, services' own included. Its former audience is
kept beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, bindparam, func, select, update
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import DocumentNotFound
from builtin_plugins.rag.metadata.changes import raise_version
from builtin_plugins.rag.models import TRASH, Document, KnowledgeBase, TrashedDocument
from builtin_plugins.rag.rights.reading import readable_in_trash
from builtin_plugins.rag.schemas_trash import Trash, TrashedDocumentOut
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, PageQuery, Prepared, Scope, Unit, audit, scope_of

_TRASHED: Any = TrashedDocument.__table__
_ROWS: Any = Document.__table__
_SAME_FILE = Prepared(
    select(_TRASHED.c.main_id)
    .join(_ROWS, _ROWS.c.id == _TRASHED.c.document_id)
    .where(
        _TRASHED.c.knowledge_base_id == bindparam("base"),
        (_ROWS.c.identity == bindparam("identity"))
        | (_ROWS.c.identity.is_(None) & (_ROWS.c.sha256 == bindparam("sha256"))),
    )
    .order_by(_TRASHED.c.trashed_at)
    .limit(1)
)
ONE_DAY: Final = timedelta(days=1)


def put(unit: Unit, caller: Caller, document: Document, versions: Sequence[Document]) -> None:
    """Put a document into the trash with all its versions; the knowledge base must be locked."""
    moment = unit.now()
    unit.session.add_all(
        TrashedDocument(
            document_id=row.id,
            main_id=document.id,
            knowledge_base_id=row.knowledge_base_id,
            audience_id=row.audience_id,
            trashed_at=moment,
        )
        for row in versions
    )
    for row in versions:
        row.audience_id = TRASH
    raise_version(unit.session, document.knowledge_base_id)
    _audit(unit, caller, "rag.document.trashed", document)


def take_out(unit: Unit, base_id: str, identity: str | None, sha256: str) -> None:
    """Take back the document that an upload brings again, by its identity or, without one, its bytes."""
    row = _SAME_FILE.first(unit.session, {"base": base_id, "identity": identity, "sha256": sha256})
    if row is not None:
        _restore(unit, base_id, row["main_id"])


def former_audience(session: Session, document: Document) -> str | None:
    """Who may read a document, or could before it went into the trash."""
    if document.audience_id != TRASH:
        return document.audience_id
    return session.scalar(
        select(TrashedDocument.audience_id).where(TrashedDocument.document_id == document.id)
    )


async def list_page(caller: Caller, kb_id: str, query: PageQuery, owned: Any) -> Trash:
    """What is in the trash of the caller's knowledge base, the latest first; `owned` finds that.

    Raises KnowledgeBaseNotFound, NotOwner.
    """
    scope = await scope_of(caller.platform, caller.principal)
    days = caller.platform.settings_of(RagSettings).trash_days

    def read(session: Session) -> Trash:
        owned(session, scope, kb_id)
        mine = _main(kb_id) & readable_in_trash(scope)
        total = session.scalar(select(func.count()).select_from(TrashedDocument).where(mine))
        columns = (Document.id, Document.filename, Document.size_bytes, TrashedDocument.trashed_at)
        joined = select(*columns).join(TrashedDocument, TrashedDocument.document_id == Document.id)
        ordered = joined.where(mine).order_by(TrashedDocument.trashed_at.desc(), Document.id)
        rows = session.execute(ordered.limit(query.limit).offset(query.offset))
        items = [
            TrashedDocumentOut(
                document_id=row.id,
                filename=row.filename,
                size_bytes=row.size_bytes,
                trashed_at=row.trashed_at,
                kept_until=row.trashed_at + days * ONE_DAY,
            )
            for row in rows
        ]
        return Trash(items=items, total=total or 0, limit=query.limit, offset=query.offset, days=days)

    return await caller.platform.database.read(read)


def find(session: Session, scope: Scope, kb_id: str, document_id: str) -> Document:
    """A document in the trash, by the id that it was deleted by. Raises DocumentNotFound."""
    mine = _main(kb_id) & (TrashedDocument.document_id == document_id) & readable_in_trash(scope)
    joined = select(Document).join(TrashedDocument, TrashedDocument.document_id == Document.id)
    document: Document | None = session.scalar(joined.where(mine))
    if document is None:
        raise DocumentNotFound()
    return document


def restore(unit: Unit, caller: Caller, document: Document) -> None:
    """Take a document out of the trash, with all its versions; the knowledge base must be locked."""
    _restore(unit, document.knowledge_base_id, document.id)
    _audit(unit, caller, "rag.document.restored", document)


def _restore(unit: Unit, base_id: str, main_id: str) -> None:
    rows = unit.session.scalars(select(TrashedDocument).where(TrashedDocument.main_id == main_id)).all()
    for row in rows:
        same = update(Document).where(Document.id == row.document_id)
        unit.session.execute(same.values(audience_id=row.audience_id))
        unit.session.delete(row)
    unit.session.flush()
    raise_version(unit.session, base_id)


def overdue(session: Session, unit: Unit, days: int) -> tuple[str, str] | None:
    """The knowledge base and the id of a document whose time in the trash is over."""
    old = TrashedDocument.trashed_at <= unit.now() - days * ONE_DAY
    own = TrashedDocument.document_id == TrashedDocument.main_id
    # Of a knowledge base that is gone, a job removes all documents.
    exists = TrashedDocument.knowledge_base_id.in_(select(KnowledgeBase.id))
    query = select(TrashedDocument.knowledge_base_id, TrashedDocument.document_id).where(old, own, exists)
    row = session.execute(query.order_by(TrashedDocument.trashed_at).limit(1)).one_or_none()
    return None if row is None else (row[0], row[1])


def _main(kb_id: str) -> ColumnElement[bool]:
    mine: ColumnElement[bool] = (TrashedDocument.knowledge_base_id == kb_id) & (
        TrashedDocument.document_id == TrashedDocument.main_id
    )
    return mine


def _audit(unit: Unit, caller: Caller, action: str, document: Document) -> None:
    # No file name: it would outlive the document.
    place = {"knowledge_base_id": document.knowledge_base_id}
    audit(unit, action, "document", document.id, after=place, origin=caller.origin)
