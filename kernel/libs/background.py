"""Work in the background: functions that may never return, and tasks that last as long as the process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

log = logging.getLogger("platform")

_PAUSE = 5.0

Work = Callable[[], Coroutine[Any, Any, object]]
T = TypeVar("T")


def run_bounded(function: Callable[[], T], seconds: float) -> T:
    """Call `function` in its own thread and wait at most `seconds`; then raise TimeoutError.

    A thread can't be killed: one that hangs stays behind as a daemon.
    """
    outcome: list[tuple[bool, Any]] = []

    def call() -> None:
        try:
            outcome.append((True, function()))
        except BaseException as error:  # noqa: BLE001 - carried over to the caller
            outcome.append((False, error))

    thread = threading.Thread(target=call, name="plugin-start", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError(f"no answer within {seconds:g} s")
    worked, value = outcome[0]
    if not worked:
        raise value
    return value  # type: ignore[no-any-return]


async def in_abandonable_thread(function: Callable[[], T]) -> T:
    """The result of `function`, from a thread that neither a closing loop nor an ending process waits for.

    A closing loop waits for the threads of `asyncio.to_thread`, however long that takes.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(outcome: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is waiting any more
            loop.call_soon_threadsafe(lambda: None if done.done() else outcome())

    def run() -> None:
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits it
            failure = error
            settle(lambda: done.set_exception(failure))
        else:
            settle(lambda: done.set_result(result))

    threading.Thread(target=run, name="abandonable", daemon=True).start()
    return await done


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
