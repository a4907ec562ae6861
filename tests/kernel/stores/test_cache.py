"""The kernel's own cache store."""

from __future__ import annotations

import pytest

from kernel.stores.cache import MemoryCache
from kernel.stores.protocols import Cache
from kernel.testing.conformance import CacheConformance


class TestMemoryCache(CacheConformance):
    @pytest.fixture
    def cache(self) -> Cache:
        """Counters of this process."""
        return MemoryCache()


async def test_flood_of_keys_is_bounded() -> None:
    """A caller who changes its name with each request can't fill the memory."""
    cache = MemoryCache()
    for number in range(120_000):
        await cache.increment(f"key-{number}", 60)
    assert cache.size <= 50_001
