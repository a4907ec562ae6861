"""Read-write locks for an index: one for threads, one for tasks."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class SharedLock:
    """Any number of readers, or one writer. A waiting writer blocks readers that come after it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._waiting_writers = 0
        self._writing = False

    @property
    def writer_waits(self) -> bool:
        """Whether a writer is waiting."""
        return self._waiting_writers > 0

    @contextmanager
    def read(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._writing and not self._waiting_writers)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        with self._changed:
            self._waiting_writers += 1
            self._changed.wait_for(lambda: not self._writing and not self._readers)
            self._waiting_writers -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()


class AsyncSharedLock:
    """The same for the tasks of one event loop. Tasks enter in the order in which they asked."""

    def __init__(self) -> None:
        self._readers = 0
        self._writing = False
        self._waiting: deque[tuple[bool, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        await self._enter(writer=False)
        try:
            yield
        finally:
            self._leave(writer=False)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[None]:
        await self._enter(writer=True)
        try:
            yield
        finally:
            self._leave(writer=True)

    async def _enter(self, *, writer: bool) -> None:
        if not self._waiting and self._free(writer):
            self._take(writer)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((writer, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._admit()
            else:
                self._leave(writer=writer)
            raise

    def _free(self, writer: bool) -> bool:
        return not self._writing and not (writer and self._readers)

    def _take(self, writer: bool) -> None:
        if writer:
            self._writing = True
        else:
            self._readers += 1

    def _leave(self, *, writer: bool) -> None:
        if writer:
            self._writing = False
        else:
            self._readers -= 1
        self._admit()

    def _admit(self) -> None:
        """Admit those whose turn has come, skipping any that gave up waiting."""
        while self._waiting:
            writer, turn = self._waiting[0]
            if not turn.cancelled():
                if not self._free(writer):
                    return
                self._take(writer)
                turn.set_result(None)
            self._waiting.popleft()
