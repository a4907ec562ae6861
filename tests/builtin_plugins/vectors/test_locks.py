"""The shared lock: readers together, a writer alone and not starved."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from builtin_plugins.vectors.locks import AsyncSharedLock, SharedLock


def test_readers_share_it() -> None:
    """Two readers meet inside; with an exclusive lock the barrier would break."""
    lock, meeting = SharedLock(), threading.Barrier(2)

    def read() -> None:
        with lock.read():
            meeting.wait(timeout=5)

    with ThreadPoolExecutor(2) as threads:
        for reader in [threads.submit(read) for _ in range(2)]:
            reader.result()


def test_a_writer_waits_for_readers_and_goes_before_later_ones() -> None:
    lock, order = SharedLock(), []
    writer_started = threading.Event()

    def write() -> None:
        writer_started.set()
        with lock.write():
            order.append("writer")

    def read() -> None:
        with lock.read():
            order.append("later reader")

    with ThreadPoolExecutor(2) as threads:
        with lock.read():
            writing = threads.submit(write)
            writer_started.wait(5)
            while not lock.writer_waits:
                pass
            reading = threads.submit(read)
            order.append("first reader")
        writing.result(5)
        reading.result(5)
    assert order == ["first reader", "writer", "later reader"]


def test_an_error_inside_releases_it() -> None:
    lock = SharedLock()
    for side in (lock.read, lock.write):
        try:
            with side():
                raise LookupError
        except LookupError:
            pass
    with lock.write():
        pass


async def test_tasks_read_together_and_write_alone() -> None:
    """Readers share; a writer waits for them, holds up those that come later, and is alone."""
    lock, order = AsyncSharedLock(), list[str]()
    reading, enough = asyncio.Event(), asyncio.Event()

    async def read(name: str) -> None:
        async with lock.read():
            order.append(name)
            reading.set()
            await enough.wait()

    async def write() -> None:
        async with lock.write():
            order.append("write")
            await asyncio.sleep(0)
            order.append("written")

    tasks = [asyncio.create_task(read("first")), asyncio.create_task(read("second"))]
    await reading.wait()
    tasks += [asyncio.create_task(write()), asyncio.create_task(read("late"))]
    await asyncio.sleep(0)
    assert order == ["first", "second"]
    enough.set()
    async with asyncio.timeout(5):
        await asyncio.gather(*tasks)
    assert order == ["first", "second", "write", "written", "late"]


async def test_a_task_that_gives_up_waiting_holds_up_nobody() -> None:
    lock = AsyncSharedLock()

    async def write() -> None:
        async with lock.write():
            await asyncio.sleep(0)

    for turns in range(4):
        async with lock.read():
            waiting = asyncio.create_task(write())
            await asyncio.sleep(0)
            if turns % 2:
                waiting.cancel()
        if not turns % 2:
            waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(5), lock.write():
            pass
