"""A turn from its question to its answer.

The question is written before the answer is made, as its id orders simultaneous questions. Nobody sees it
before the answer is stored. A failed or abandoned turn is removed; the daily job removes those of killed
processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, exists, insert, update
from sqlalchemy.exc import IntegrityError

from builtin_plugins.conversations.answers import Piece, cut, without
from builtin_plugins.conversations.models import Citation, Thread, Turn
from builtin_plugins.conversations.services.reading import load, readable_documents, visible_turns
from builtin_plugins.conversations.services.threads import ThreadReach, find_id, reach_for
from builtin_plugins.conversations.settings import ConversationsSettings
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Unit, Unprocessable

RESERVED = "mine"
_EXTRACTIVE = "extractive"  # quotes its own passages, but not the history

Record = dict[str, Any]

# Without the ORM, which takes longer than the write itself: many questions may come at once.
_THREAD: Any = Thread.__table__
_TURN: Any = Turn.__table__
_CITATION: Any = Citation.__table__
_NEW_THREAD = insert(_THREAD).returning(_THREAD.c.id)
_NEW_TURN = insert(_TURN).returning(_TURN.c.id)
_ANSWERED = update(_TURN).where(_TURN.c.id == bindparam("turn")).returning(_TURN.c.thread_id)
_ACTIVE = update(_THREAD).where(_THREAD.c.id == bindparam("thread")).values(last_activity=bindparam("now"))


@dataclass(frozen=True)
class AskedQuestion:
    """A question, and its conversation."""

    pipeline_id: str
    question: str


@dataclass(frozen=True)
class PendingTurn:
    """See `rag.OpenTurn`. `earlier` are the documents behind the history's answers."""

    caller: Caller
    thread_id: int
    id: int
    history: Sequence[rag.PastTurn]
    earlier: Mapping[str, str | None]

    async def close(self, answer: rag.PipelineAnswer, method: str) -> None:
        """Store the answer, without what stems from documents deleted meanwhile."""
        rows = [_citation(self.id, number, one) for number, one in enumerate(answer.passages, 1)]
        if answer.model != _EXTRACTIVE:
            rows += [_earlier(self.id, -at, *one) for at, one in enumerate(sorted(self.earlier.items()), 1)]
        readable = await readable_documents(self.caller, {one["document_id"] for one in rows})
        gone = [one for one in rows if readable is not None and one["document_id"] not in readable]
        remaining = [one for one in rows if one not in gone]
        cited = cut(answer.text, is_quotation=answer.model == _EXTRACTIVE)
        pieces = without(cited, [one["number"] for one in gone])
        await self.caller.platform.database.write(_close, self.id, answer, method, pieces, remaining)

    async def drop(self) -> None:
        """Remove the question, and its conversation if it was the first."""
        await self.caller.platform.database.write(_drop, self.id, self.thread_id)


async def open_turn(
    caller: Caller, pipeline_id: str, question: str, conversation_id: str, holder: str | None
) -> PendingTurn:
    """Implements the hook of the same name."""
    if holder is None and conversation_id == RESERVED:
        raise Unprocessable.field(("body", "conversation_id"), f"'{RESERVED}' is reserved; use another id")
    if holder is None:
        reach = await reach_for(caller, conversation_id, pipeline_id)
    else:
        reach = ThreadReach(holder, ())
    asked_question, database = AskedQuestion(pipeline_id, question), caller.platform.database
    try:
        thread_id, turn_id, begun = await database.write(_open, reach, conversation_id, asked_question)
    except IntegrityError:
        # Another question began the same conversation at the same time.
        thread_id, turn_id, begun = await database.write(_open, reach, conversation_id, asked_question)
    history, earlier = ([], {}) if begun else await _history(caller, thread_id)
    return PendingTurn(caller, thread_id, turn_id, history, earlier)


def _open(
    unit: Unit, reach: ThreadReach, conversation_id: str, asked_question: AskedQuestion
) -> tuple[int, int, bool]:
    """The ids of thread and turn, and whether the thread begins with this turn."""
    connection, now = unit.session.connection(), unit.now()
    existing_id = find_id(unit.session, reach, conversation_id)
    if existing_id is None:
        new = {"holder": reach.holder, "conversation_id": conversation_id, "created_at": now}
        thread_id = connection.execute(_NEW_THREAD, new).scalar_one()
    else:
        thread_id = existing_id
    turn = {"thread_id": thread_id, "asked_by": reach.holder, "pipeline_id": asked_question.pipeline_id}
    turn |= {"question": asked_question.question, "pieces": [], "asked_at": now}
    turn_id = connection.execute(_NEW_TURN, turn).scalar_one()
    return thread_id, turn_id, existing_id is None


async def _history(caller: Caller, thread_id: int) -> tuple[list[rag.PastTurn], dict[str, str | None]]:
    most = caller.platform.settings_of(ConversationsSettings).history_turns
    condition = Turn.thread_id == thread_id
    turns, _ = await caller.platform.database.snapshot(load, condition, most, 0, newest_first=True)
    history = [rag.PastTurn(one.question, one.answer) for one in reversed(await visible_turns(caller, turns))]
    return history, {one.document_id: one.knowledge_base_id for turn in turns for one in turn.citations}


def _close(
    unit: Unit,
    turn_id: int,
    answer: rag.PipelineAnswer,
    method: str,
    pieces: list[Piece],
    citations: list[Record],
) -> None:
    connection, now = unit.session.connection(), unit.now()
    values = {
        "pieces": [list(piece) for piece in pieces],
        "withheld": any(text is None for text, _ in pieces),
        "model_used": answer.model[:255],
        "method": method,
        "sources_count": len(answer.passages),
        "confidence": answer.confidence,
        "tokens_used": answer.tokens_used,
        "answered_at": now,
    }
    thread_id = connection.execute(_ANSWERED.values(values), {"turn": turn_id}).scalar()
    if thread_id is None:  # the conversation was deleted while its answer was written
        return
    connection.execute(_ACTIVE, {"thread": thread_id, "now": now})
    if citations:
        connection.execute(insert(_CITATION), citations)


def _citation(turn_id: int, number: int, passage: rag.Passage) -> Record:
    return {
        "turn_id": turn_id,
        "number": number,
        "document_id": passage.document_id,
        "knowledge_base_id": passage.knowledge_base_id,
        "chunk_id": passage.chunk_id,
        "source": passage.source,
        "page": passage.page,
        "section": passage.section_at(0),
        "char_start": passage.char_start,
        "char_end": passage.char_end,
        "quotes": [list(span) for span in passage.quotes] or None,
        "score": passage.score,
    }


def _earlier(turn_id: int, number: int, document_id: str, knowledge_base_id: str | None) -> Record:
    return {
        "turn_id": turn_id,
        "number": number,
        "document_id": document_id,
        "knowledge_base_id": knowledge_base_id,
        "chunk_id": "",
        "source": "",
        "page": None,
        "section": None,
        "char_start": 0,
        "char_end": 0,
        "quotes": None,
        "score": 0.0,
    }


def _drop(unit: Unit, turn_id: int, thread_id: int) -> None:
    unit.session.execute(delete(Turn).where(Turn.id == turn_id, Turn.answered_at.is_(None)))
    empty = ~exists().where(Turn.thread_id == thread_id)
    unit.session.execute(delete(Thread).where(Thread.id == thread_id, Thread.last_activity.is_(None), empty))
