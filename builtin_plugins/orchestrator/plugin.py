"""The service `orchestrator`: chats with tools, tools for chat programs, models by OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy import delete

from builtin_plugins.orchestrator import api
from builtin_plugins.orchestrator.handlers import chat, functions, models, responses
from builtin_plugins.orchestrator.models import Base, PendingCall
from builtin_plugins.orchestrator.mounts import SERVICE
from builtin_plugins.orchestrator.settings import OrchestratorSettings
from kernel.sdk import Platform, Plugin, RouteTable, Service, Tables, Unit, hookimpl


class OrchestratorPlugin(Plugin):
    """Lets models work with what their users may do."""

    name = "orchestrator"
    version = "0.1.0"
    description = "Chats with tools, and every tool for chat programs, by OpenAI's protocol"
    author = "Platform"
    requires = ("inference", "tools")
    after = ("models", "rag", "plugin_registry")
    capabilities = ("orchestrator",)

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [api]

    @hookimpl
    def register_settings(self) -> type[OrchestratorSettings]:
        return OrchestratorSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables = (chat.routes, responses.routes, functions.routes, models.routes)
        return [replace(SERVICE, tables=tables, version=self.version)]

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [chat.aliases, responses.aliases, models.aliases]

    @hookimpl(optionalhook=True)
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        await platform.database.write(_forget_calls, str(account_id))


def _forget_calls(unit: Unit, subject: str) -> None:
    unit.session.execute(delete(PendingCall).where(PendingCall.subject == subject))
