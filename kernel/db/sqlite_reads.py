"""Threads that read from SQLite, one at a time while each read is short.

SQLite's driver releases the interpreter at each row. Threads that read side by side then mostly hand it to
each other (measured: a list of ten rows costs 205 µs of processor time with one thread, 428 µs with four). So
one thread has the turn and takes the waiting reads; a long read passes the turn on to the next thread.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from functools import partial
from typing import Any

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.orm import Session

from kernel.db.handover import Handover, settle
from kernel.db.prepared import Direct, is_one_statement
from kernel.db.tasks import Task

READERS = 4
LONG = 0.005
"""Seconds after which a read no longer keeps others waiting."""


class Readers:
    """Runs an event loop's reads."""

    def __init__(self, engine: Engine, handover: Handover, name: str = "db-read") -> None:
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._turn = Turn()
        self._watch: asyncio.TimerHandle | None = None
        self._threads = [
            threading.Thread(
                target=Reader(engine, self._tasks, self._turn, handover).serve,
                name=f"{name}-{number}",
                daemon=True,
            )
            for number in range(READERS)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, task: Task) -> None:
        """Run it soon."""
        self._tasks.put(task)
        if self._watch is None:
            self._watch_over()

    def stop(self) -> None:
        """End the threads once all queued reads are done."""
        for _ in self._threads:
            self._tasks.put(None)

    def join(self) -> None:
        """Wait until the threads have ended."""
        for thread in self._threads:
            thread.join()

    def _watch_over(self) -> None:
        self._watch = asyncio.get_running_loop().call_later(LONG, self._look)

    def _look(self) -> None:
        self._watch = None
        if not self._tasks.empty():
            self._turn.pass_on_if_long()
            self._watch_over()


class Turn:
    """Which thread takes the waiting reads."""

    def __init__(self) -> None:
        self._free = threading.Lock()
        self._giving = threading.Lock()
        self._holder: Reader | None = None

    def take(self, reader: Reader) -> None:
        """Wait for the turn."""
        self._free.acquire()
        reader.has_turn = True
        self._holder = reader

    def give_back(self, reader: Reader) -> None:
        """Give up the turn, unless it was passed on already."""
        with self._giving:
            if reader.has_turn:
                reader.has_turn = False
                self._free.release()

    def pass_on_if_long(self) -> None:
        """In the loop: pass the turn on if its thread is busy with a long read."""
        holder = self._holder
        if holder is not None and holder.has_turn and holder.since and time.monotonic() - holder.since > LONG:
            # If it ends just now, two threads read side by side until its next read is done.
            self.give_back(holder)


class Reader:
    """One thread that reads."""

    def __init__(
        self, engine: Engine, tasks: queue.SimpleQueue[Task | None], turn: Turn, handover: Handover
    ) -> None:
        self.since = 0.0  # when the current read began
        self.has_turn = False
        self._engine = engine
        self._tasks = tasks
        self._turn = turn
        self._handover = handover
        self._connection: Connection | None = None
        self._direct: Direct
        self._light: Session

    def serve(self) -> None:
        """Run reads until the queue's stop signal."""
        self._turn.take(self)
        while (task := self._tasks.get()) is not None:
            if task.future.cancelled():
                continue
            self.since = time.monotonic()
            result, error = None, None
            try:
                result = self._read(task)
            except BaseException as caught:  # noqa: BLE001 - whoever waits hears of it
                error = caught
            self.since = 0.0
            self._handover.give(partial(settle, task.future, result, error))
            if not self.has_turn:
                self._turn.take(self)
        self._turn.give_back(self)
        if self._connection is not None:
            self._connection.close()

    def _read(self, task: Task) -> Any:
        if self._connection is None:
            self._connection = self._engine.connect()
            driver: Any = self._connection.connection.driver_connection
            self._direct = Direct(self._engine, driver)
            self._light = Session(self._connection, autoflush=False, info=self._direct.info)
        if is_one_statement(task.fn):
            return self._read_one(task, self._light)
        options: dict[str, Any] = {"autoflush": False, "expire_on_commit": False, "close_resets_only": False}
        try:
            self._direct.driver.execute("BEGIN")  # takes no lock, so it can't fail
            with Session(self._connection, info=self._direct.info, **options) as session:
                return task.run(session)
        finally:
            if self._direct.driver.in_transaction:
                self._direct.driver.rollback()

    @staticmethod
    def _read_one(task: Task, session: Session) -> Any:
        try:
            return task.run(session)
        finally:
            if session.in_transaction():
                session.close()
