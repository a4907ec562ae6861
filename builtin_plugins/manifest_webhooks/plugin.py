"""Manifest plugins: each file of a folder turns a webhook into searchable points."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builtin_plugins.tools.api import PluginSource
from kernel.sdk import (
    Diagnostic,
    HealthCheck,
    JobRef,
    Platform,
    Plugin,
    Resource,
    ResourceKey,
    RouteTable,
    Tables,
    hookimpl,
)

from . import handlers, health, models
from .inbox import INBOX, Inbox
from .live_folder import FOLDER, WatchedFolder
from .settings import WebhookSettings
from .source import SOURCE, ManifestSource
from .storing import FORGET_OLD

if TYPE_CHECKING:
    from typer import Typer


class ManifestWebhooksPlugin(Plugin):
    """Watches the manifests and answers their webhooks."""

    name = "manifest_webhooks"
    version = "0.1.0"
    description = "Plugins without code: a manifest stores what a webhook sends and makes it searchable"
    author = "Platform"
    requires = ("inference", "tools", "vectors")
    after = ("embeddings", "models")
    capabilities = ("webhook", "manifest-source")

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.manifest_webhooks.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        from .diagnostics import DIAGNOSTICS  # asked by the terminal alone

        return DIAGNOSTICS

    @hookimpl
    def name_embedding_models(self, platform: Platform) -> Sequence[tuple[str, str]]:
        models = platform.settings_of(WebhookSettings).mapped_models()
        return [("PLATFORM_WEBHOOK_EMBED_MODELS", model) for _, model in models]

    @hookimpl
    def register_settings(self) -> type[WebhookSettings]:
        return WebhookSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(models.Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [handlers.routes]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [FORGET_OLD]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        api = frozenset({"api"})
        return [
            Resource(FOLDER, _open_folder, api),
            Resource(SOURCE, _open_source, api),
            Resource(INBOX, _open_inbox, api),
        ]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("manifests", health.check, service="plugin-registry")]

    @hookimpl(optionalhook=True)
    def find_backup_folders(self, platform: Platform) -> Mapping[str, Path]:
        return {"manifests": platform.settings_of(WebhookSettings).manifests_dir}

    @hookimpl
    def register_plugin_sources(self) -> Sequence[ResourceKey[PluginSource]]:
        return [SOURCE]


@asynccontextmanager
async def _open_folder(platform: Platform) -> AsyncIterator[WatchedFolder]:
    folder = WatchedFolder(platform)
    async with folder.watched():
        yield folder


@asynccontextmanager
async def _open_source(platform: Platform) -> AsyncIterator[ManifestSource]:
    yield ManifestSource(platform, platform.resource(FOLDER))


@asynccontextmanager
async def _open_inbox(platform: Platform) -> AsyncIterator[Inbox]:
    yield Inbox(platform, platform.resource(FOLDER))
