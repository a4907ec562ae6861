"""Calling third-party functions with a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def run_bounded(function: Callable[[], T], seconds: float) -> T:
    """Call `function` in a thread of its own and wait at most `seconds`; TimeoutError after that.

    A thread can't be killed: one that hangs stays behind, as a daemon, and holds up nothing else.
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
        raise TimeoutError
    worked, value = outcome[0]
    if not worked:
        raise value
    return value  # type: ignore[no-any-return]
