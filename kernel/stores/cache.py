"""The cache store: counters in fixed windows, in process, in Redis (`REDIS_URL`) or in the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernel.db.engine import Database
from kernel.stores.protocols import Cache, CacheUnavailable
from kernel.stores.shared_counters import SharedCounters

if TYPE_CHECKING:
    from redis.asyncio import Redis

_SWEEP_ABOVE = 50_000
_PATIENCE = 0.25
_REST = 1.0


class MemoryCache:
    """Counters of this process."""

    def __init__(self) -> None:
        self._counters: dict[str, tuple[int, int]] = {}  # (end of the window, count)

    async def increment(self, key: str, window: int) -> tuple[int, int]:
        now = time.time()
        end = (int(now // window) + 1) * window
        seen, count = self._counters.get(key, (end, 0))
        count = count + 1 if seen == end else 1
        self._counters[key] = (end, count)
        if len(self._counters) > _SWEEP_ABOVE:
            self._sweep(now)
        return count, max(1, int(end - now + 0.999))

    async def count(self, key: str, window: int) -> int:
        end, count = self._counters.get(key, (0, 0))
        return count if end == (int(time.time() // window) + 1) * window else 0

    @property
    def size(self) -> int:
        """How many keys are being counted."""
        return len(self._counters)

    def _sweep(self, now: float) -> None:
        """Drop counters of past windows; if too many are current, clear them all (fails open)."""
        self._counters = {k: v for k, v in self._counters.items() if v[0] > now}
        if len(self._counters) > _SWEEP_ABOVE // 2:
            self._counters.clear()

    async def ping(self) -> None:
        return None

    async def close(self) -> None:
        return None


class RedisCache:
    """Counters shared by all processes. A call that takes over 0.25 s raises CacheUnavailable.

    After a failure, the store is skipped for a second, so that a dead one does not slow down every request.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._client: Redis | None = None
        self._resting_until = 0.0
        self._failure = ""

    async def increment(self, key: str, window: int) -> tuple[int, int]:
        now = time.time()
        current = int(now // window)
        name = f"{key}:{current}"
        pipe = self._connection().pipeline(transaction=False)
        pipe.incr(name)
        pipe.expire(name, window + 1)
        count, _ = await self._guarded(pipe.execute)
        return int(count), max(1, int((current + 1) * window - now + 0.999))

    async def count(self, key: str, window: int) -> int:
        name = f"{key}:{int(time.time() // window)}"
        return int(await self._guarded(lambda: self._connection().get(name)) or 0)

    async def ping(self) -> None:
        await self._guarded(self._connection().ping)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _connection(self) -> Redis:
        if self._client is None:
            from redis.asyncio import Redis

            self._client = Redis.from_url(
                self._url,
                socket_timeout=_PATIENCE,
                socket_connect_timeout=_PATIENCE,
                decode_responses=True,
                retry=None,
            )
        return self._client

    async def _guarded(self, call: Callable[[], Any]) -> Any:
        from redis.exceptions import RedisError

        if time.monotonic() < self._resting_until:
            raise CacheUnavailable(self._failure)
        try:
            async with asyncio.timeout(_PATIENCE):
                return await call()
        except (RedisError, OSError, TimeoutError) as error:
            self._resting_until = time.monotonic() + _REST
            self._failure = type(error).__name__
            raise CacheUnavailable(self._failure) from None


def open_cache(redis_url: str | None, database: Database, processes: int) -> Cache:
    """Redis if an address is given; otherwise the database for several API processes, memory for one."""
    if redis_url:
        return RedisCache(redis_url)
    return SharedCounters(database) if processes > 1 else MemoryCache()
