"""Visitors' sessions, for the owner and for returning visitors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, case, delete, func, select
from sqlalchemy.orm import Session

from builtin_plugins.conversations import api as conversations
from builtin_plugins.published_chat.errors import SessionNotFound
from builtin_plugins.published_chat.models import VisitorSession, VisitorTurn
from builtin_plugins.published_chat.schemas import PastMessage, SessionItem, SessionTurn
from builtin_plugins.published_chat.services import endpoints
from builtin_plugins.published_chat.services.messages import holder_of
from builtin_plugins.published_chat.services.visitor_access import Door
from builtin_plugins.published_chat.tokens import Visitor
from kernel.sdk import Caller, PageQuery, Scope, Unit, scope_of

_RESTORED = 50


async def list_page(caller: Caller, endpoint_id: str, query: PageQuery) -> tuple[list[SessionItem], int]:
    """Sessions, the latest first, and how many there are. Raises EndpointNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_page, scope, endpoint_id, query)


def _page(
    session: Session, scope: Scope, endpoint_id: str, query: PageQuery
) -> tuple[list[SessionItem], int]:
    endpoints.find(session, scope, endpoint_id)
    condition = VisitorSession.endpoint_id == endpoint_id
    total = session.scalar(select(func.count()).select_from(VisitorSession).where(condition))
    rows = (
        select(
            VisitorSession.id.label("session_id"),
            VisitorSession.origin,
            VisitorSession.started_at,
            VisitorSession.last_activity,
            func.count(VisitorTurn.turn_id).label("turns"),
            _how_many(VisitorTurn.refused).label("refused"),
            _how_many(VisitorTurn.rating == "up").label("up"),
            _how_many(VisitorTurn.rating == "down").label("down"),
        )
        .outerjoin(VisitorTurn, VisitorTurn.session_id == VisitorSession.id)
        .where(condition)
        .group_by(VisitorSession.id)
        .order_by(VisitorSession.last_activity.desc(), VisitorSession.id)
    )
    page = session.execute(rows.limit(query.limit).offset(query.offset)).mappings()
    return [SessionItem.model_validate(dict(row)) for row in page], int(total or 0)


def _how_many(condition: ColumnElement[bool] | Any) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


async def list_turns(
    caller: Caller, endpoint_id: str, session_id: str, query: PageQuery
) -> tuple[list[SessionTurn], int]:
    """What was asked in a session, in order. Raises EndpointNotFound, SessionNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    ratings = await caller.platform.database.read(_ratings, scope, endpoint_id, session_id)
    turns, total = await read_session(caller, endpoint_id, session_id, query.limit, query.offset)
    return [_turn(one, *ratings.get(one.id, (None, None))) for one in turns], total


Ratings = dict[int, tuple[str | None, str | None]]


def _ratings(session: Session, scope: Scope, endpoint_id: str, session_id: str) -> Ratings:
    endpoints.find(session, scope, endpoint_id)
    visitor_session = session.get(VisitorSession, session_id)
    if visitor_session is None or visitor_session.endpoint_id != endpoint_id:
        raise SessionNotFound()
    return _ratings_of(session, session_id)


def _ratings_of(session: Session, session_id: str) -> Ratings:
    rows = session.execute(
        select(VisitorTurn.turn_id, VisitorTurn.rating, VisitorTurn.comment).where(
            VisitorTurn.session_id == session_id
        )
    )
    return {row.turn_id: (row.rating, row.comment) for row in rows}


async def read_session(
    caller: Caller, endpoint_id: str, session_id: str, limit: int, offset: int
) -> tuple[Sequence[conversations.RecordedTurn], int]:
    """Turns of a session in order, with the parts of answers that the caller may read, and their number."""
    holder = holder_of(endpoint_id, session_id)
    page = await caller.platform.hooks.ask(
        conversations.read_turns,
        caller=caller,
        holder=holder,
        conversation_id=None,
        limit=limit,
        offset=offset,
    )
    return page or ((), 0)


def _turn(turn: conversations.RecordedTurn, rating: Any, comment: str | None) -> SessionTurn:
    return SessionTurn(
        turn_id=turn.id,
        conversation_id=turn.conversation_id,
        question=turn.question,
        answer=turn.answer,
        withheld=turn.withheld,
        sources=list(dict.fromkeys(one.source for one in turn.citations)),
        model_used=turn.model,
        tokens_used=turn.tokens_used,
        asked_at=turn.asked_at,
        rating=rating,
        comment=comment,
    )


async def restore(door: Door, visitor: Visitor) -> list[PastMessage]:
    """The last questions of a continued session, with the parts of answers that the owner may still read."""
    endpoint_id, session_id = door.endpoint.id, visitor.session_id
    _, total = await read_session(door.owner, endpoint_id, session_id, 1, 0)
    turns, _ = await read_session(door.owner, endpoint_id, session_id, _RESTORED, max(0, total - _RESTORED))
    ratings = await door.owner.platform.database.read(_ratings_of, session_id)
    rated_turns: list[Any] = [(one, ratings.get(one.id, (None, None))[0]) for one in turns]
    return [
        PastMessage(turn_id=one.id, question=one.question, answer=one.answer, rating=rating)
        for one, rating in rated_turns
    ]


async def remove(caller: Caller, endpoint_id: str, session_id: str) -> None:
    """Delete a session with its conversation. Raises EndpointNotFound, NotEndpointOwner, SessionNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    await caller.platform.database.write(_remove, caller, scope, endpoint_id, session_id)
    await caller.platform.database.scrub()


def _remove(unit: Unit, caller: Caller, scope: Scope, endpoint_id: str, session_id: str) -> None:
    endpoints.find_own(unit.session, scope, endpoint_id)
    condition = (VisitorSession.id == session_id) & (VisitorSession.endpoint_id == endpoint_id)
    gone = unit.session.scalars(delete(VisitorSession).where(condition).returning(VisitorSession.id)).all()
    if not gone:
        raise SessionNotFound()
    platform, holder = caller.platform, holder_of(endpoint_id, session_id)
    platform.hooks.ask_now(conversations.forget_turns, platform=platform, unit=unit, holder=holder)
