"""News from RSS and Atom feeds, collected into a knowledge base (wire-facts 6.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel.sdk import Action, HealthCheck, JobRef, Platform, Plugin, Resource, Tables, hookimpl

from . import models
from .collecting import collect
from .feeds import readers
from .queries import ACTIONS, REFRESH, analyze, check_feeds
from .settings import NewsSettings


class NewsPlugin(Plugin):
    """Reads the feeds that the operator lists, once an administrator has enabled it."""

    name = "news"
    version = "0.1.0"
    description = "Collects news from RSS and Atom feeds into a knowledge base"
    author = "Platform"
    capabilities = ("news",)
    data_sources = ("rss", "atom")
    after = ("rag", "plugin_registry", "source_feed")
    off_by_default = True

    @hookimpl
    def register_settings(self) -> type[NewsSettings]:
        return NewsSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(models.Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_actions(self) -> Sequence[Action]:
        return ACTIONS

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [REFRESH]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return readers()

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("news_feeds", check_feeds)]

    @hookimpl(optionalhook=True)
    async def collect_data(self, platform: Platform) -> Mapping[str, Any]:
        return await collect(platform)

    @hookimpl(optionalhook=True)
    async def analyze_data(self, platform: Platform) -> Mapping[str, Any]:
        return await analyze(platform)
