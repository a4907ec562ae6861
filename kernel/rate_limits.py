"""Counts calls in time windows, in the cache store or, if that is unavailable, in this process alone."""

from __future__ import annotations

import logging
import time

from kernel.errors import TooManyRequests
from kernel.resource_keys import ResourceKey
from kernel.stores.cache import MemoryCache
from kernel.stores.protocols import Cache, CacheUnavailable

log = logging.getLogger("platform.http")

WINDOW = 60
BURST_WINDOW = 600


class RateLimits:
    """The counters of one platform. Unless `enabled`, nothing is counted and nothing refused."""

    def __init__(self, cache: Cache, *, enabled: bool) -> None:
        self._cache = cache
        self._enabled = enabled
        self._own = MemoryCache()
        self._warned = 0.0

    async def count(
        self,
        key: str,
        limit: int,
        *,
        burst: int = 0,
        fails_open: bool = False,
        error: type[TooManyRequests] = TooManyRequests,
    ) -> None:
        """Count a call of `key` in this minute. Raises `error` above `limit`.

        With a `burst`, that many more are allowed in ten minutes. If the cache store is unavailable, this
        process counts on its own, unless the limit `fails_open`.
        """
        if not self._enabled:
            return
        count, left = await self._increment(key, WINDOW, fails_open)
        if count > limit and (not burst or await self.exceeds(f"{key}:burst", burst, BURST_WINDOW)):
            raise error(
                f"Rate limit exceeded: {limit} requests per minute; try again in {left} s",
                headers={"Retry-After": str(left)},
            )

    async def exceeds(self, key: str, limit: int, window: int) -> bool:
        """Count a call of `key` in `window` seconds; returns whether that exceeds `limit`."""
        if not self._enabled:
            return False
        return (await self._increment(key, window))[0] > limit

    async def seen(self, key: str, window: int = WINDOW) -> int:
        """How often `count` or `exceeds` has counted `key` in the current window."""
        try:
            return await self._cache.count(key, window)
        except CacheUnavailable as error:
            self._warn(error)
            return await self._own.count(key, window)

    async def _increment(self, key: str, window: int, fails_open: bool = False) -> tuple[int, int]:
        try:
            return await self._cache.increment(key, window)
        except CacheUnavailable as error:
            self._warn(error)
            return (0, 0) if fails_open else await self._own.increment(key, window)

    def _warn(self, error: CacheUnavailable) -> None:
        """Log once a minute that limits are off; a line per request would flood the log."""
        if time.monotonic() - self._warned > WINDOW or not self._warned:
            self._warned = time.monotonic()
            log.warning("the cache store is unavailable (%s): requests are not rate-limited", error)


RATE_LIMITS: ResourceKey[RateLimits] = ResourceKey("rate_limits")
