"""Caches rows that are read often and changed seldom, until a notice says that they changed.

A notice (`kernel.events.notices`) drops cached values in every process within moments of the commit; the
maximum age covers a lost notice.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_AHEAD = 0.25  # of the maximum age: a value used this late is read again ahead of its expiry


class LiveCache(Generic[K, V]):
    """Values by key, with a single `load` for simultaneous requests of the same key.

    A value lives for `max_age` seconds, counted from before it was read; one in use is refreshed earlier, so
    that nobody waits. At most `size` values are kept, those most recently used.
    """

    def __init__(self, load: Callable[[K], Awaitable[V]], max_age: float, size: int = 50_000) -> None:
        self._load_value = load
        self._max_age = max_age
        self._size = size
        self._values: OrderedDict[K, tuple[V, float]] = OrderedDict()
        self._loading: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K) -> V:
        """The value of `key`; read now unless it is cached."""
        entry = self._fresh(key)
        return entry[0] if entry is not None else await asyncio.shield(self._start_loading(key))

    def peek(self, key: K) -> V | None:
        """The value if it is cached and fresh enough. None means that nothing is known."""
        entry = self._fresh(key)
        return None if entry is None else entry[0]

    def _fresh(self, key: K) -> tuple[V, float] | None:
        """The cached value if it is not too old; one that soon will be is read again in the background."""
        entry = self._values.get(key)
        if entry is None:
            return None
        self._values.move_to_end(key)
        left = entry[1] - time.monotonic()
        if 0 < left < self._max_age * _AHEAD:
            self._start_loading(key)
        return entry if left > 0 else None

    def _start_loading(self, key: K) -> asyncio.Task[V]:
        task = self._loading.get(key)
        if task is None:
            task = asyncio.create_task(self._load(key))
            self._loading[key] = task
            task.add_done_callback(lambda done: self._forget_task(key, done))
        return task

    def invalidate(self, key: K) -> None:
        """Drop one value, even while it is being read."""
        self._values.pop(key, None)
        self._loading.pop(key, None)

    def clear(self) -> None:
        """Drop all values, even while they are being read."""
        self._values.clear()
        self._loading.clear()

    def _forget_task(self, key: K, task: asyncio.Task[V]) -> None:
        if self._loading.get(key) is task:
            del self._loading[key]
        if not task.cancelled():
            task.exception()  # waiters get the error; for a read ahead, nobody needs it

    async def _load(self, key: K) -> V:
        started = time.monotonic()
        value = await self._load_value(key)
        # An invalidation of the key, or of all, in the meantime has dropped this read, too.
        if self._loading.get(key) is asyncio.current_task():
            self._values[key] = (value, started + self._max_age)
            self._values.move_to_end(key)
            if len(self._values) > self._size:
                self._values.popitem(last=False)
        return value
