"""Conversations: questions and answers, kept for the account that asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy.orm import Session

from builtin_plugins.conversations import api, handlers
from builtin_plugins.conversations.models import Base, Thread
from builtin_plugins.conversations.services import asking, rating, reading, removal
from builtin_plugins.conversations.services.leaks import find_leaks
from builtin_plugins.conversations.settings import ConversationsSettings
from builtin_plugins.rag import api as rag
from kernel.sdk import (
    Caller,
    Diagnostic,
    Event,
    JobRef,
    Platform,
    Plugin,
    RouteTable,
    Tables,
    Unit,
    hookimpl,
)

_DOCUMENT_DELETED = "rag.document_deleted"


class ConversationsPlugin(Plugin):
    """Keeps conversations with pipelines, and removes what stems from deleted documents."""

    name = "conversations"
    version = "0.1.0"
    description = "Conversations with pipelines: kept, shared, exported"
    author = "Platform"
    requires = ("accounts", "rag")

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        """Stored conversations, for other plugins."""
        return [api]

    @hookimpl
    def register_settings(self) -> type[ConversationsSettings]:
        return ConversationsSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [handlers.routes]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [removal.TIDY]

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return [Diagnostic("reads", find_leaks)]

    @hookimpl
    async def on_event(self, platform: Platform, event: Event) -> None:
        if event.event_name == _DOCUMENT_DELETED:
            await removal.forget_document(platform, str(event.model_dump()["document_id"]))

    @hookimpl(optionalhook=True)
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        await platform.database.write(removal.delete_threads, str(account_id), None)

    @hookimpl
    async def open_turn(
        self, caller: Caller, pipeline_id: str, question: str, conversation_id: str, holder: str | None
    ) -> rag.OpenTurn:
        return await asking.open_turn(caller, pipeline_id, question, conversation_id, holder)

    @hookimpl
    async def read_turns(
        self, caller: Caller, holder: str, conversation_id: str | None, limit: int, offset: int
    ) -> tuple[Sequence[api.RecordedTurn], int]:
        condition = Thread.holder == holder
        if conversation_id is not None:
            condition &= Thread.conversation_id == conversation_id
        turns, total = await caller.platform.database.snapshot(reading.load, condition, limit, offset)
        return await reading.visible_turns(caller, turns), total

    @hookimpl
    def forget_turns(self, unit: Unit, holder: str) -> bool:
        return removal.forget_holder(unit, holder)

    @hookimpl(optionalhook=True)
    async def list_rated_turns(
        self, caller: Caller, pipeline_ids: Sequence[str], limit: int
    ) -> Sequence[api.RecordedTurn]:
        return await rating.rated(caller, pipeline_ids, limit)

    @hookimpl
    def remove_derived(
        self, unit: Unit, knowledge_base_id: str, document_id: str | None
    ) -> Sequence[rag.RemovedPart]:
        return [removal.remove_cited(unit, knowledge_base_id, document_id)]

    @hookimpl
    def count_derived(
        self, session: Session, knowledge_base_id: str, document_id: str | None
    ) -> Mapping[str, int]:
        return {removal.CITATIONS: removal.cited(session, knowledge_base_id, document_id)}
