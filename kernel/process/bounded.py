"""Calls functions that may never return, in threads that nothing else has to wait for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

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
