"""The plugin that the synchronizer of Open WebUI fills knowledge bases through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy.orm import Session

from builtin_plugins.oikb_sync.handlers import routes
from builtin_plugins.oikb_sync.models import Base
from builtin_plugins.oikb_sync.services import count_rows, remove_rows
from builtin_plugins.rag import api as rag
from kernel.sdk import Plugin, RouteTable, Tables, Unit, hookimpl

_PLACE = "synchronized_files"


class OikbSyncPlugin(Plugin):
    """Compares, takes and removes what `oikb` brings from its sources."""

    name = "oikb_sync"
    version = "0.1.0"
    description = "Knowledge bases filled by oikb, the synchronizer of Open WebUI"
    author = "Platform"
    requires = ("rag",)

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]

    @hookimpl
    def remove_derived(
        self, unit: Unit, knowledge_base_id: str, document_id: str | None
    ) -> Sequence[rag.RemovedPart]:
        return [rag.RemovedPart(_PLACE, remove_rows(unit, knowledge_base_id, document_id))]

    @hookimpl
    def count_derived(
        self, session: Session, knowledge_base_id: str, document_id: str | None
    ) -> Mapping[str, int]:
        return {_PLACE: count_rows(session, knowledge_base_id, document_id)}
