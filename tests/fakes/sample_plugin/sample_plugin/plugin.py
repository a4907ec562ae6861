"""What the bookmarks plugin offers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.sdk import (
    Action,
    HealthCheck,
    Permission,
    Platform,
    Plugin,
    RouteTable,
    Settings,
    Tables,
    hookimpl,
)
from sample_plugin.actions import FIND
from sample_plugin.handlers import routes
from sample_plugin.health import room_left
from sample_plugin.models import Base
from sample_plugin.permissions import ADD
from sample_plugin.settings import BookmarksSettings

if TYPE_CHECKING:
    from builtin_plugins.documents import api as documents


class BookmarksPlugin(Plugin):
    """Bookmarks with notes, found again by their words; lists of addresses become documents."""

    name = "bookmarks"
    version = "1.0.0"
    description = "Bookmarks with notes"
    author = "Somebody else"
    after = ("documents",)

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
    def register_parsers(self) -> Sequence[documents.DocumentParser]:
        from sample_plugin.parsing import URI_LIST  # only "documents" asks, so it is there

        return [URI_LIST]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("bookmarks_room", self._check_room)]

    async def _check_room(self, platform: Platform) -> None:
        await room_left(platform)
