"""What the bookmarks plugin offers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernel.sdk import (
    Action,
    HealthCheck,
    Permission,
    Platform,
    Plugin,
    RouteTable,
    Settings,
    Tables,
    contracts,
    hookimpl,
)
from sample_plugin import parsing
from sample_plugin.actions import FIND
from sample_plugin.handlers import routes
from sample_plugin.health import room_left
from sample_plugin.models import Base
from sample_plugin.permissions import ADD
from sample_plugin.settings import BookmarksSettings


class BookmarksPlugin(Plugin):
    """Bookmarks with notes, found again by their words; lists of addresses become documents."""

    name = "bookmarks"
    version = "1.0.0"
    description = "Bookmarks with notes"
    author = "Somebody else"
    after = ("rag",)

    @hookimpl
    def register_settings(self) -> type[Settings]:
        return BookmarksSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return [ADD]

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]

    @hookimpl
    def register_actions(self) -> Sequence[Action]:
        return [FIND]

    @hookimpl(optionalhook=True)
    def register_parsers(self) -> Sequence[contracts.DocumentParser]:
        return [parsing.URI_LIST]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("bookmarks_room", self._check_room)]

    async def _check_room(self, platform: Platform) -> None:
        await room_left(platform)
