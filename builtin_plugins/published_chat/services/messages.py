"""A visitor's question: counted, asked with the owner's rights, streamed, kept."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from builtin_plugins.published_chat.errors import ChatClosed, DailyLimit
from builtin_plugins.published_chat.models import Day, Endpoint, VisitorSession, VisitorTurn
from builtin_plugins.published_chat.schemas import ChatAnswer, ChatMessage, CitedSource, RagConfig
from builtin_plugins.published_chat.services.doors import Door
from builtin_plugins.published_chat.tokens import Visitor
from kernel.sdk import (
    BadRequest,
    Conflict,
    NotFound,
    Platform,
    Unit,
    Unprocessable,
    contracts,
    utc_now,
)

log = logging.getLogger("platform.published_chat")

_SHOWN = 300
_CITED = re.compile(r"\[(\d{1,3})\]")

Pieces = AsyncGenerator[str | ChatAnswer, None]


@dataclass(frozen=True)
class Question:
    """A counted question whose answer is about to begin."""

    door: Door
    visitor: Visitor
    conversation_id: str
    turn: contracts.OpenTurn
    events: contracts.PipelineEvents


def holder_of(endpoint_id: str, session_id: str) -> str:
    """Whose a session's conversations are, for the plugin that keeps them."""
    return f"published_chat:{endpoint_id}:{session_id}"


async def ask(door: Door, visitor: Visitor, message: ChatMessage) -> Pieces:
    """Begin an answer: texts, then the whole. Raises ChatClosed, DailyLimit, and what asking raises."""
    platform = door.owner.platform
    await _count(platform, door, visitor)
    conversation_id = message.conversation_id or visitor.session_id
    turn = await platform.hooks.ask(
        contracts.open_turn,
        caller=door.owner,
        pipeline_id=door.endpoint.pipeline_id,
        question=message.question,
        conversation_id=conversation_id,
        holder=holder_of(door.endpoint.id, visitor.session_id),
    )
    if turn is None:
        raise ChatClosed()
    try:
        events = await _ask_pipeline(door, message.question, turn.history)
    except BaseException:  # also when the visitor leaves: a question that nobody answers must not stay
        await turn.drop()
        raise
    return _answer(Question(door, visitor, conversation_id, turn, events))


async def _ask_pipeline(
    door: Door, question: str, history: Sequence[contracts.PastTurn]
) -> contracts.PipelineEvents:
    """A pipeline that went away since the door was opened closes the chat, too."""
    messages: list[contracts.ChatMessage] = []
    for past in history:
        messages.append(contracts.ChatMessage("user", past.question))
        messages.append(contracts.ChatMessage("assistant", past.answer))
    try:
        events = await door.owner.platform.hooks.ask(
            contracts.ask_pipeline,
            caller=door.owner,
            pipeline_id=door.endpoint.pipeline_id,
            question=question,
            history=messages,
            options=RagConfig.model_validate(door.endpoint.rag_config).asking(),
        )
    except (NotFound, Conflict, BadRequest, Unprocessable) as error:
        log.warning("the published chat '%s' is closed: %s", door.endpoint.slug, error.detail)
        raise ChatClosed() from None
    if events is None:
        raise ChatClosed()
    return events


async def _answer(asked: Question) -> Pieces:
    """The question is forgotten if its answer fails, or if the visitor leaves before its end."""
    done = False
    try:
        async with aclosing(asked.events) as events:
            async for event in events:
                if isinstance(event, contracts.PipelineAnswer):
                    await asked.turn.close(event, event.method)
                    await _record(asked, event)
                    done = True
                    yield _rendered(asked, event)
                else:
                    yield event
    finally:
        if not done:
            await asked.turn.drop()


def _rendered(asked: Question, answer: contracts.PipelineAnswer) -> ChatAnswer:
    cited = {int(number) for number in _CITED.findall(answer.text)}
    numbered = list(enumerate(answer.passages, 1))
    shown = [one for one in numbered if one[0] in cited] or numbered
    return ChatAnswer(
        turn_id=asked.turn.id,
        conversation_id=asked.conversation_id,
        answer=answer.text,
        sources=[
            CitedSource(number=number, source=one.source, page=one.page, text=_short(one.text))
            for number, one in shown
        ],
        refused=not answer.passages,
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1].rstrip() + "…"


async def _count(platform: Platform, door: Door, visitor: Visitor) -> None:
    """Count a question of today, and see the session. Raises DailyLimit."""
    try:
        await platform.database.write(_count_one, door, visitor)
    except IntegrityError:
        # The first question of the day or of the session came twice at once: the rows are there now.
        await platform.database.write(_count_one, door, visitor)


def _count_one(unit: Unit, door: Door, visitor: Visitor) -> None:
    endpoint, now = door.endpoint, utc_now()
    day = day_row(unit.session, endpoint.id, now)
    if day.questions >= endpoint.daily_questions or day.tokens >= endpoint.daily_tokens:
        raise DailyLimit(headers={"Retry-After": str(_seconds_of_today(now))})
    day.questions += 1
    session = unit.session.get(VisitorSession, visitor.session_id)
    if session is None:
        unit.session.add(
            VisitorSession(
                id=visitor.session_id, endpoint_id=endpoint.id, origin=door.origin, last_activity=now
            )
        )
    else:
        session.last_activity = now
    unit.session.flush()


def day_row(session: Session, endpoint_id: str, now: datetime) -> Day:
    """The row of this day, made if it is new, locked until the end of the unit."""
    wanted = (Day.endpoint_id == endpoint_id) & (Day.day == now.date())
    found: Day | None = session.scalar(select(Day).where(wanted).with_for_update())
    if found is None:
        found = Day(
            endpoint_id=endpoint_id,
            day=now.date(),
            **dict.fromkeys(("questions", "answered", "refused", "tokens", "up", "down"), 0),
        )
        session.add(found)
        session.flush()
    return found


def _seconds_of_today(now: datetime) -> int:
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
    return max(1, int((midnight - now).total_seconds()))


async def _record(asked: Question, answer: contracts.PipelineAnswer) -> None:
    platform = asked.door.owner.platform
    try:
        await platform.database.write(_record_one, asked, answer)
    except IntegrityError:  # the first of a new day, twice at once
        await platform.database.write(_record_one, asked, answer)


def _record_one(unit: Unit, asked: Question, answer: contracts.PipelineAnswer) -> None:
    session, now = unit.session, utc_now()
    if session.get(Endpoint, asked.door.endpoint.id) is None:
        return
    day = day_row(session, asked.door.endpoint.id, now)
    day.tokens = min(2**31 - 1, day.tokens + (answer.tokens_used or 0))
    if answer.passages:
        day.answered += 1
    else:
        day.refused += 1
    if session.get(VisitorSession, asked.visitor.session_id) is not None:
        values: dict[str, Any] = {"turn_id": asked.turn.id, "session_id": asked.visitor.session_id}
        session.add(
            VisitorTurn(
                **values,
                conversation_id=asked.conversation_id,
                day=now.date(),
                refused=not answer.passages,
            )
        )
    session.flush()
