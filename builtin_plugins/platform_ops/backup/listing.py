"""Each process's list of archives: their sizes, and how old the newest is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from builtin_plugins.platform_ops.backup.archives import ArchiveSizes
from builtin_plugins.platform_ops.backup.service import archives_of
from kernel.sdk import Platform, ResourceKey

LISTING: ResourceKey[ArchiveSizes] = ResourceKey("platform_ops.backups")
_EVERY_SECONDS = 60


@asynccontextmanager
async def open_listing(platform: Platform) -> AsyncIterator[ArchiveSizes]:
    """The list of archives of one process."""
    _offer_age(platform)
    yield ArchiveSizes()


def _offer_age(platform: Platform) -> None:
    """Make `/metrics` show when the newest backup was made; 0 if there is none."""
    newest = platform.metrics.gauge(
        "backup_newest_timestamp_seconds",
        "When the newest backup that can be read was made, in Unix time; 0 if there is none.",
    )

    results: dict[tuple[str, datetime], bool] = {}

    async def read() -> None:
        entry = await asyncio.to_thread(lambda: archives_of(platform).newest_sound(results))
        newest.set(entry.modified_at.timestamp() if entry else 0)

    platform.metrics.on_scrape(read, _EVERY_SECONDS)
