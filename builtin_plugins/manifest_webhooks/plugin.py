"""Manifest plugins: each file of a folder turns a webhook into searchable points."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from kernel.sdk import (
    HealthCheck,
    Platform,
    Plugin,
    PluginSource,
    Resource,
    RouteTable,
    Tables,
    Unhealthy,
    hookimpl,
    utc_now,
)

from . import handlers, models
from .folder import ManifestFolder
from .inbox import INBOX, Inbox
from .settings import WebhookSettings
from .source import ManifestSource
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

    def __init__(self) -> None:
        self._folder = ManifestFolder()
        self._source = ManifestSource(self._folder)

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
    def register_resources(self) -> Sequence[Resource[Inbox]]:
        return [Resource(INBOX, self._open, frozenset({"api"}))]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("manifests", self._check, service="plugin-registry")]

    @hookimpl
    def register_plugin_sources(self) -> Sequence[PluginSource]:
        return [self._source]

    @asynccontextmanager
    async def _open(self, platform: Platform) -> AsyncIterator[Inbox]:
        self._source.attach(platform)
        directory = platform.settings_of(WebhookSettings).manifests_dir
        async with self._folder.watched(directory, platform.directory.taken_names):
            stop = asyncio.Event()
            sweeping = asyncio.create_task(_sweep(platform, stop), name="webhook events")
            try:
                yield Inbox(platform, self._folder)
            finally:
                stop.set()
                await sweeping

    async def _check(self) -> None:
        """Name every manifest that is refused, or that works less than its author thinks."""
        wrong = [entry for entry in await self._source.plugins() if entry.reason or entry.problem]
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
