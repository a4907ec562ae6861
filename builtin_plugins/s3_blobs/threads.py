"""Threads for calls that block, which end with the process: stopping waits for none of them.

The end of the process waits for a ThreadPoolExecutor of the standard library, and so for a server that hangs.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Threads:
    """Runs calls in up to `most` threads, in the order of asking."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False

    async def run(self, call: Callable[[], T]) -> T:
        """What `call()` returns. A caller that is cancelled leaves a call that has begun to itself."""
        if self._closed:
            raise RuntimeError("the store is closed")
        future: Future[T] = Future()
        self._calls.put((future, call))
        if len(self._threads) < self._most:
            thread = threading.Thread(
                target=self._serve, name=f"{self._name}-{len(self._threads)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Cancel the calls that are waiting, and refuse new ones."""
        self._closed = True
        with suppress(queue.Empty):
            while (waiting := self._calls.get_nowait()) is not None:
                waiting[0].cancel()
        for _ in self._threads:
            self._calls.put(None)

    def _serve(self) -> None:
        while (taken := self._calls.get()) is not None:
            future, call = taken
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 - whoever waits hears of it
                future.set_exception(error)
            else:
                future.set_result(result)
