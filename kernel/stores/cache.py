"""The kernel's own cache store: counters in fixed windows, in this process."""

from __future__ import annotations

import time

_SWEEP_ABOVE = 50_000


class MemoryCache:
    """Counters of this process."""

    def __init__(self) -> None:
        self._counters: dict[str, tuple[int, int]] = {}  # (end of the window, count)

    async def increment(self, key: str, window: int) -> tuple[int, int]:
        now = time.time()
        end = (int(now // window) + 1) * window
        last_end, count = self._counters.get(key, (end, 0))
        count = count + 1 if last_end == end else 1
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
