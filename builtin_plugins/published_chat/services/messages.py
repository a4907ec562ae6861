"""A visitor's question: counted, asked with the owner's rights, streamed, stored."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any

from sqlalchemy import BigInteger, Update, bindparam, case, insert, select, update
from sqlalchemy.exc import IntegrityError

from builtin_plugins.inference import api as inference
from builtin_plugins.published_chat.errors import ChatClosed, DailyLimit
from builtin_plugins.published_chat.models import ChatEndpoint, Day, VisitorSession, VisitorTurn
from builtin_plugins.published_chat.schemas import ChatAnswer, ChatMessage, CitedSource, RagConfig
from builtin_plugins.published_chat.services.visitor_access import Door
from builtin_plugins.published_chat.tokens import Visitor
from builtin_plugins.rag import api as rag
from kernel.sdk import (
    BadRequest,
    Conflict,
    NotFound,
    Platform,
    Unit,
    Unprocessable,
)

log = logging.getLogger("platform.published_chat")

_SHOWN = 300
_CITED = re.compile(r"\[(\d{1,3})\]")

_COUNTS = ("questions", "answered", "refused", "tokens", "up", "down")
_MOST = 2**31 - 1
_ENDPOINT: Any = ChatEndpoint.__table__
_DAY: Any = Day.__table__
_SESSION: Any = VisitorSession.__table__
_TURN: Any = VisitorTurn.__table__
# Without the ORM, which takes longer than the write itself: many visitors may come at once.
_TODAY = (_DAY.c.endpoint_id == bindparam("endpoint")) & (_DAY.c.day == bindparam("today"))
_DAY_EXISTS = select(_DAY.c.day).where(_TODAY)
_ENDPOINT_EXISTS = select(_ENDPOINT.c.id).where(_ENDPOINT.c.id == bindparam("endpoint"))
_SESSION_EXISTS = select(_SESSION.c.id).where(_SESSION.c.id == bindparam("session"))
_SEE_SESSION = (
    update(_SESSION).where(_SESSION.c.id == bindparam("session")).values(last_activity=bindparam("now"))
)
_COUNT_QUESTION = (
    update(_DAY)
    .where(_TODAY, _DAY.c.questions < bindparam("most_questions"), _DAY.c.tokens < bindparam("most_tokens"))
    .values(questions=_DAY.c.questions + 1)
)
_TOKENS = _DAY.c.tokens + bindparam("more_tokens", type_=BigInteger)
_COUNT_ANSWER = (
    update(_DAY)
    .where(_TODAY)
    .values(
        answered=_DAY.c.answered + bindparam("more_answered"),
        refused=_DAY.c.refused + bindparam("more_refused"),
        tokens=case((_TOKENS > _MOST, _MOST), else_=_TOKENS),
    )
)

Pieces = AsyncGenerator[str | ChatAnswer, None]


@dataclass(frozen=True)
class CountedQuestion:
    """A counted question whose answer is about to begin."""

    door: Door
    visitor: Visitor
    conversation_id: str
    turn: rag.OpenTurn
    events: rag.PipelineEvents


def holder_of(endpoint_id: str, session_id: str) -> str:
    """The holder of a session's conversations, for the plugin that stores them."""
    return f"published_chat:{endpoint_id}:{session_id}"


async def ask(door: Door, visitor: Visitor, message: ChatMessage) -> Pieces:
    """Begin an answer: texts, then the whole. Raises ChatClosed, DailyLimit, and what asking raises."""
    platform = door.owner.platform
    await _count(platform, door, visitor)
    conversation_id = message.conversation_id or visitor.session_id
    turn = await platform.hooks.ask(
        rag.open_turn,
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
    except BaseException:  # also when the visitor leaves: an unanswered question must not stay
        await turn.drop()
        raise
    return _answer(CountedQuestion(door, visitor, conversation_id, turn, events))


async def _ask_pipeline(door: Door, question: str, history: Sequence[rag.PastTurn]) -> rag.PipelineEvents:
    """Ask the pipeline; one deleted since the access check closes the chat, too."""
    messages: list[inference.ChatMessage] = []
    for past in history:
        messages.append(inference.ChatMessage("user", past.question))
        messages.append(inference.ChatMessage("assistant", past.answer))
    try:
        events = await door.owner.platform.hooks.ask(
            rag.ask_pipeline,
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


async def _answer(question: CountedQuestion) -> Pieces:
    """Stream the answer; the question is deleted if that fails or the visitor leaves early."""
    done = False
    try:
        async with aclosing(question.events) as events:
            async for event in events:
                if isinstance(event, rag.PipelineAnswer):
                    await question.turn.close(event, event.method)
                    await _record(question, event)
                    done = True
                    yield _rendered(question, event)
                else:
                    yield event
    finally:
        if not done:
            await question.turn.drop()


def _rendered(question: CountedQuestion, answer: rag.PipelineAnswer) -> ChatAnswer:
    cited = {int(number) for number in _CITED.findall(answer.text)}
    numbered = list(enumerate(answer.passages, 1))
    sources = [one for one in numbered if one[0] in cited] or numbered
    return ChatAnswer(
        turn_id=question.turn.id,
        conversation_id=question.conversation_id,
        answer=answer.text,
        sources=[
            CitedSource(
                number=number,
                source=one.source,
                page=one.page,
                section=one.section_at(0),
                text=_short(one.text),
            )
            for number, one in sources
        ],
        refused=not answer.passages,
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1].rstrip() + "…"


async def _count(platform: Platform, door: Door, visitor: Visitor) -> None:
    """Count today's question, and update the session. Raises DailyLimit."""
    try:
        await platform.database.write(_count_one, door, visitor)
    except IntegrityError:
        # Two first questions of the day or session came at once: the rows exist now.
        await platform.database.write(_count_one, door, visitor)


def _count_one(unit: Unit, door: Door, visitor: Visitor) -> None:
    endpoint, now = door.endpoint, unit.now()
    values = {
        "endpoint": endpoint.id,
        "today": now.date(),
        "most_questions": endpoint.daily_questions,
        "most_tokens": endpoint.daily_tokens,
    }
    if not _changes(unit, _COUNT_QUESTION, values):
        if unit.session.connection().execute(_DAY_EXISTS, values).first() is not None:
            raise DailyLimit(headers={"Retry-After": str(_seconds_of_today(now))})
        unit.session.connection().execute(insert(_DAY), _new_day(endpoint.id, now, questions=1))
    visit = {"session": visitor.session_id, "now": now}
    if not _changes(unit, _SEE_SESSION, visit):
        row = {"id": visitor.session_id, "endpoint_id": endpoint.id, "origin": door.origin}
        unit.session.connection().execute(insert(_SESSION), {**row, "started_at": now, "last_activity": now})


def _seconds_of_today(now: datetime) -> int:
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
    return max(1, int((midnight - now).total_seconds()))


async def _record(question: CountedQuestion, answer: rag.PipelineAnswer) -> None:
    platform = question.door.owner.platform
    try:
        await platform.database.write(_record_one, question, answer)
    except IntegrityError:  # two first questions of a day at once
        await platform.database.write(_record_one, question, answer)


def _record_one(unit: Unit, question: CountedQuestion, answer: rag.PipelineAnswer) -> None:
    connection, now, endpoint_id = unit.session.connection(), unit.now(), question.door.endpoint.id
    if connection.execute(_ENDPOINT_EXISTS, {"endpoint": endpoint_id}).first() is None:
        return
    answered, tokens = int(bool(answer.passages)), answer.tokens_used or 0
    counted = {"endpoint": endpoint_id, "today": now.date(), "more_tokens": tokens}
    counted |= {"more_answered": answered, "more_refused": 1 - answered}
    if not _changes(unit, _COUNT_ANSWER, counted):
        first = {"answered": answered, "refused": 1 - answered, "tokens": min(_MOST, tokens)}
        connection.execute(insert(_DAY), _new_day(endpoint_id, now, **first))
    session_id = question.visitor.session_id
    if connection.execute(_SESSION_EXISTS, {"session": session_id}).first() is not None:
        turn = {"turn_id": question.turn.id, "session_id": session_id}
        turn |= {"conversation_id": question.conversation_id, "day": now.date()}
        connection.execute(insert(_TURN), {**turn, "refused": not answered})


def _changes(unit: Unit, statement: Update, values: Mapping[str, Any]) -> bool:
    """Execute; returns whether there was a row to change."""
    return bool(unit.session.connection().execute(statement, dict(values)).rowcount)


def _new_day(endpoint_id: str, now: datetime, **counts: int) -> dict[str, Any]:
    none = dict.fromkeys(_COUNTS, 0)
    return {"endpoint_id": endpoint_id, "day": now.date(), **none, **counts}
