"""Work that goes on beside everything else for as long as a process runs, such as looking for what is due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger("platform")

_PAUSE = 5.0

Work = Callable[[], Coroutine[Any, Any, object]]


def lasting(name: str, work: Work, *, pause: float = _PAUSE) -> asyncio.Task[None]:
    """Begin `work` as a task that ends when the work returns or is cancelled, but not with an error.

    An error that the work does not expect is logged, and the work begins again after `pause` seconds.
    Otherwise nobody would notice its end until what it does is missed. An error while the task is being
    cancelled is logged and ends it: otherwise the process could not stop.
    """
    return asyncio.create_task(_again_and_again(name, work, pause), name=name)


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
            log.exception("%s: ended by an unexpected error; begins again in %g s", name, pause)
        await asyncio.sleep(pause)
