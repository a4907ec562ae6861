"""The rows of the report of contradictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import ContradictingPair, ContradictionReport, Document, KnowledgeBase
from kernel.sdk import Unit

_PAGE: Final = 500


def store_report(unit: Unit, report: ContradictionReport, pairs: Sequence[ContradictingPair]) -> None:
    """Replace the report, without pairs of documents that were deleted or replaced meanwhile."""
    session, kb_id = unit.session, report.knowledge_base_id
    if session.get(KnowledgeBase, kb_id, with_for_update={"read": True, "key_share": True}) is None:
        return
    forget_report(unit, kb_id)
    named = {pair.document_id for pair in pairs} | {pair.other_id for pair in pairs}
    current = _current_documents(session, named)
    current_pairs = [pair for pair in pairs if pair.document_id in current and pair.other_id in current]
    for number, pair in enumerate(current_pairs):
        pair.number = number
        session.add(pair)
    session.add(report)


def _current_documents(session: Session, document_ids: set[str]) -> set[str]:
    """Those that are still current, and stay while this unit lasts."""
    current: set[str] = set()
    for start in range(0, len(document_ids), _PAGE):
        some = Document.id.in_(sorted(document_ids)[start : start + _PAGE])
        query = select(Document.id).where(some, Document.status == "completed").order_by(Document.id)
        current.update(session.scalars(query.with_for_update(read=True, key_share=True)))
    return current


def forget_report(unit: Unit, kb_id: str) -> None:
    """Remove the report of a knowledge base."""
    for table in (ContradictingPair, ContradictionReport):
        unit.session.execute(delete(table).where(table.knowledge_base_id == kb_id))
