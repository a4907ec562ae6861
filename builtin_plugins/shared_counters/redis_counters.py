"""Counters in a Redis server (`REDIS_URL`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernel.sdk.storage import CacheUnavailable

if TYPE_CHECKING:
    from redis.asyncio import Redis

_PATIENCE = 0.25
_REST = 1.0


class RedisCounters:
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
