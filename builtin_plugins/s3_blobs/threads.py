"""Threads for calls that block, which end with the process: stopping waits for none of them.

A process waits at its end for the standard library's ThreadPoolExecutor, and so for a hanging server.
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


class BoundedThreads:
    """Runs calls in up to `most` threads, first come, first served."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call()` and return its result. If the caller is cancelled, a running call continues."""
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
        """Cancel waiting calls, and refuse new ones."""
        self._closed = True
        with suppress(queue.Empty):
            while (waiting := self._calls.get_nowait()) is not None:
                waiting[0].cancel()
        for _ in self._threads:
            self._calls.put(None)

    def _serve(self) -> None:
        while (work := self._calls.get()) is not None:
            future, call = work
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 - raised to the waiting caller
                future.set_exception(error)
            else:
                future.set_result(result)
