"""The counters in a Redis server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from builtin_plugins.shared_counters.redis_counters import RedisCounters
from kernel.errors import StartupError
from kernel.stores.protocols import Cache, CacheUnavailable
from kernel.testing import Start
from kernel.testing.conformance import CacheConformance


class TestRedisCounters(CacheConformance):
    @pytest.fixture
    async def cache(self, redis_url: str) -> AsyncIterator[Cache]:
        """A real Redis."""
        counters = RedisCounters(redis_url)
        yield counters
        await counters.close()


async def test_absent_redis_is_told() -> None:
    """A store that does not answer raises its own error, quickly, and not the driver's."""
    cache = RedisCounters("redis://127.0.0.1:1/0")
    with pytest.raises(CacheUnavailable):
        await cache.increment("key", 60)
    await cache.close()


async def test_no_address(start_platform: Start) -> None:
    """Whoever chooses Redis has to say where it is."""
    with pytest.raises(StartupError, match="REDIS_URL"):
        await start_platform(env={"PLATFORM_CACHE_STORE": "redis"})
