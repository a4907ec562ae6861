"""Short reads from SQLite in the event loop itself.

A row by its key takes SQLite 13 µs; to hand the question to a thread and the answer back takes 50, and 200 on
two idle cores, which then wake each other for the interpreter. So a function that reads by one statement
(`one_statement`) is tried here first, and stopped should it take long: then a thread reads it, and does so
from now on for a while. What nobody can stop is one access to a disk that is slower than its file cache.
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
"""Steps of SQLite's machine that a read may take here: a millisecond at most."""
_LOOK = 1000  # steps between two looks
_WALL = 0.05  # seconds, where the disk is what takes long
_REST = 1.0  # seconds for which a statement that took longer is left to the threads


class Near:
    """One connection of the event loop's own, which only reads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._session: Session | None = None
        self._driver: sqlite3.Connection | None = None
        self._steps = 0
        self._until = 0.0
        self._long: dict[object, float] = {}

    def read(self, fn: Callable[..., T], args: Any, kwargs: Any) -> T:
        """What `fn(session, …)` returns. Raises Elsewhere where it is to be read by a thread."""
        if self._session is None:
            self._session = self._open()
        return checked(fn(self._session, *args, **kwargs))

    def begins(self, statement: object) -> bool:
        """Whether the statement may be tried here, from now on: it was quick lately."""
        now = time.monotonic()
        self._steps, self._until = 0, now + _WALL
        return self._long.get(statement, 0.0) <= now

    def took_long(self, statement: object) -> None:
        """Leave the statement to the threads for a while."""
        self._long[statement] = time.monotonic() + _REST

    def close(self) -> None:
        """Let go of the file."""
        self._session = None
        if self._driver is not None:
            self._driver.close()
            self._driver = None

    def _open(self) -> Session:
        try:
            file = quote(str(self._engine.url.database))
            # Whoever waits here for a lock would hold up everybody.
            self._driver = sqlite3.connect(f"file:{file}?mode=rw", uri=True, timeout=0, isolation_level=None)
            for pragma in ("query_only=ON", "temp_store=MEMORY", "cache_size=-16000"):
                self._driver.execute(f"PRAGMA {pragma}")
        except sqlite3.Error:
            self.close()
            raise Elsewhere from None
        self._driver.set_progress_handler(self._is_late, _LOOK)
        # Bound to nothing: what is not a prepared statement can't be read here.
        return Session(info=Direct(self._engine, self._driver, self).info)

    def _is_late(self) -> bool:
        self._steps += _LOOK
        return self._steps > STEPS or time.monotonic() > self._until
