"""Exports conversations as a file, a few turns at a time: a history may be larger than memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, select, tuple_
from sqlalchemy.orm import Session

from builtin_plugins.conversations.models import Thread, Turn
from builtin_plugins.conversations.schemas import ConversationOut, ExportBundle
from builtin_plugins.conversations.services.listing import counted, record_of, turn_out
from builtin_plugins.conversations.services.reading import StoredTurn, stored, visible_turns
from builtin_plugins.conversations.services.threads import ThreadReach, find_begun, reach_for
from kernel.sdk import Caller, utc_now

_AT_ONCE = 50  # conversations read at a time, and turns in memory
_Place = tuple[int, int]  # the ids of thread and turn, which define the order


@dataclass(frozen=True)
class ExportPage:
    """Turns in order, and the conversations that begin with one of them, by turn id."""

    turns: Sequence[StoredTurn]
    begun: dict[int, ConversationOut]

    @property
    def end(self) -> _Place:
        """The position of the last turn."""
        last = self.turns[-1].turn
        return last.thread_id, last.id


def export_own(caller: Caller) -> AsyncGenerator[bytes, None]:
    """All conversations that the caller began."""
    return _pieces(caller, Thread.holder == caller.principal.subject)


async def export_one(
    caller: Caller, conversation_id: str, pipeline_id: str | None
) -> AsyncGenerator[bytes, None]:
    """One that the caller may read. Raises ConversationNotFound."""
    reach = await reach_for(caller, conversation_id, pipeline_id)
    thread_id = await caller.platform.database.read(_id_of, reach, conversation_id)
    return _pieces(caller, reach.threads & (Thread.id == thread_id))


def _id_of(session: Session, reach: ThreadReach, conversation_id: str) -> int:
    return find_begun(session, reach, conversation_id).id


async def _pieces(caller: Caller, condition: ColumnElement[bool]) -> AsyncGenerator[bytes, None]:
    """The JSON of an `ExportBundle`; each page is read with the caller's current rights."""
    database, holder = caller.platform.database, caller.principal.subject
    head = ExportBundle(exported_at=utc_now(), conversations=[]).model_dump_json()
    yield head.removesuffix("]}").encode()
    place, closing = (0, 0), ""
    while threads := await database.read(_threads, condition, place[0]):
        among = condition & Thread.id.in_(threads)
        while (page := await database.snapshot(_page, holder, among, place)).turns:
            text = ""
            for turn in await visible_turns(caller, page.turns):
                text += _opening(page.begun.get(turn.id), closing) + turn_out(turn).model_dump_json()
                closing = "]}"
            yield text.encode()
            place = page.end
        place = threads[-1], 0
    yield f"{closing}]}}".encode()


def _opening(conversation: ConversationOut | None, closing: str) -> str:
    """What precedes a turn: the end of one conversation and the beginning of the next, or a comma."""
    if conversation is None:
        return ","
    return (closing and f"{closing},") + conversation.model_dump_json().removesuffix("}") + ',"items":['


def _threads(session: Session, condition: ColumnElement[bool], after: int) -> Sequence[int]:
    begun = select(Thread.id).where(condition, Thread.last_activity.is_not(None), Thread.id > after)
    return session.scalars(begun.order_by(Thread.id).limit(_AT_ONCE)).all()


def _page(session: Session, holder: str, among: ColumnElement[bool], after: _Place) -> ExportPage:
    order = (Turn.thread_id, Turn.id)
    query = select(Turn, Thread.conversation_id).join(Thread, Thread.id == Turn.thread_id)
    later = query.where(among, Turn.answered_at.is_not(None), tuple_(*order) > after)
    turns = stored(session, later.order_by(*order).limit(_AT_ONCE))
    first: dict[int, int] = {}
    for entry in turns:
        if entry.turn.thread_id != after[0]:
            first.setdefault(entry.turn.thread_id, entry.turn.id)
    rows = session.execute(select(Thread, counted()).where(Thread.id.in_(first)))
    return ExportPage(turns, {first[thread.id]: record_of(holder, thread, count) for thread, count in rows})
