"""The plugin for knowledge graphs of documents, built without a model: the service `graph-rag`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from builtin_plugins.graph_rag import api
from builtin_plugins.graph_rag.building.engines import ENGINES, open_engines
from builtin_plugins.graph_rag.building.jobs import (
    BUILD_BASE,
    BUILD_DOCUMENT,
    on_deleted,
    on_ingested,
    on_switched,
)
from builtin_plugins.graph_rag.handlers import graphs, insight, texts
from builtin_plugins.graph_rag.health import checks
from builtin_plugins.graph_rag.models import Base
from builtin_plugins.graph_rag.mounts import SERVICE
from builtin_plugins.graph_rag.settings import GraphSettings
from builtin_plugins.graph_rag.storing import removal
from builtin_plugins.graph_rag.storing.writing import drop_of_document, drop_of_maker
from builtin_plugins.graph_rag.walk.following import WALKS, open_walks
from builtin_plugins.rag import api as rag
from kernel.sdk import (
    Action,
    Caller,
    Event,
    HealthCheck,
    JobRef,
    Platform,
    Plugin,
    Resource,
    Service,
    Tables,
    Unit,
    hookimpl,
)

if TYPE_CHECKING:
    from typer import Typer


class GraphRagPlugin(Plugin):
    """Entities, their relations, and where documents mention them."""

    name = "graph_rag"
    version = texts.VERSION
    description = "Knowledge graphs of documents, and retrieval over them"
    author = "Platform"
    requires = ("inference", "rag")
    after = ("demo",)

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.graph_rag.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [api]

    @hookimpl
    def register_settings(self) -> type[GraphSettings]:
        return GraphSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [BUILD_DOCUMENT, BUILD_BASE]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [
            Resource(ENGINES, open_engines),
            Resource(WALKS, open_walks),
        ]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return checks()

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables = (texts.routes, graphs.routes, insight.routes)
        return [replace(SERVICE, tables=tables, version=self.version)]

    @hookimpl
    def register_actions(self) -> Sequence[Action]:
        return [insight.FIND_CORRELATIONS]

    @hookimpl
    async def on_event(self, platform: Platform, event: Event) -> None:
        document = getattr(event, "document_id", "")
        if event.event_name == "rag.document_ingested":
            await platform.database.write(on_ingested, platform, document)
        elif event.event_name == "rag.document_deleted":
            await platform.database.write(on_deleted, document)

    @hookimpl
    def on_graph_switched(self, unit: Unit, knowledge_base_id: str, owner_id: int | None) -> None:
        on_switched(unit, knowledge_base_id, owner_id)

    @hookimpl(optionalhook=True)
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        await platform.database.write(drop_of_maker, str(account_id))

    @hookimpl
    async def enhance_ranking(
        self,
        caller: Caller,
        question: str,
        passages: Sequence[rag.Passage],
        scope: rag.RankingScope,
    ) -> Sequence[rag.RankedPassage]:
        from builtin_plugins.graph_rag.walk import enhancing

        return await enhancing.enhance(caller.platform, question, passages, scope)

    @hookimpl
    def remove_derived(
        self, unit: Unit, knowledge_base_id: str, document_id: str | None
    ) -> Sequence[rag.RemovedPart]:
        return removal.remove(unit, knowledge_base_id, document_id)

    @hookimpl
    def withdraw_derived(self, unit: Unit, document_id: str) -> bool:
        drop_of_document(unit, document_id)
        return True

    @hookimpl
    def count_derived(
        self, session: Session, knowledge_base_id: str, document_id: str | None
    ) -> Mapping[str, int]:
        return removal.count(session, knowledge_base_id, document_id)
