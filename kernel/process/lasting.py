"""Background work that runs for as long as the process does, such as looking for due schedules."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

log = logging.getLogger("platform")

_PAUSE = 5.0

Work = Callable[[], Coroutine[Any, Any, object]]


def lasting(name: str, work: Work, *, pause: float = _PAUSE) -> asyncio.Task[None]:
    """Start `work` as a task that ends when the work returns or is cancelled, but not when it fails.

    An unexpected error is logged, and the work starts again after `pause` seconds; otherwise nobody would
    notice that it ended. An error while the task is being cancelled is logged and ends it; otherwise the
    process could not stop.
    """
    return asyncio.create_task(_again_and_again(name, work, pause), name=name)


@asynccontextmanager
async def repeating(name: str, work: Work, seconds: float) -> AsyncIterator[None]:
    """During the block, do `work` every so many seconds; once more at its end."""
    ending = asyncio.Event()

    async def repeat() -> None:
        while not await set_within(ending, seconds):
            await work()

    task = lasting(name, repeat)
    try:
        yield
    finally:
        ending.set()
        await task
        await work()


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event, at most so many seconds; returns whether it is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


async def _again_and_again(name: str, work: Work, pause: float) -> None:
    while True:
        try:
            await work()
            return
        except Exception:  # boundary: nobody awaits this work, and the process needs it
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                log.exception("%s: failed while it was being stopped", name)
                raise asyncio.CancelledError from None
            log.exception("%s: stopped by an unexpected error; starting again in %g s", name, pause)
        await asyncio.sleep(pause)
