"""Each process's list of archives: their sizes, and how old the newest is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from builtin_plugins.platform_ops.backup.archives import Listing
from builtin_plugins.platform_ops.backup.service import archives_of
from kernel.sdk import Platform, ResourceKey

LISTING: ResourceKey[Listing] = ResourceKey("platform_ops.backups")
_EVERY_SECONDS = 60


@asynccontextmanager
async def open_listing(platform: Platform) -> AsyncIterator[Listing]:
    """The list of archives of one process."""
    _offer_age(platform)
    yield Listing()


def _offer_age(platform: Platform) -> None:
    """Make `/metrics` show when the newest backup was made; 0 if there is none."""
    newest = platform.metrics.gauge(
        "backup_newest_timestamp_seconds",
        "When the newest backup was made, in Unix time; 0 if there is none.",
    )

    async def read() -> None:
        entries = await asyncio.to_thread(lambda: archives_of(platform).entries())
        newest.set(entries[0].modified_at.timestamp() if entries else 0)

    platform.metrics.on_scrape(read, _EVERY_SECONDS)
