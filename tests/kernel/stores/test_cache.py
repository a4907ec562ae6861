"""The cache stores: in this process, and in Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kernel.stores.cache import Cache, CacheUnavailable, MemoryCache, RedisCache
from kernel.stores.conformance import CacheConformance


class TestMemoryCache(CacheConformance):
    @pytest.fixture
    def cache(self) -> Cache:
        """Counters of this process."""
        return MemoryCache()


class TestRedisCache(CacheConformance):
    @pytest.fixture
    async def cache(self, redis_url: str) -> AsyncIterator[Cache]:
        """A real Redis."""
        made = RedisCache(redis_url)
        yield made
        await made.close()


async def test_flood_of_keys_is_bounded() -> None:
    """A caller who changes its name with each request can't fill the memory."""
    cache = MemoryCache()
    for number in range(120_000):
        await cache.increment(f"key-{number}", 60)
    assert cache.size <= 50_001


async def test_absent_redis_is_told() -> None:
    """A store that does not answer raises its own error, quickly, and not the driver's."""
    cache = RedisCache("redis://127.0.0.1:1/0")
    with pytest.raises(CacheUnavailable):
        await cache.increment("key", 60)
    await cache.close()
