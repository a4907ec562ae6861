"""Searching as of an earlier time: only the versions of documents that were current then.

What still is current is searched as ever, with a condition on when it was completed. What has been replaced
since is kept without an index: its passages are read, the best by their words are embedded and ranked with
the others.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.answering.words import content_stems
from builtin_plugins.rag.filters.binding import BoundFilter
from builtin_plugins.rag.models import SUPERSEDED, Document, KnowledgeBase
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.reporting import plural
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.vectors.api import VECTORS, Hit, StoredPoint, searched_text
from kernel.sdk import Platform

_MOST_DOCUMENTS: Final = 500
"""Replaced versions of one knowledge base that a search reads, those replaced last."""
_PAGE: Final = 500
_EMBEDDED: Final = 40
"""Passages of replaced versions that are compared by their meaning."""


def current_at(documents: BoundFilter, moment: datetime) -> BoundFilter:
    """Those of documents that were complete at a time, and replaced by none until then."""
    replaced = Document.superseded_at
    condition = and_(Document.completed_at <= moment, or_(replaced.is_(None), replaced > moment))
    conditions = dict.fromkeys(documents.conditions, condition)
    then = replace(documents, conditions=conditions, stored_ids=dict.fromkeys(conditions), is_filter=True)
    return documents.narrowed(replace(then, key=f"as of {moment.isoformat()}"))


async def look_back(inquiry: Inquiry, moment: datetime) -> None:
    """Limit a search to the versions of a time; what is kept no longer is noted."""
    if "as_of" in inquiry.trace.details:
        return
    inquiry.documents = current_at(inquiry.documents, moment)
    inquiry.trace.details["as_of"] = moment.isoformat()
    gone, is_more = await inquiry.platform.database.read(gaps_at, moment, inquiry.documents)
    if gone:
        inquiry.trace.degrade(
            f"as_of: versions of {plural(gone, 'document')} from then may be kept no longer"
        )
    if is_more:
        inquiry.trace.degrade(f"as_of: only the {_MOST_DOCUMENTS} versions replaced last were searched")


def replaced_since(documents: BoundFilter, base_id: str) -> Select[str]:
    """A query for the ids of those among documents that have been replaced, the last ones first."""
    condition: ColumnElement[bool] = documents.conditions[base_id] & readable(documents.reader)
    mine = (Document.knowledge_base_id == base_id) & (Document.status == SUPERSEDED) & condition
    return select(Document.id).where(mine).order_by(Document.superseded_at.desc(), Document.id)


async def replaced_hits(
    platform: Platform, base: KnowledgeBase, documents: BoundFilter, text: str, asked: Embedded
) -> list[Hit]:
    """Passages of replaced versions, with their cosines to the question. Raises Unavailable."""
    points = await _points(platform, base, documents)
    wanted = frozenset(content_stems(text))
    if not points or not wanted:
        return []
    shares = {one.id: _share(wanted, one) for one in points}
    best = sorted(points, key=lambda one: -shares[one.id])[:_EMBEDDED]
    import numpy as np

    texts = [searched_text(one.text, one.payload) for one in best]
    made = await embed(platform, base.embedding_model, texts, "passage")
    cosines: list[float] = np.dot(made.vectors, asked.vectors[0]).tolist()
    return [
        Hit(point, score=cosine, cosine=cosine, words=shares[point.id])
        for point, cosine in zip(best, cosines, strict=True)
    ]


async def _points(platform: Platform, base: KnowledgeBase, documents: BoundFilter) -> list[StoredPoint]:
    ids = await platform.database.read(
        lambda session: session.scalars(replaced_since(documents, base.id).limit(_MOST_DOCUMENTS)).all()
    )
    vectors, found = platform.resource(VECTORS), list[StoredPoint]()
    for one in ids:
        offset, total = 0, 1
        while offset < total:
            page, total = await vectors.points(base.earlier_collection, one, _PAGE, offset)
            found += page
            offset += _PAGE
    return found


def _share(wanted: frozenset[str], point: StoredPoint) -> float:
    """The share of a question's words that a passage has."""
    stems = set(content_stems(searched_text(point.text, point.payload)))
    return len(wanted & stems) / len(wanted)


def gaps_at(session: Session, moment: datetime, documents: BoundFilter) -> tuple[int, bool]:
    """How many documents may have had a version at a time that is kept no longer, and whether more versions
    have been replaced since in one knowledge base than a search reads.
    """
    ids = list(documents.conditions)
    kept = (
        select(Document.identity)
        .where(Document.knowledge_base_id.in_(ids), Document.identity.is_not(None))
        .where(Document.completed_at.is_not(None), readable(documents.reader))
        .group_by(Document.knowledge_base_id, Document.identity)
        .having(func.min(Document.version) > 1, func.min(Document.completed_at) > moment)
        .subquery()
    )
    gone = session.scalar(select(func.count()).select_from(kept)) or 0
    is_more = any(
        session.scalar(replaced_since(documents, one).offset(_MOST_DOCUMENTS).limit(1)) is not None
        for one in ids
    )
    return gone, is_more
