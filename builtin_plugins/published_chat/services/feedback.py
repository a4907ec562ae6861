"""Visitors' ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.conversations import api as conversations
from builtin_plugins.published_chat.errors import VisitorTurnNotFound
from builtin_plugins.published_chat.models import ChatEndpoint, Day, VisitorSession, VisitorTurn
from builtin_plugins.published_chat.schemas import ChatFeedback, FeedbackItem, FeedbackQuery
from builtin_plugins.published_chat.services import endpoints
from builtin_plugins.published_chat.services.sessions import read_session
from builtin_plugins.published_chat.services.visitor_access import Door
from builtin_plugins.published_chat.tokens import Visitor
from kernel.sdk import Caller, Scope, Unit, scope_of, utc_now

_OF_A_SESSION = 500


async def rate(door: Door, visitor: Visitor, feedback: ChatFeedback) -> None:
    """Store a rating of one of the session's answers. Raises TurnNotFound."""
    await door.owner.platform.database.write(_rate, door, visitor, feedback)


def _rate(unit: Unit, door: Door, visitor: Visitor, feedback: ChatFeedback) -> None:
    condition = (VisitorTurn.turn_id == feedback.turn_id) & (VisitorTurn.session_id == visitor.session_id)
    if feedback.conversation_id is not None:
        condition &= VisitorTurn.conversation_id == feedback.conversation_id
    turn: VisitorTurn | None = unit.session.scalar(select(VisitorTurn).where(condition).with_for_update())
    if turn is None:
        raise VisitorTurnNotFound()
    day: Day | None = unit.session.scalar(
        select(Day).where(Day.endpoint_id == door.endpoint.id, Day.day == turn.day).with_for_update()
    )
    if day is not None:
        day.up += (feedback.rating == "up") - (turn.rating == "up")
        day.down += (feedback.rating == "down") - (turn.rating == "down")
    turn.rating, turn.comment, turn.rated_at = feedback.rating, feedback.comment, utc_now()


async def list_page(caller: Caller, endpoint_id: str, query: FeedbackQuery) -> tuple[list[FeedbackItem], int]:
    """Ratings, the latest first, and how many there are. Raises EndpointNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_page, scope, endpoint_id, query)


def _page(
    session: Session, scope: Scope, endpoint_id: str, query: FeedbackQuery
) -> tuple[list[FeedbackItem], int]:
    endpoints.find(session, scope, endpoint_id)
    rows = select(VisitorTurn).join(VisitorSession, VisitorSession.id == VisitorTurn.session_id)
    rows = rows.where(VisitorSession.endpoint_id == endpoint_id, VisitorTurn.rating.is_not(None))
    if query.rating is not None:
        rows = rows.where(VisitorTurn.rating == query.rating)
    total = session.scalar(select(func.count()).select_from(rows.subquery()))
    ordered = rows.order_by(VisitorTurn.rated_at.desc(), VisitorTurn.turn_id.desc())
    page = session.scalars(ordered.limit(query.limit).offset(query.offset))
    return [FeedbackItem.model_validate(row, from_attributes=True) for row in page], int(total or 0)


async def rated(caller: Caller, pipelines: Sequence[str], limit: int) -> list[conversations.RecordedTurn]:
    """The latest rated turns of chats over these pipelines that the caller sees, with their texts."""
    scope = await scope_of(caller.platform, caller.principal)
    rows = await caller.platform.database.read(_rated, scope, pipelines, limit)
    rated_turns: list[conversations.RecordedTurn] = []
    for endpoint_id, session_id in dict.fromkeys((row.endpoint_id, row.session_id) for row in rows):
        ratings = {row.turn_id: row for row in rows if row.session_id == session_id}
        turns, _ = await read_session(caller, endpoint_id, session_id, _OF_A_SESSION, 0)
        rated_turns += [
            replace(turn, rating=ratings[turn.id].rating, rating_comment=ratings[turn.id].comment)
            for turn in turns
            if turn.id in ratings
        ]
    return rated_turns


def _rated(session: Session, scope: Scope, pipelines: Sequence[str], limit: int) -> Sequence[Any]:
    of = VisitorTurn.rating.is_not(None) & ChatEndpoint.pipeline_id.in_(pipelines) & scope.sees(ChatEndpoint)
    columns = (VisitorTurn.turn_id, VisitorTurn.session_id, VisitorTurn.rating, VisitorTurn.comment)
    rows = (
        select(*columns, VisitorSession.endpoint_id)
        .join(VisitorSession, VisitorSession.id == VisitorTurn.session_id)
        .join(ChatEndpoint, ChatEndpoint.id == VisitorSession.endpoint_id)
        .where(of)
        .order_by(VisitorTurn.rated_at.desc(), VisitorTurn.turn_id.desc())
    )
    return session.execute(rows.limit(limit)).all()
