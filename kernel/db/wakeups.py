"""Wakes the installation's other processes after a commit that concerns them.

An idle platform does next to no polling. On PostgreSQL, a trigger on the table of notices sends a
notification with the commit, and every process listens on its own connection. SQLite has no such thing:
there, every process has a named pipe beside the home's locks, and a process that has committed a notice
writes a byte into each. A wake-up may be lost (a process killed between its commit and the byte, a connection
pooler that forwards no notifications), so listeners also check now and then.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy.exc import SQLAlchemyError

from kernel.db.engine import Database
from kernel.libs.background import lasting, set_within

log = logging.getLogger("platform.notices")

_CHANNEL = "kernel_notice"
_PIPES = "wake-*"
_MANY = 65_536
_RETRY = 1.0
# Seconds between checks without a wake-up: one may be lost, or there may be none. A check costs 0.2 ms on
# SQLite and a round trip on PostgreSQL. How soon a lost revocation takes effect does not depend on this.
_UNLIKELY = 1.0
_UNLIKELY_ON_POSTGRESQL = 5.0
_BLIND = 0.2
_ENDING = 5.0

Wake = Callable[[], None]


class Wakeups(Protocol):
    """How the processes of an installation wake each other."""

    @property
    def patience(self) -> float:
        """Seconds after which to check even without a wake-up."""

    async def start(self, database: Database, wake: Wake) -> None:
        """Call `wake()` in the event loop whenever another process committed a notice."""

    def tell(self) -> None:
        """Wake the others: this process committed a notice."""

    async def stop(self) -> None:
        """Stop listening."""


class Pipes:
    """Named pipes in a folder that the processes of one machine share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: Path | None = None
        self._reading: int | None = None

    @property
    def patience(self) -> float:
        return _UNLIKELY if self._reading is not None else _BLIND

    async def start(self, _database: Database, wake: Wake) -> None:
        try:
            self._reading = self._open()
        except OSError as error:
            log.info("could not create a named pipe in %s; polling instead: %s", self._folder, error)
            return
        asyncio.get_running_loop().add_reader(self._reading, _drain, self._reading, wake)

    def _open(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        own = self._folder / _PIPES.replace("*", uuid.uuid4().hex)
        os.mkfifo(own, 0o600)
        # Open for writing, too: without any writer, a pipe is at its end and would wake forever.
        reading = os.open(own, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._own = own
        return reading

    def tell(self) -> None:
        for pipe in self._folder.glob(_PIPES):
            if pipe != self._own:
                _ring(pipe)

    async def stop(self) -> None:
        if self._reading is None or self._own is None:
            return
        asyncio.get_running_loop().remove_reader(self._reading)
        self._own.unlink(missing_ok=True)
        os.close(self._reading)
        self._own = self._reading = None


def _drain(reading: int, wake: Wake) -> None:
    with suppress(BlockingIOError):
        os.read(reading, _MANY)
    wake()


def _ring(pipe: Path) -> None:
    """Write a byte; remove a pipe without a reader, left by a killed process."""
    try:
        writing = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO:
            pipe.unlink(missing_ok=True)
        return
    try:
        # A full pipe has already woken its reader.
        with suppress(OSError):
            os.write(writing, b"\0")
    finally:
        os.close(writing)


class Notifications:
    """PostgreSQL's LISTEN, on one connection for each process; the trigger notifies (migration 0003)."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._connected = False
        self._stopping = False
        self._end = asyncio.Event()  # end of the connection, or of listening

    @property
    def patience(self) -> float:
        return _UNLIKELY_ON_POSTGRESQL if self._connected else _BLIND

    async def start(self, database: Database, wake: Wake) -> None:
        self._task = lasting("wake-ups", partial(self._listen, database, wake))

    def tell(self) -> None:
        """Nothing to do: the commit notified them."""

    async def stop(self) -> None:
        if self._task is not None:
            self._stopping = True
            self._end.set()
            await ended(self._task)

    async def _listen(self, database: Database, wake: Wake) -> None:
        while not self._stopping:
            self._end.clear()
            try:
                await self._while_connected(database, wake)
            except (SQLAlchemyError, OSError) as error:
                log.debug("notifications are unavailable: %s", type(error).__name__)
            await set_within(self._end, 0 if self._stopping else _RETRY)

    async def _while_connected(self, database: Database, wake: Wake) -> None:
        async with database.session_connection() as connection:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            driver.add_termination_listener(lambda _: self._end.set())
            await driver.add_listener(_CHANNEL, lambda *_: wake())
            self._connected = True
            wake()
            try:
                await self._end.wait()
            finally:
                self._connected = False
                await connection.invalidate()  # takes two seconds at most, even if the server is gone


async def ended(task: asyncio.Task[None]) -> None:
    """Wait for a task that was asked to end; cancel it only if that takes long.

    To cancel a statement, asyncpg opens a connection to tell the server, and nobody awaits that one's end.
    """
    done, _ = await asyncio.wait({task}, timeout=_ENDING)
    if not done:
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def wakeups_for(database_url: str, folder: Path) -> Wakeups:
    """What wakes the processes that share this database; `folder` is for the pipes."""
    return Pipes(folder) if database_url.startswith("sqlite") else Notifications()
