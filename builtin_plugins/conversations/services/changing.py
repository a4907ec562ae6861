"""Rename, delete and share conversations; only the one who began a conversation may."""

from __future__ import annotations

from sqlalchemy.exc import IntegrityError

from builtin_plugins.conversations.errors import AlreadyShared, ConversationPipelineNotFound, NotFirstWriter
from builtin_plugins.conversations.models import Thread
from builtin_plugins.conversations.schemas import ConversationOut, Shared
from builtin_plugins.conversations.services.listing import record
from builtin_plugins.conversations.services.removal import delete_threads
from builtin_plugins.conversations.services.threads import ThreadReach, askable, find_begun, reach_for
from kernel.sdk import Caller, Unit


async def rename(caller: Caller, conversation_id: str, title: str | None) -> ConversationOut:
    """Change the title. Raises ConversationNotFound, NotFirstWriter."""
    reach = await reach_for(caller, conversation_id)
    return await caller.platform.database.write(_rename, reach, conversation_id, title)


def _rename(unit: Unit, reach: ThreadReach, conversation_id: str, title: str | None) -> ConversationOut:
    thread = _own(unit, reach, conversation_id)
    thread.title = title
    return record(unit.session, reach.holder, thread)


async def delete_one(caller: Caller, conversation_id: str) -> None:
    """Delete a conversation with its turns. Raises ConversationNotFound, NotFirstWriter."""
    reach = await reach_for(caller, conversation_id)
    await caller.platform.database.write(_delete_one, reach, conversation_id)
    await caller.platform.database.scrub()


def _delete_one(unit: Unit, reach: ThreadReach, conversation_id: str) -> None:
    delete_threads(unit, reach.holder, [_own(unit, reach, conversation_id).id])


async def delete_all(caller: Caller) -> int:
    """Delete every conversation that the caller began; returns how many."""
    deleted = await caller.platform.database.write(delete_threads, caller.principal.subject, None)
    await caller.platform.database.scrub()
    return deleted


async def share(caller: Caller, pipeline_id: str, conversation_id: str) -> Shared:
    """Share with everybody who may ask the pipeline.

    Raises PipelineNotFound, ConversationNotFound, NotFirstWriter, AlreadyShared.
    """
    reach = await _reach_over(caller, pipeline_id)
    try:
        await caller.platform.database.write(_share, reach, pipeline_id, conversation_id)
    except IntegrityError:
        raise AlreadyShared(
            "Somebody else shares a conversation with this id through this pipeline; use another id"
        ) from None
    return Shared(conversation_id=conversation_id, shared=True)


def _share(unit: Unit, reach: ThreadReach, pipeline_id: str, conversation_id: str) -> None:
    thread = _own_of(unit, reach, pipeline_id, conversation_id)
    if thread.shared_pipeline_id not in (None, pipeline_id):
        raise AlreadyShared(
            "This conversation is shared through another pipeline; stop sharing it there first"
        )
    thread.shared_pipeline_id = pipeline_id
    unit.session.flush()


async def end_sharing(caller: Caller, pipeline_id: str, conversation_id: str) -> Shared:
    """Take a conversation back. Raises PipelineNotFound, ConversationNotFound, NotFirstWriter."""
    reach = await _reach_over(caller, pipeline_id)
    await caller.platform.database.write(_end_sharing, reach, pipeline_id, conversation_id)
    return Shared(conversation_id=conversation_id, shared=False)


def _end_sharing(unit: Unit, reach: ThreadReach, pipeline_id: str, conversation_id: str) -> None:
    thread = _own_of(unit, reach, pipeline_id, conversation_id)
    if thread.shared_pipeline_id == pipeline_id:
        thread.shared_pipeline_id = None


async def _reach_over(caller: Caller, pipeline_id: str) -> ThreadReach:
    return ThreadReach(caller.principal.subject, await askable(caller, [pipeline_id]))


def _own_of(unit: Unit, reach: ThreadReach, pipeline_id: str, conversation_id: str) -> Thread:
    """The conversation is checked before the pipeline: callers without one learn nothing of either."""
    thread = _own(unit, reach, conversation_id)
    if pipeline_id not in reach.pipelines:
        raise ConversationPipelineNotFound()
    return thread


def _own(unit: Unit, reach: ThreadReach, conversation_id: str) -> Thread:
    thread = find_begun(unit.session, reach, conversation_id, lock=True)
    if thread.holder != reach.holder:
        raise NotFirstWriter()
    return thread
