"""What was deleted while something under way could bring it again: an archive or a message that holds it, or
the import of the knowledge base. Both run again after a kill or a failure.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Select, delete, exists, func, literal_column, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import Deletion, Document, KnowledgeBase, import_holder
from builtin_plugins.rag.services.parsers import PARSERS
from kernel.sdk import Platform, Unit, held_blobs_of


class DeletedMeanwhile(Exception):
    """The document was deleted after what brings it had been asked for."""


def remember(unit: Unit, platform: Platform, base: KnowledgeBase, sha256: str) -> None:
    """A document was deleted, in this unit, which holds the knowledge base."""
    newest = unit.session.scalar(_newest(platform, base.id))
    if newest is None and not _is_importing(unit.session, base):
        forget_all(unit, base.id)
    else:
        # Not an update: the end of something under way may be about to remove the row.
        same = (Deletion.knowledge_base_id == base.id) & (Deletion.sha256 == sha256)
        unit.session.execute(delete(Deletion).where(same))
        unit.session.add(Deletion(knowledge_base_id=base.id, sha256=sha256, asked_until=newest))


def is_deleted(session: Session, base_id: str, sha256: str, asked: datetime | None) -> bool:
    """Whether it was deleted after it had been asked for; without `asked`, since the import began.

    To be asked after the row was written: from then on nobody else can bring the same bytes and have them
    deleted unseen.
    """
    found = (Deletion.knowledge_base_id == base_id) & (Deletion.sha256 == sha256)
    if asked is not None:
        found &= Deletion.asked_until >= asked
    return bool(session.scalar(select(exists().where(found))))


def forget(unit: Unit, platform: Platform, document: Document) -> None:
    """A document is taken in or was given up, in this unit."""
    if document.content_type in platform.resource(PARSERS).unpacked:
        unit.session.flush()
        forget_ended(unit, platform, document.knowledge_base_id)


def forget_ended(unit: Unit, platform: Platform, base_id: str) -> None:
    """Unless something is under way, nothing can come back.

    To look for that among all that waits is only worth it where something was deleted. Of two that end in
    the same moment neither may know that it is the last. The next deletion does.
    """
    kept = Deletion.knowledge_base_id == base_id
    if not unit.session.scalar(select(exists().where(kept))):
        return
    base = unit.session.get(KnowledgeBase, base_id)
    if base is not None and _is_importing(unit.session, base):
        return
    waiting = _newest(platform, base_id).scalar_subquery()
    unit.session.execute(delete(Deletion).where(kept & waiting.is_(None)))


def _is_importing(session: Session, base: KnowledgeBase) -> bool:
    """An earlier release that ends an import only lets go of its file."""
    return base.importing and bool(held_blobs_of(session, import_holder(base.id)))


def forget_all(unit: Unit, base_id: str) -> None:
    """Nothing of the knowledge base is under way any more."""
    unit.session.execute(delete(Deletion).where(Deletion.knowledge_base_id == base_id))


def _newest(platform: Platform, base_id: str) -> Select[datetime]:
    """When the newest document with others inside was asked for, of those that are being taken in."""
    holding = Document.content_type.in_(platform.resource(PARSERS).unpacked)
    # Spelled out, so that every plan may use the index of these rows alone.
    processing = Document.status == literal_column("'processing'")
    return select(func.max(Document.uploaded_at)).where(
        Document.knowledge_base_id == base_id, processing, holding
    )
