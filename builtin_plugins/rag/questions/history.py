"""Searching as of an earlier time: only the versions of documents that were current then.

What still is current is searched as ever, with a condition on when it was completed. What has been replaced
since is searched by its words, as its vectors may be of an earlier model: the best passages are embedded
again and ranked with the others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.filters.binding import BoundFilter
from builtin_plugins.rag.models import Document
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.reporting import plural
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.schemas import QueryRequest


def current_at(documents: BoundFilter, moment: datetime, attachments: Collection[str] = ()) -> BoundFilter:
    """Those of documents that were complete at a time, and replaced by none until then; and what is attached
    to the question, whenever it came.
    """
    replaced = Document.superseded_at
    then = and_(Document.completed_at <= moment, or_(replaced.is_(None), replaced > moment))
    condition = or_(then, Document.id.in_(attachments)) if attachments else then
    conditions = dict.fromkeys(documents.conditions, condition)
    key = f"as of {moment.isoformat()}, attached {sorted(attachments)}"
    stored = dict.fromkeys(conditions)
    return documents.narrowed(
        replace(documents, conditions=conditions, stored_ids=stored, key=key, is_filter=True)
    )


async def look_back(inquiry: Inquiry, moment: datetime) -> None:
    """Limit a search to the versions of a time; what is kept no longer is noted."""
    if "as_of" in inquiry.trace.details:
        return
    attachments = inquiry.request.attachments if isinstance(inquiry.request, QueryRequest) else ()
    inquiry.documents = current_at(inquiry.documents, moment, attachments)
    inquiry.trace.details["as_of"] = moment.isoformat()
    gone = await inquiry.platform.database.read(gaps_at, moment, inquiry.documents)
    if gone:
        inquiry.trace.degrade(
            f"as_of: versions of {plural(gone, 'document')} from then may be kept no longer"
        )


def gaps_at(session: Session, moment: datetime, documents: BoundFilter) -> int:
    """How many documents may have had a version at a time that is kept no longer."""
    gaps = (
        select(Document.identity)
        .where(Document.knowledge_base_id.in_(documents.conditions), Document.identity.is_not(None))
        .where(Document.completed_at.is_not(None), readable(documents.reader))
        .group_by(Document.knowledge_base_id, Document.identity)
        .having(func.min(Document.version) > 1, func.min(Document.completed_at) > moment)
        .subquery()
    )
    return session.scalar(select(func.count()).select_from(gaps)) or 0
