"""A cache store of one dictionary."""

from __future__ import annotations

import time
from collections import Counter

from kernel.sdk.storage import CacheUnavailable


class ShelfCache:
    """A `Cache` that counts in this process; `away` takes it off the network."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()
        self.away = False

    async def increment(self, key: str, window: int) -> tuple[int, int]:
        await self.ping()
        now = time.time()
        end = (int(now // window) + 1) * window
        self.counts[key, end] += 1
        return self.counts[key, end], max(1, round(end - now))

    async def count(self, key: str, window: int) -> int:
        await self.ping()
        return self.counts[key, (int(time.time() // window) + 1) * window]

    async def ping(self) -> None:
        if self.away:
            raise CacheUnavailable("ShelfCache")

    async def close(self) -> None:
        return None
