"""Values that are gathered in memory and written together, to avoid a write for each.

A killed process loses those of the last seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from kernel.db.engine import Database, Unit
from kernel.db.units import uninterrupted
from kernel.process.machine_faults import kind_of

K = TypeVar("K")
V = TypeVar("V")

log = logging.getLogger("platform")


class Tally(Generic[K, V]):
    """One value for each key; `add(earlier, later)` is the sum of two. `write(unit, values)` writes them.

    `what` describes the values in the log, in the plural.
    """

    def __init__(
        self,
        database: Database,
        what: str,
        write: Callable[[Unit, Mapping[K, V]], None],
        add: Callable[[V, V], V],
    ) -> None:
        self._database = database
        self._what = what
        self._write = write
        self._add = add
        self._waiting: dict[K, V] = {}
        self._failing = False
        self._writing = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: K, value: V) -> None:
        """Add to the value of a key."""
        current = self._waiting.get(key)
        self._waiting[key] = value if current is None else self._add(current, value)

    def get(self, key: K) -> V | None:
        """The value that is not written yet."""
        return self._waiting.get(key)

    async def flush(self) -> None:
        """Write the values, also those of a flush under way; what can't be written is kept for the next time.

        A write goes on if the caller is cancelled, so that no values are lost.
        """
        async with self._writing:
            if self._waiting:
                await uninterrupted(self._flush())

    async def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        try:
            await self._database.write(self._write, waiting)
        except (SQLAlchemyError, OSError) as error:
            later, self._waiting = self._waiting, waiting
            for key, value in later.items():
                self.add(key, value)
            if not self._failing:
                log.warning(
                    "%s are kept in memory until the database is back: %s", self._what, kind_of(error)
                )
            self._failing = True
        else:
            if self._failing:
                log.info("%s are being written again", self._what)
            self._failing = False
