"""Which conversation an id means: the caller's own, else one shared over a pipeline that it may ask."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.conversations.errors import ConversationNotFound
from builtin_plugins.conversations.models import Thread
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller

T = TypeVar("T")

_MOST_CANDIDATES = 500
_NO_PIPELINE = "-"  # so that one statement serves callers with and without pipelines


@dataclass(frozen=True)
class ThreadReach:
    """Which conversations a caller may use: its own, and those shared over these pipelines."""

    holder: str
    pipelines: Collection[str]

    @property
    def threads(self) -> ColumnElement[bool]:
        """The condition for queries over threads."""
        shared = Thread.shared_pipeline_id.in_(sorted(self.pipelines) or [_NO_PIPELINE])
        return or_(Thread.holder == self.holder, shared)


async def reach_for(caller: Caller, conversation_id: str, pipeline_id: str | None = None) -> ThreadReach:
    """The caller's reach for this id; with a pipeline, only what is shared over that one.

    The caller's pipelines are looked up whether or not anything is shared.
    """
    database = caller.platform.database
    candidates = await database.read(_pipelines_sharing, conversation_id, pipeline_id)
    return ThreadReach(caller.principal.subject, await askable(caller, candidates))


async def askable(caller: Caller, pipeline_ids: list[str]) -> set[str]:
    """Which of these pipelines the caller may ask."""
    pipelines = await caller.platform.hooks.ask(rag.find_pipelines, caller=caller, pipeline_ids=pipeline_ids)
    return set(pipelines or ())


def _pipelines_sharing(session: Session, conversation_id: str, pipeline_id: str | None) -> list[str]:
    query = select(Thread.shared_pipeline_id).where(
        Thread.conversation_id == conversation_id, Thread.shared_pipeline_id.is_not(None)
    )
    if pipeline_id is not None:
        query = query.where(Thread.shared_pipeline_id == pipeline_id)
    return [str(one) for one in session.scalars(query.order_by(Thread.id).limit(_MOST_CANDIDATES))]


def find(session: Session, reach: ThreadReach, conversation_id: str, *, lock: bool = False) -> Thread | None:
    """The caller's own conversation with this id, else the oldest shared one; None if there is none."""
    query = _first(select(Thread), reach, conversation_id)
    thread: Thread | None = session.scalar(query.with_for_update() if lock else query)
    return thread


def find_id(session: Session, reach: ThreadReach, conversation_id: str) -> int | None:
    """The id of that conversation."""
    return session.connection().execute(_first(select(Thread.id), reach, conversation_id)).scalar()


def _first(query: Select[T], reach: ThreadReach, conversation_id: str) -> Select[T]:
    matches = query.where(Thread.conversation_id == conversation_id, reach.threads)
    return matches.order_by(Thread.holder != reach.holder, Thread.id).limit(1)


def find_begun(session: Session, reach: ThreadReach, conversation_id: str, *, lock: bool = False) -> Thread:
    """The same, if any of its questions has been answered. Raises ConversationNotFound."""
    thread = find(session, reach, conversation_id, lock=lock)
    if thread is None or thread.last_activity is None:
        raise ConversationNotFound()
    return thread
