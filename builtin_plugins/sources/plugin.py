"""The plugin that keeps knowledge bases in step with sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from builtin_plugins.rag import api as rag
from builtin_plugins.sources import api
from builtin_plugins.sources.handlers import rights
from builtin_plugins.sources.handlers.routes import routes
from builtin_plugins.sources.kinds import SOURCE_KINDS, open_kinds
from builtin_plugins.sources.models import Base
from builtin_plugins.sources.services.removal import REMOVE_SOURCE, count_with, remove_with
from builtin_plugins.sources.services.rights.clock import RIGHTS_CLOCK, open_clock
from builtin_plugins.sources.services.rights.leaks import find_leaks, find_stored_leaks
from builtin_plugins.sources.services.rights.refreshing import FOLLOW_ACCOUNTS, REFRESH_RIGHTS, note_account
from builtin_plugins.sources.services.running import RUN_SOURCE
from builtin_plugins.sources.services.runs import TICK
from builtin_plugins.sources.services.watching import SOURCE_WATCHES, open_watches
from builtin_plugins.sources.settings import SourcesSettings
from kernel.sdk import (
    Diagnostic,
    HealthCheck,
    JobRef,
    Platform,
    Plugin,
    Resource,
    RouteTable,
    Tables,
    Unhealthy,
    Unit,
    hookimpl,
)

if TYPE_CHECKING:
    from typer import Typer


class SourcesPlugin(Plugin):
    """Lists sources, fetches what has changed, and deletes what is gone."""

    name = "sources"
    version = "0.1.0"
    description = "Keeps knowledge bases in step with folders, repositories and servers"
    author = "Platform"
    requires = ("accounts", "owner_secrets", "rag")

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.sources.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [api]

    @hookimpl
    def register_settings(self) -> type[SourcesSettings]:
        return SourcesSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes, rights.routes]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [RUN_SOURCE, REMOVE_SOURCE, REFRESH_RIGHTS, FOLLOW_ACCOUNTS, TICK]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [
            Resource(SOURCE_KINDS, open_kinds),
            Resource(RIGHTS_CLOCK, open_clock),
            Resource(SOURCE_WATCHES, open_watches),
        ]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("sources", _check, service="rag-pipeline")]

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return [Diagnostic("leaks", find_leaks), Diagnostic("reads", find_stored_leaks)]

    @hookimpl
    def on_account_event(self, unit: Unit, change: str) -> None:
        """Let people at sources stand for the account, or no longer, at once."""
        if change not in ("signed_in", "refreshed"):
            note_account(unit)

    @hookimpl
    def remove_derived(
        self, platform: Platform, unit: Unit, knowledge_base_id: str, document_id: str | None
    ) -> Sequence[rag.RemovedPart]:
        return remove_with(platform, unit, knowledge_base_id, document_id)

    @hookimpl
    def count_derived(
        self, session: Session, knowledge_base_id: str, document_id: str | None
    ) -> Mapping[str, int]:
        return count_with(session, knowledge_base_id, document_id)


async def _check(platform: Platform) -> None:
    """Check that no plugin's kind of source was refused."""
    refused = platform.resource(SOURCE_KINDS).refused
    if refused:
        raise Unhealthy("; ".join(f"{name}: {reason}" for name, reason in refused.items()))
