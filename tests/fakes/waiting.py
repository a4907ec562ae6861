"""Waiting for what another process does, where there is no event to await."""

from __future__ import annotations

import asyncio
import time

from kernel.testing import eventually as eventually


async def room_in_the_minute(seconds: float) -> None:
    """Do not begin just before the clock's minute ends: a rate limit would start again in mid-test."""
    left = 60 - time.time() % 60
    if left < seconds:
        await asyncio.sleep(left)
