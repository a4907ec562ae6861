"""Removals: quotes of deleted documents, old conversations, questions that were never answered."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import delete, exists, func, select
from sqlalchemy.orm import Session

from builtin_plugins.conversations.answers import without
from builtin_plugins.conversations.models import Citation, Thread, Turn
from builtin_plugins.conversations.services.reading import StoredTurn, readable_documents
from builtin_plugins.conversations.settings import ConversationsSettings
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Job, NoPayload, Platform, Principal, Unit

log = logging.getLogger("platform.conversations")

CITATIONS = "conversation_citations"

_AT_ONCE = 200
_MOST_IN_A_DELETION = 2000
_NEVER_ANSWERED = timedelta(hours=24)


async def forget_document(platform: Platform, document_id: str) -> None:
    """Delete what answers quote from a deleted document, and their citations of it."""
    while await platform.database.write(_forget_some, document_id) == _AT_ONCE:
        pass
    await platform.database.scrub()


def _forget_some(unit: Unit, document_id: str) -> int:
    of_document = Citation.document_id == document_id
    ids = select(Citation.turn_id).where(of_document).distinct().order_by(Citation.turn_id).limit(_AT_ONCE)
    turns = unit.session.scalars(
        select(Turn).where(Turn.id.in_(ids)).order_by(Turn.id).with_for_update()
    ).all()
    for turn in turns:
        numbers = unit.session.scalars(
            select(Citation.number).where(Citation.turn_id == turn.id, of_document)
        ).all()
        pieces = StoredTurn(turn, "", ()).pieces
        left = without(pieces, numbers)
        turn.withheld = turn.withheld or left != pieces
        turn.pieces = [list(piece) for piece in left]
        unit.session.execute(delete(Citation).where(Citation.turn_id == turn.id, of_document))
    return len(turns)


def remove_cited(unit: Unit, knowledge_base_id: str, document_id: str | None) -> rag.RemovedPart:
    """Delete what answers quote from a document, in the unit that deletes the document.

    What is too much for one unit, and the documents of a whole knowledge base, are left to the pending event
    of each document's deletion.
    """
    count = cited(unit.session, knowledge_base_id, document_id)
    if document_id is None or count > _MOST_IN_A_DELETION:
        return rag.RemovedPart(CITATIONS, count, pending=count > 0)
    while _forget_some(unit, document_id) == _AT_ONCE:
        pass
    return rag.RemovedPart(CITATIONS, count)


def cited(session: Session, knowledge_base_id: str, document_id: str | None) -> int:
    """How often answers refer to a document, or to any document of a knowledge base."""
    of = Citation.knowledge_base_id == knowledge_base_id
    if document_id is not None:
        of = Citation.document_id == document_id
    return session.scalar(select(func.count()).select_from(Citation).where(of)) or 0


def forget_holder(unit: Unit, holder: str) -> bool:
    """Delete the conversations of a holder and of those below it."""
    below = Thread.holder.startswith(f"{holder}:", autoescape=True)
    unit.session.execute(delete(Thread).where((Thread.holder == holder) | below))
    return True


async def tidy(platform: Platform, _payload: NoPayload) -> None:
    """Once a day: remove what is too old or unanswered, and quotes of documents whose deletion was missed."""
    await platform.database.write(_delete_unanswered)
    days = platform.settings_of(ConversationsSettings).retention_days
    if days:
        removed = await platform.database.write(_delete_old, days)
        log.info("deleted %d conversations without a question for %d days", removed, days)
    await _forget_missing_documents(platform)
    await platform.database.scrub()


def _delete_unanswered(unit: Unit) -> None:
    before = unit.now() - _NEVER_ANSWERED
    unit.session.execute(delete(Turn).where(Turn.answered_at.is_(None), Turn.asked_at < before))
    empty = ~exists().where(Turn.thread_id == Thread.id)
    unit.session.execute(delete(Thread).where(empty, Thread.created_at < before))


def _delete_old(unit: Unit, days: int) -> int:
    old = Thread.last_activity < unit.now() - timedelta(days=days)
    return len(unit.session.scalars(delete(Thread).where(old).returning(Thread.id)).all())


async def _forget_missing_documents(platform: Platform) -> None:
    """Remove quotes of documents that were deleted at the very moment when the answer was stored."""
    caller = Caller(platform, Principal("service", "service:conversations"))
    after = ""
    while ids := await platform.database.read(_cited_after, after):
        there = await readable_documents(caller, ids)
        if there is None:
            return
        for document_id in sorted(set(ids) - there.keys()):
            await forget_document(platform, document_id)
        after = ids[-1]


def _cited_after(session: Session, after: str) -> list[str]:
    query = select(Citation.document_id).where(Citation.document_id > after).distinct()
    return list(session.scalars(query.order_by(Citation.document_id).limit(_AT_ONCE)))


TIDY = Job("conversations.tidy", NoPayload, tidy, schedule="40 3 * * *", lane="quick")


def delete_threads(unit: Unit, holder: str, ids: Collection[int] | None) -> int:
    """Delete these conversations of a holder, or all of them; returns how many."""
    condition = Thread.holder == holder
    if ids is not None:
        condition &= Thread.id.in_(ids)
    return len(unit.session.scalars(delete(Thread).where(condition).returning(Thread.id)).all())
