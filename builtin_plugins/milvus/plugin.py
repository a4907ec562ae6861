"""The milvus plugin: searches vectors and words in Milvus, chosen by ``PLATFORM_VECTOR_STORE=milvus``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builtin_plugins.milvus.checks import check_engine, find_engine, left_in_engine, used_identity
from builtin_plugins.milvus.engine import MilvusEngine
from builtin_plugins.milvus.identity import identity_of
from builtin_plugins.milvus.models import Base
from builtin_plugins.milvus.settings import MilvusSettings
from builtin_plugins.milvus.store import MilvusStore
from builtin_plugins.vectors.api import VECTOR_STORE
from kernel.sdk import (
    Diagnostic,
    HealthCheck,
    Platform,
    Plugin,
    StoreNeeds,
    StoreOffer,
    Tables,
    Unit,
    hookimpl,
)

if TYPE_CHECKING:
    from sqlalchemy.orm import Session
    from typer import Typer

    from builtin_plugins.rag.api import RemovedPart

PLACE = "search_engine"
"""Where receipts say that something is left."""


class MilvusPlugin(Plugin):
    """Brings the store; does nothing unless a setting chooses it."""

    name = "milvus"
    version = "0.1.0"
    description = "Searches vectors and words in Milvus"
    author = "Platform"
    capabilities = ("storage",)
    requires = ("vectors",)
    after = ("rag",)

    @hookimpl
    def register_settings(self) -> type[MilvusSettings]:
        return MilvusSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_stores(self) -> Sequence[StoreOffer[Any]]:
        return [StoreOffer(VECTOR_STORE, "milvus", open_store)]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("search_engine", check_engine)]

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return [Diagnostic("rows", find_engine)]

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.milvus.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl(optionalhook=True)
    def remove_derived(self, unit: Unit) -> Sequence[RemovedPart]:
        """Nothing in the unit: the engine follows the commit. A document or knowledge base counts as one."""
        from builtin_plugins.rag.api import RemovedPart

        used = used_identity(unit.session) is not None
        return [RemovedPart(PLACE, 1, pending=True)] if used else []

    @hookimpl(optionalhook=True)
    def count_derived(
        self, platform: Platform, session: Session, knowledge_base_id: str, document_id: str | None
    ) -> Mapping[str, int]:
        if used_identity(session) is None:
            return {}
        return {PLACE: left_in_engine(platform, session, knowledge_base_id, document_id)}


@asynccontextmanager
async def open_store(needs: StoreNeeds) -> AsyncIterator[MilvusStore]:
    """The store; a process that serves also follows changes in the background."""
    identity = await identity_of(needs.database)
    store = MilvusStore(needs.database, MilvusEngine(needs.settings_of(MilvusSettings), identity))
    if needs.serving:
        await store.start()
    try:
        yield store
    finally:
        await store.close()
