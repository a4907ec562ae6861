"""The report of contradictions as somebody may read it: both documents, and as long as both are current."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from builtin_plugins.inference.api import has_text_model
from builtin_plugins.rag.dates.validity import VALID_FROM, VALID_UNTIL
from builtin_plugins.rag.metadata.rendering import load_metadata
from builtin_plugins.rag.models import (
    ContradictingPair,
    ContradictionReport,
    Document,
    JudgedPair,
    KnowledgeBase,
)
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.schemas_contradictions import (
    ContradictingStatement,
    ContradictionItem,
    ContradictionsOut,
)
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Caller, PageQuery, Platform, Scope, scope_of


class _Side(NamedTuple):
    """One of the two sentences of a pair."""

    document_id: str
    position: int
    start: int
    end: int


class _Page(NamedTuple):
    report: ContradictionReport | None
    pairs: Sequence[tuple[_Side, _Side, bool]]
    total: int
    judged: int
    documents: Mapping[str, Document]


async def read_report(caller: Caller, kb_id: str, query: PageQuery) -> ContradictionsOut:
    """The newest report, a page of it. Raises KnowledgeBaseNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    page = await caller.platform.database.read(_page, scope, kb_id, query)
    metadata = await load_metadata(caller, sorted(page.documents))
    items: list[ContradictionItem] = []
    for one, other, by_model in page.pairs:
        newer, older = [await _statement(caller.platform, page, side, metadata) for side in (one, other)]
        if newer is not None and older is not None:
            found_by = "model" if by_model else "rules"
            items.append(ContradictionItem(newer=newer, older=older, found_by=found_by))
    return ContradictionsOut(
        made_at=None if page.report is None else page.report.made_at,
        is_complete=page.report is None or page.report.is_complete,
        judged_pairs=page.judged,
        has_model=has_text_model(caller.platform),
        items=items,
        total=page.total,
        limit=query.limit,
        offset=query.offset,
    )


def _page(session: Session, scope: Scope, kb_id: str, query: PageQuery) -> _Page:
    knowledge_bases.find(session, scope, kb_id)
    report = session.get(ContradictionReport, kb_id)
    mine = _readable_now(scope, kb_id)
    pairs = select(ContradictingPair).where(
        ContradictingPair.knowledge_base_id == kb_id,
        ContradictingPair.document_id.in_(mine),
        ContradictingPair.other_id.in_(mine),
    )
    total = session.scalar(select(func.count()).select_from(pairs.subquery()))
    ordered = pairs.order_by(ContradictingPair.number).limit(query.limit).offset(query.offset)
    sides = [
        (
            _Side(one.document_id, one.position, one.char_start, one.char_end),
            _Side(one.other_id, one.other_position, one.other_start, one.other_end),
            one.by_model,
        )
        for one in session.scalars(ordered)
    ]
    named = {side.document_id for newer, older, _ in sides for side in (newer, older)}
    documents = {one.id: one for one in session.scalars(select(Document).where(Document.id.in_(named)))}
    judged = 0 if report is None else min(report.judged_pairs, _judged(session, mine))
    return _Page(report, sides, int(total or 0), judged, documents)


def _judged(session: Session, readable_ids: Select[str]) -> int:
    """How many pairs of these documents models have judged."""
    places = (JudgedPair.document_id, JudgedPair.char_start, JudgedPair.other_id, JudgedPair.other_start)
    both = JudgedPair.document_id.in_(readable_ids), JudgedPair.other_id.in_(readable_ids)
    pairs = select(*places).where(*both).distinct().subquery()
    return session.scalar(select(func.count()).select_from(pairs)) or 0


def _readable_now(scope: Scope, kb_id: str) -> Select[str]:
    current = (Document.knowledge_base_id == kb_id) & (Document.status == "completed")
    return select(Document.id).where(current, readable(scope))


async def _statement(
    platform: Platform, page: _Page, side: _Side, metadata: Mapping[str, Mapping[str, Any]]
) -> ContradictingStatement | None:
    """The sentence with its document; None if the document was replaced or deleted this moment."""
    document = page.documents[side.document_id]
    collection = KnowledgeBase(id=document.knowledge_base_id).collection
    points, _ = await platform.resource(VECTORS).points(collection, document.id, 1, side.position)
    if not points:
        return None
    begin = points[0].payload["char_start"]
    values = metadata.get(document.id, {})
    return ContradictingStatement(
        chunk_id=points[0].id,
        chunk_index=side.position,
        text=points[0].text[side.start - begin : side.end - begin],
        page=points[0].payload.get("page"),
        char_start=side.start,
        char_end=side.end,
        document_id=document.id,
        filename=document.filename,
        uploaded_at=document.uploaded_at,
        valid_from=values.get(VALID_FROM),
        valid_until=values.get(VALID_UNTIL),
    )
