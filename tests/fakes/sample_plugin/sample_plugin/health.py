"""The plugin's health."""

from __future__ import annotations

from kernel.sdk import Platform, Unhealthy
from sample_plugin import bookmarks
from sample_plugin.settings import BookmarksSettings


async def room_left(platform: Platform) -> None:
    """Raise Unhealthy when no further bookmark fits."""
    limit = platform.settings_of(BookmarksSettings).limit
    if await bookmarks.count(platform) >= limit:
        raise Unhealthy(f"all {limit} bookmarks are taken; raise BOOKMARKS_LIMIT")
