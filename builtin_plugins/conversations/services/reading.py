"""Turns as their reader may see them: parts that cite a document that the reader can't see are left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from builtin_plugins.conversations import api
from builtin_plugins.conversations.answers import Piece, join, without
from builtin_plugins.conversations.models import Citation, Thread, Turn
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller


@dataclass(frozen=True)
class StoredTurn:
    """A turn's row with its citations, and its conversation."""

    turn: Turn
    conversation_id: str
    citations: Sequence[Citation]

    @property
    def pieces(self) -> list[Piece]:
        """The answer in pieces."""
        return [(text, list(numbers)) for text, numbers in self.turn.pieces]


def load(
    session: Session, condition: ColumnElement[bool], limit: int, offset: int, *, newest_first: bool = False
) -> tuple[list[StoredTurn], int]:
    """Answered turns in the order of their questions or in reverse, and how many there are."""
    condition = condition & Turn.answered_at.is_not(None)
    joined = select(Turn, Thread.conversation_id).join(Thread, Thread.id == Turn.thread_id).where(condition)
    total = session.scalar(select(func.count()).select_from(joined.subquery()))
    ordered = joined.order_by(Turn.id.desc() if newest_first else Turn.id).limit(limit).offset(offset)
    return stored(session, ordered), int(total or 0)


def stored(session: Session, turns: Select[Turn, str]) -> list[StoredTurn]:
    """The turns that `turns` selects (with their conversations' ids), with their citations. Run it in a
    snapshot: if a citation were deleted in between, its text would not be hidden.
    """
    rows = session.execute(turns).all()
    citations: dict[int, list[Citation]] = {}
    ids = [row.Turn.id for row in rows]
    query = select(Citation).where(Citation.turn_id.in_(ids)).order_by(Citation.turn_id, Citation.number)
    for citation in session.scalars(query):
        citations.setdefault(citation.turn_id, []).append(citation)
    return [StoredTurn(row.Turn, row.conversation_id, citations.get(row.Turn.id, ())) for row in rows]


async def visible_turns(caller: Caller, turns: Sequence[StoredTurn]) -> list[api.RecordedTurn]:
    """The turns as seen with the caller's current rights."""
    readable = (
        await readable_documents(caller, {one.document_id for turn in turns for one in turn.citations}) or {}
    )
    return [_visible_turn(turn, readable) for turn in turns]


async def readable_documents(
    caller: Caller, document_ids: Collection[str]
) -> Mapping[str, rag.DocumentEntry] | None:
    """Which of these documents the caller may read; None while no plugin can tell, which must not lead to
    deletions.
    """
    return await caller.platform.hooks.ask(
        rag.find_documents, caller=caller, document_ids=sorted(document_ids)
    )


def _visible_turn(stored: StoredTurn, readable: Mapping[str, rag.DocumentEntry]) -> api.RecordedTurn:
    turn = stored.turn
    gone = {one.number for one in stored.citations if one.document_id not in readable}
    left = without(stored.pieces, gone)
    return api.RecordedTurn(
        id=turn.id,
        conversation_id=stored.conversation_id,
        question=turn.question,
        answer=join(left),
        withheld=turn.withheld or left != stored.pieces,
        citations=[
            _citation(one, readable[one.document_id])
            for one in stored.citations
            if one.number > 0 and one.number not in gone
        ],
        pipeline_id=turn.pipeline_id,
        model=turn.model_used,
        method=turn.method,
        tokens_used=turn.tokens_used,
        asked_by=turn.asked_by,
        asked_at=turn.asked_at,
        rating=turn.rating,
        rating_comment=turn.rating_comment,
    )


def _citation(row: Citation, document: rag.DocumentEntry) -> api.TurnCitation:
    return api.TurnCitation(
        number=row.number,
        source=row.source,
        score=row.score,
        knowledge_base_id=row.knowledge_base_id,
        document_id=row.document_id,
        chunk_id=row.chunk_id,
        page=row.page,
        char_start=row.char_start,
        char_end=row.char_end,
        section=row.section,
        quotes=[rag.QuotedSpan(start, end) for start, end in row.quotes or ()],
        version=document.version,
        sha256=document.sha256,
        superseded_at=document.superseded_at,
    )
