"""A store's background work, which ends with the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

log = logging.getLogger("platform.vectors")


class Upkeep:
    """Tasks by name: one per name at a time; errors are logged; all are cancelled at the end."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    def begin(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start `work`, unless it is already running."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(self._run(name, work))

    async def settled(self) -> None:
        """Wait until nothing is running."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def close(self) -> None:
        """Cancel what is running."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        try:
            await work()
        except Exception:  # boundary: nobody awaits this task; searches work without it, and start it again
            log.exception("%s failed", name)
        finally:
            del self._tasks[name]
