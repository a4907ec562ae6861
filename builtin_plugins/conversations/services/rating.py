"""Ratings of answers, by anybody who may read the conversation; and the rated turns, for evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.conversations import api
from builtin_plugins.conversations.errors import TurnNotFound
from builtin_plugins.conversations.models import Thread, Turn
from builtin_plugins.conversations.schemas import TurnRating
from builtin_plugins.conversations.services.reading import StoredTurn, load, visible_turns
from builtin_plugins.conversations.services.threads import ThreadReach, askable, find_begun, reach_for
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Platform, Unit


async def rate(caller: Caller, conversation_id: str, turn_id: int, given: TurnRating) -> None:
    """Store or remove a rating with its comment. Raises ConversationNotFound, TurnNotFound."""
    reach = await reach_for(caller, conversation_id)
    await caller.platform.database.write(_rate, caller.platform, reach, conversation_id, turn_id, given)


def _rate(
    unit: Unit, platform: Platform, reach: ThreadReach, conversation_id: str, turn_id: int, given: TurnRating
) -> None:
    thread = find_begun(unit.session, reach, conversation_id)
    of = (Turn.id == turn_id) & (Turn.thread_id == thread.id) & Turn.answered_at.is_not(None)
    turn = unit.session.scalar(select(Turn).where(of).with_for_update())
    if turn is None:
        raise TurnNotFound()
    platform.hooks.ask_now(
        rag.count_rating,
        platform=platform,
        unit=unit,
        pipeline_id=turn.pipeline_id,
        asked_at=turn.asked_at,
        former=turn.rating,
        rating=given.rating,
    )
    turn.rating = given.rating
    turn.rating_comment = (given.comment or None) if given.rating else None


async def rated(caller: Caller, pipelines: Sequence[str], limit: int) -> list[api.RecordedTurn]:
    """The latest rated turns with these pipelines in conversations that the caller may read."""
    reach = ThreadReach(caller.principal.subject, await askable(caller, list(pipelines)))
    turns = await caller.platform.database.snapshot(_rated, reach, pipelines, limit)
    return await visible_turns(caller, turns)


def _rated(session: Session, reach: ThreadReach, pipelines: Sequence[str], limit: int) -> list[StoredTurn]:
    wanted = reach.threads & Turn.rating.is_not(None) & Turn.pipeline_id.in_(pipelines)
    return load(session, wanted & Thread.last_activity.is_not(None), limit, 0, newest_first=True)[0]
