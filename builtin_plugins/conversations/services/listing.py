"""Lists, records and exports of conversations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, func, select
from sqlalchemy.orm import Session

from builtin_plugins.conversations import api
from builtin_plugins.conversations.errors import ConversationPipelineNotFound
from builtin_plugins.conversations.models import Thread, Turn
from builtin_plugins.conversations.schemas import (
    CitationOut,
    ConversationItem,
    ConversationOut,
    ConversationQuery,
    TurnOut,
    TurnQuery,
)
from builtin_plugins.conversations.services.reading import StoredTurn, load, visible_turns
from builtin_plugins.conversations.services.threads import ThreadReach, askable, find_begun, reach_for
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, scope_of

_SNIPPET = 200


async def list_own(caller: Caller, query: ConversationQuery) -> tuple[list[ConversationItem], int]:
    """The conversations that the caller began, the latest first, and how many there are."""
    condition = Thread.holder == caller.principal.subject
    return await caller.platform.database.read(_page, condition, query.limit, query.offset)


async def list_shared(
    caller: Caller, pipeline_id: str, query: ConversationQuery
) -> tuple[list[ConversationItem], int]:
    """The conversations shared with those who may ask a pipeline. Raises PipelineNotFound."""
    if not await askable(caller, [pipeline_id]):
        raise ConversationPipelineNotFound()
    condition = Thread.shared_pipeline_id == pipeline_id
    return await caller.platform.database.read(_page, condition, query.limit, query.offset)


async def list_shared_with(caller: Caller, query: ConversationQuery) -> tuple[list[ConversationItem], int]:
    """What others share in pipelines that the caller may ask without an administrator's rights."""
    platform = caller.platform
    scope = replace(await scope_of(platform, caller.principal), everything=False)
    pipelines = platform.hooks.ask_now(rag.select_pipelines, platform=platform, scope=scope)
    if pipelines is None:
        return [], 0
    condition = (Thread.holder != caller.principal.subject) & Thread.shared_pipeline_id.in_(pipelines)
    return await platform.database.read(_page, condition, query.limit, query.offset)


def _page(
    session: Session, condition: ColumnElement[bool], limit: int, offset: int
) -> tuple[list[ConversationItem], int]:
    begun = condition & Thread.last_activity.is_not(None)
    total = session.scalar(select(func.count()).select_from(Thread).where(begun))
    query = select(Thread, _question(func.max), _question(func.min)).where(begun)
    ordered = query.order_by(Thread.last_activity.desc(), Thread.id.desc())
    rows = session.execute(ordered.limit(limit).offset(offset))
    return [_item(thread, last, first) for thread, last, first in rows], int(total or 0)


def _question(which: Callable[[Any], ColumnElement[int]]) -> ColumnElement[str]:
    """The beginning of a thread's last or first question: the one with the `max` or `min` id."""
    answered = (Turn.thread_id == Thread.id) & Turn.answered_at.is_not(None)
    turn = select(which(Turn.id)).where(answered).correlate(Thread).scalar_subquery()
    return select(func.substr(Turn.question, 1, _SNIPPET)).where(Turn.id == turn).scalar_subquery()


def _item(thread: Thread, last: str, first: str) -> ConversationItem:
    return ConversationItem(
        conversation_id=thread.conversation_id,
        last_activity=thread.last_activity,
        snippet=last,
        first_question=first,
        title=thread.title,
        shared=thread.shared_pipeline_id is not None,
    )


async def get(caller: Caller, conversation_id: str, pipeline_id: str | None) -> ConversationOut:
    """One conversation. Raises ConversationNotFound."""
    reach = await reach_for(caller, conversation_id, pipeline_id)
    return await caller.platform.database.read(_get, reach, conversation_id)


def _get(session: Session, reach: ThreadReach, conversation_id: str) -> ConversationOut:
    return record(session, reach.holder, find_begun(session, reach, conversation_id))


def record(session: Session, holder: str, thread: Thread) -> ConversationOut:
    """The record as this holder sees it."""
    turns = session.scalar(select(counted()).where(Thread.id == thread.id))
    return record_of(holder, thread, turns or 0)


def counted() -> ScalarSelect[int]:
    """The number of turns in a thread."""
    answered = (Turn.thread_id == Thread.id) & Turn.answered_at.is_not(None)
    return select(func.count()).select_from(Turn).where(answered).correlate(Thread).scalar_subquery()


def record_of(holder: str, thread: Thread, turns: int) -> ConversationOut:
    """The same for a thread with `turns` turns."""
    return ConversationOut(
        conversation_id=thread.conversation_id,
        title=thread.title,
        created_at=thread.created_at,
        last_activity=thread.last_activity,
        turns=turns,
        own=thread.holder == holder,
        shared=thread.shared_pipeline_id is not None,
        shared_pipeline_id=thread.shared_pipeline_id,
    )


async def list_turns(caller: Caller, conversation_id: str, query: TurnQuery) -> tuple[list[TurnOut], int]:
    """Turns in the order of their questions, and how many there are. Raises ConversationNotFound."""
    reach = await reach_for(caller, conversation_id, query.pipeline_id)
    snapshot = caller.platform.database.snapshot
    turns, total = await snapshot(_turns, reach, conversation_id, query.limit, query.offset)
    return [turn_out(one) for one in await visible_turns(caller, turns)], total


def _turns(
    session: Session, reach: ThreadReach, conversation_id: str, limit: int, offset: int
) -> tuple[list[StoredTurn], int]:
    thread = find_begun(session, reach, conversation_id)
    return load(session, Turn.thread_id == thread.id, limit, offset)


def turn_out(turn: api.RecordedTurn) -> TurnOut:
    """A turn as its reader gets it."""
    return TurnOut(
        turn_id=turn.id,
        question=turn.question,
        answer=turn.answer,
        withheld=turn.withheld,
        sources=[CitationOut.model_validate(one, from_attributes=True) for one in turn.citations],
        pipeline_id=turn.pipeline_id,
        model_used=turn.model,
        method=turn.method,
        tokens_used=turn.tokens_used,
        asked_by=turn.asked_by,
        asked_at=turn.asked_at,
        rating=turn.rating,
        rating_comment=turn.rating_comment,
    )
