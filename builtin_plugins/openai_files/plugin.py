"""The plugin that offers knowledge bases by OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.openai_files.handlers import files, store_files, stores
from builtin_plugins.openai_files.models import Base
from builtin_plugins.openai_files.services.answering import answer_from_files
from builtin_plugins.openai_files.services.files import remove_owned
from builtin_plugins.openai_files.services.stores import KEPT_WITH_BASE, remove_rows
from builtin_plugins.openai_files.settings import OpenAIFilesSettings
from builtin_plugins.orchestrator import api as orchestrator
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Platform, Plugin, RouteTable, Tables, Unit, hookimpl

_PLACE = "vector_store_rows"


class OpenAIFilesPlugin(Plugin):
    """Files, vector stores and searches, beside the chats of the service `orchestrator`."""

    name = "openai_files"
    version = "0.1.0"
    description = "Files, vector stores and searches by OpenAI's protocol"
    author = "Platform"
    requires = ("inference", "orchestrator", "rag")

    @hookimpl
    def register_settings(self) -> type[OpenAIFilesSettings]:
        return OpenAIFilesSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        modules = (files, stores, store_files)
        return [table for module in modules for table in (module.routes, module.aliases)]

    @hookimpl
    async def answer_from_files(
        self, caller: Caller, asked: orchestrator.FileQuestion
    ) -> orchestrator.FileAnswerEvents:
        return await answer_from_files(caller, asked)

    @hookimpl(optionalhook=True)
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        await remove_owned(platform, account_id)

    @hookimpl
    def remove_derived(
        self, unit: Unit, knowledge_base_id: str, document_id: str | None
    ) -> Sequence[rag.RemovedPart]:
        if document_id is not None:
            return []
        return [rag.RemovedPart(_PLACE, remove_rows(unit, knowledge_base_id))]

    @hookimpl
    def count_derived(
        self, session: Session, knowledge_base_id: str, document_id: str | None
    ) -> Mapping[str, int]:
        if document_id is not None:
            return {}
        counted = 0
        for table in KEPT_WITH_BASE:
            mine = select(func.count()).where(table.knowledge_base_id == knowledge_base_id)
            counted += session.scalar(mine) or 0
        return {_PLACE: counted}
