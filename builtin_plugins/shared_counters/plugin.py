"""The plugin that lets several API processes count rate limits together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from builtin_plugins.shared_counters.counters import SharedCounters
from builtin_plugins.shared_counters.diagnostics import DIAGNOSTICS
from builtin_plugins.shared_counters.models import Base
from builtin_plugins.shared_counters.redis_counters import RedisCounters
from kernel.sdk import (
    PLATFORM_VERSION,
    Diagnostic,
    Plugin,
    StartupError,
    StoreNeeds,
    StoreOffer,
    Tables,
    hookimpl,
)
from kernel.sdk.storage import CACHE_STORE, Cache


class SharedCountersPlugin(Plugin):
    """Offers the cache stores ``redis`` and ``database``. The setting ``auto`` means the first if there is a
    Redis server, and the second for several API processes without one.
    """

    name = "shared_counters"
    version = PLATFORM_VERSION
    description = "Rate limits that several API processes count together, in Redis or the database"
    author = "Platform"
    essential = True

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_stores(self) -> Sequence[StoreOffer[Cache]]:
        return [
            StoreOffer(CACHE_STORE, "redis", _open_redis, suits=_has_redis),
            StoreOffer(CACHE_STORE, "database", _open_table, suits=_is_one_of_several),
        ]

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return DIAGNOSTICS


def _has_redis(needs: StoreNeeds) -> bool:
    return needs.settings.redis_url is not None


def _is_one_of_several(needs: StoreNeeds) -> bool:
    return needs.settings.workers > 1


@asynccontextmanager
async def _open_redis(needs: StoreNeeds) -> AsyncIterator[Cache]:
    address = needs.settings.redis_url
    if address is None:
        raise StartupError("PLATFORM_CACHE_STORE is 'redis'; set REDIS_URL to the server's address, too")
    counters = RedisCounters(address.get_secret_value())
    try:
        yield counters
    finally:
        await counters.close()


@asynccontextmanager
async def _open_table(needs: StoreNeeds) -> AsyncIterator[Cache]:
    counters = SharedCounters(needs.database)
    try:
        yield counters
    finally:
        await counters.close()
