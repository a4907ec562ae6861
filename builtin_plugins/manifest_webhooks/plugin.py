"""Manifest plugins: each file of a folder turns a webhook into searchable points."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from kernel.sdk import (
    DIRECTORY,
    HealthCheck,
    Platform,
    Plugin,
    PluginSource,
    Resource,
    ResourceKey,
    RouteTable,
    Tables,
    Unhealthy,
    hookimpl,
    utc_now,
)

from . import handlers, models
from .folder import FOLDER, ManifestFolder
from .inbox import INBOX, Inbox
from .settings import WebhookSettings
from .source import SOURCE, ManifestSource
from .storing import forget_old_events

log = logging.getLogger("platform.manifests")

_SWEEP_SECONDS = 3600.0


class ManifestWebhooksPlugin(Plugin):
    """Watches the manifests and answers their webhooks."""

    name = "manifest_webhooks"
    version = "0.1.0"
    description = "Plugins without code: a manifest stores what a webhook sends, and offers it to search"
    author = "Platform"
    after = ("embeddings", "models")
    capabilities = ("webhook", "manifest-source")

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
    def register_resources(self) -> Sequence[Resource[Any]]:
        api = frozenset({"api"})
        return [
            Resource(FOLDER, _open_folder, api),
            Resource(SOURCE, _open_source, api),
            Resource(INBOX, _open_inbox, api),
        ]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("manifests", _check, service="plugin-registry")]

    @hookimpl
    def register_plugin_sources(self) -> Sequence[ResourceKey[PluginSource]]:
        return [SOURCE]


@asynccontextmanager
async def _open_folder(platform: Platform) -> AsyncIterator[ManifestFolder]:
    folder, directory = ManifestFolder(), platform.settings_of(WebhookSettings).manifests_dir
    async with folder.watched(directory, platform.resource(DIRECTORY).taken_names):
        yield folder


@asynccontextmanager
async def _open_source(platform: Platform) -> AsyncIterator[ManifestSource]:
    yield ManifestSource(platform, platform.resource(FOLDER))


@asynccontextmanager
async def _open_inbox(platform: Platform) -> AsyncIterator[Inbox]:
    stop = asyncio.Event()
    sweeping = asyncio.create_task(_sweep(platform, stop), name="webhook events")
    try:
        yield Inbox(platform, platform.resource(FOLDER))
    finally:
        stop.set()
        await sweeping


async def _check(platform: Platform) -> None:
    """Name every manifest that is refused, or that works less than its author thinks."""
    entries = await platform.resource(SOURCE).plugins()
    wrong = [entry for entry in entries if entry.reason or entry.problem]
    if wrong:
        raise Unhealthy("; ".join(f"{entry.name}: {entry.reason or entry.problem}" for entry in wrong))


async def _sweep(platform: Platform, stop: asyncio.Event) -> None:
    """Forget old events, again and again. Told to stop, never cancelled: a statement may be under way."""
    while not stop.is_set():
        try:
            await forget_old_events(platform.database, utc_now())
        except (SQLAlchemyError, OSError) as error:
            log.warning("old webhook events can't be removed: %s", type(error).__name__)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _SWEEP_SECONDS)
