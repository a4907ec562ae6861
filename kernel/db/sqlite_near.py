"""Short reads from SQLite in the event loop itself.

SQLite reads a row by its key in 13 µs; handing the request to a thread and the result back takes 50 µs, or
200 µs on two idle cores, which wake each other for the interpreter. So a function that reads with one
statement (`one_statement`) is tried here first and interrupted if it takes long: a thread then reads it, now
and for a while after. A single slow disk access can't be interrupted.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from kernel.db.prepared import Direct, Elsewhere
from kernel.db.units import checked

T = TypeVar("T")

STEPS = 20_000
"""Steps of SQLite's virtual machine that a read may take here: at most a millisecond."""
_LOOK = 1000  # steps between checks
_WALL = 0.05  # seconds, if the disk is slow
_REST = 1.0  # seconds for which a slow statement is left to the threads


class Near:
    """The event loop's own read-only connection."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._session: Session | None = None
        self._driver: sqlite3.Connection | None = None
        self._steps = 0
        self._until = 0.0
        self._long: dict[object, float] = {}

    def read(self, fn: Callable[..., T], args: Any, kwargs: Any) -> T:
        """The result of `fn(session, …)`. Raises Elsewhere if a thread must read it."""
        if self._session is None:
            self._session = self._open()
        return checked(fn(self._session, *args, **kwargs))

    def begins(self, statement: object) -> bool:
        """Whether the statement may be tried here: it was not slow lately. Starts its time."""
        now = time.monotonic()
        self._steps, self._until = 0, now + _WALL
        return self._long.get(statement, 0.0) <= now

    def took_long(self, statement: object) -> None:
        """Leave the statement to the threads for a while."""
        self._long[statement] = time.monotonic() + _REST

    def close(self) -> None:
        """Close the file."""
        self._session = None
        if self._driver is not None:
            self._driver.close()
            self._driver = None

    def _open(self) -> Session:
        try:
            file = quote(str(self._engine.url.database))
            # Waiting for a lock here would block the event loop.
            self._driver = sqlite3.connect(f"file:{file}?mode=rw", uri=True, timeout=0, isolation_level=None)
            for pragma in ("query_only=ON", "temp_store=MEMORY", "cache_size=-16000"):
                self._driver.execute(f"PRAGMA {pragma}")
        except sqlite3.Error:
            self.close()
            raise Elsewhere from None
        self._driver.set_progress_handler(self._is_late, _LOOK)
        # Bound to no engine: only prepared statements can be read here.
        return Session(info=Direct(self._engine, self._driver, self).info)

    def _is_late(self) -> bool:
        self._steps += _LOOK
        return self._steps > STEPS or time.monotonic() > self._until
