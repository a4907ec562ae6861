"""Documents that were deleted while something in progress could bring them back: an archive or message that
contains them, or the import of the knowledge base. Both run again after a kill or a failure.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Select, delete, exists, func, literal_column, select
from sqlalchemy.orm import Session

from builtin_plugins.documents.api import PARSERS
from builtin_plugins.rag.models import Deletion, Document, KnowledgeBase, import_holder
from kernel.sdk import Platform, Unit
from kernel.sdk.storage import held_blobs_of


class DeletedMeanwhile(Exception):
    """The document was deleted after the upload that contains it."""


def remember(unit: Unit, platform: Platform, base: KnowledgeBase, sha256: str) -> None:
    """Record the deletion of a document in this unit, which has locked the knowledge base."""
    newest = unit.session.scalar(_newest(platform, base.id))
    if newest is None and not _is_importing(unit.session, base):
        forget_all(unit, base.id)
    else:
        # Not an update: something that ends may be about to remove the row.
        same = (Deletion.knowledge_base_id == base.id) & (Deletion.sha256 == sha256)
        unit.session.execute(delete(Deletion).where(same))
        unit.session.add(Deletion(knowledge_base_id=base.id, sha256=sha256, asked_until=newest))


def is_deleted(session: Session, base_id: str, sha256: str, asked_at: datetime | None) -> bool:
    """Whether these bytes were deleted since `asked_at`; without `asked_at`, since the import began.

    Call this after writing the row: from then on, nobody else can add and delete the same bytes unnoticed.
    """
    condition = (Deletion.knowledge_base_id == base_id) & (Deletion.sha256 == sha256)
    if asked_at is not None:
        condition &= Deletion.asked_until >= asked_at
    return bool(session.scalar(select(exists().where(condition))))


def forget(unit: Unit, platform: Platform, document: Document) -> None:
    """Clean up after a document that was ingested or given up in this unit."""
    if document.content_type in platform.resource(PARSERS).unpacked:
        unit.session.flush()
        forget_ended(unit, platform, document.knowledge_base_id)


def forget_ended(unit: Unit, platform: Platform, base_id: str) -> None:
    """Forget all deletions unless something in progress could bring documents back.

    The search for that is skipped if nothing was deleted. Of two that end at the same moment, neither may see
    that it is the last; the next deletion cleans up then.
    """
    condition = Deletion.knowledge_base_id == base_id
    if not unit.session.scalar(select(exists().where(condition))):
        return
    base = unit.session.get(KnowledgeBase, base_id)
    if base is not None and _is_importing(unit.session, base):
        return
    waiting = _newest(platform, base_id).scalar_subquery()
    unit.session.execute(delete(Deletion).where(condition & waiting.is_(None)))


def _is_importing(session: Session, base: KnowledgeBase) -> bool:
    """Checks the file, too: an earlier release only releases that when an import ends."""
    return base.importing and bool(held_blobs_of(session, import_holder(base.id)))


def forget_all(unit: Unit, base_id: str) -> None:
    """Forget all deletions in the knowledge base."""
    unit.session.execute(delete(Deletion).where(Deletion.knowledge_base_id == base_id))


def _newest(platform: Platform, base_id: str) -> Select[datetime]:
    """When the newest document being processed that may contain others was uploaded."""
    holding = Document.content_type.in_(platform.resource(PARSERS).unpacked)
    # A literal, so that every plan can use the partial index.
    processing = Document.status == literal_column("'processing'")
    return select(func.max(Document.uploaded_at)).where(
        Document.knowledge_base_id == base_id, processing, holding
    )
