"""Waiting for what another process does, where there is no event to await."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable


async def eventually(check: Callable[[], bool | Awaitable[bool]], seconds: float) -> float:
    """Look until `check()` is true; answers how long that took. Raises TimeoutError past `seconds`."""
    started = time.monotonic()
    async with asyncio.timeout(seconds):
        while True:
            found = check()
            if await found if inspect.isawaitable(found) else found:
                return time.monotonic() - started
            await asyncio.sleep(0.02)
