"""Models: the service `model-management`, and the platform's single way of calling them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from builtin_plugins.models.connections.live import LIVE_SERVERS
from builtin_plugins.models.connections.rows import any_connection
from builtin_plugins.models.diagnostics import DIAGNOSTICS
from builtin_plugins.models.handlers import catalog, connections, pulls, rules, system
from builtin_plugins.models.models import Base
from builtin_plugins.models.mounts import SERVICE
from builtin_plugins.models.services.constraints import forget_name
from builtin_plugins.models.services.health import check_servers, health_fields
from builtin_plugins.models.services.model_calls import MODELS
from builtin_plugins.models.services.opening import open_connections, open_models
from builtin_plugins.models.services.pulling import PULL
from builtin_plugins.models.settings import ModelsSettings
from kernel.sdk import (
    Account,
    Diagnostic,
    HealthCheck,
    JobRef,
    Platform,
    Plugin,
    Resource,
    RouteTable,
    Service,
    Tables,
    Unit,
    hookimpl,
)

if TYPE_CHECKING:
    from typer import Typer


class ModelsPlugin(Plugin):
    """Models of Ollama, of OpenAI-compatible servers, and in files on this machine."""

    name = "models"
    version = system.VERSION
    after = ("demo",)
    description = "Model runtimes: Ollama, OpenAI-compatible servers, and local GGUF files"
    author = "Platform"
    requires = ("inference", "long_jobs", "owner_secrets")

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.models.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl
    def register_settings(self) -> type[ModelsSettings]:
        return ModelsSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return DIAGNOSTICS

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [Resource(MODELS, open_models), Resource(LIVE_SERVERS, open_connections)]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [PULL]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [
            HealthCheck("ollama", check_servers, service=service)
            for service in ("rag-pipeline", "model-management")
        ]

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables: Sequence[RouteTable] = (
            system.routes,
            connections.routes,
            pulls.routes,
            rules.routes,
            catalog.routes,
        )
        return [replace(SERVICE, tables=tables, version=self.version, health_extra=health_fields)]

    @hookimpl
    def generate_text(
        self,
        platform: Platform,
        messages: Sequence[inference.ChatMessage],
        model: str | None,
        temperature: float,
        max_tokens: int,
        options: Mapping[str, Any],
    ) -> inference.Generation | None:
        models = platform.resource(MODELS)
        if not models.may_have(model):
            return None
        return models.generate(messages, model, temperature, max_tokens, options)

    @hookimpl
    def chat_with_model(
        self, platform: Platform, request: inference.ChatRequest
    ) -> inference.ChatEvents | None:
        models = platform.resource(MODELS)
        return models.chat(request) if models.may_have(request.model) else None

    @hookimpl
    async def list_chat_models(self, platform: Platform) -> Sequence[str]:
        return await platform.resource(MODELS).chat_models()

    @hookimpl
    async def check_model_runtime(self, platform: Platform) -> bool | None:
        return await platform.resource(MODELS).healthy()

    @hookimpl
    async def check_model_call(self, platform: Platform, model: str) -> None:
        await platform.resource(MODELS).rules.admit(model)

    @hookimpl
    def on_model_called(self, platform: Platform, model: str, seconds: float, failed: bool) -> None:
        platform.resource(MODELS).usage.count(model, seconds, None, failed=failed)

    @hookimpl(trylast=True)
    async def embed_texts(
        self, platform: Platform, model: str, texts: Sequence[str], purpose: inference.Purpose
    ) -> Embedded | None:
        return await platform.resource(MODELS).embed(model, texts, purpose)

    @hookimpl
    async def describe_embedding_model(self, platform: Platform, model: str) -> inference.ModelDescription:
        settings = platform.settings_of(ModelsSettings)
        servers = (settings.ollama_url, settings.openai_url, settings.runtimes, settings.local_files)
        may_exist = any(servers) or await platform.database.read(any_connection)
        return inference.ModelDescription(None if may_exist else False)

    @hookimpl
    async def choose_helper_model(self, platform: Platform) -> str | None:
        return await platform.resource(MODELS).helper_model()

    @hookimpl
    async def list_embedding_models(self, platform: Platform) -> Sequence[str]:
        return await platform.resource(MODELS).embedding_models()

    @hookimpl(optionalhook=True)
    def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
        if change == "deleted":
            forget_name(unit, account)
