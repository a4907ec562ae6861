"""Calls of models, counted in memory and written together.

A killed process loses the calls of the last seconds; nothing is charged by them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from typing import Final

from sqlalchemy import case
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from builtin_plugins.models.models import ModelUse
from builtin_plugins.models.names import canonical
from kernel.sdk import Platform, Unit, acting, lasting, utc_now

log = logging.getLogger("platform.models")

_EVERY_SECONDS: Final = 2.0
_SUMMED: Final = ("calls", "errors", "tokens", "tokens_unknown", "total_ms")

Key = tuple[date, str, str]


@dataclass
class Counts:
    """The calls of one model by one part of the platform on one day; times are in milliseconds."""

    calls: int = 0
    errors: int = 0
    tokens: int = 0
    tokens_unknown: int = 0
    total_ms: int = 0
    longest_ms: int = 0

    def add(self, other: Counts) -> None:
        """Add another count to this one."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.longest_ms = max(self.longest_ms, other.longest_ms)


class Usage:
    """What this process has counted but not written yet."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._waiting: dict[Key, Counts] = {}
        self._stopping = asyncio.Event()

    def count(self, model: str, seconds: float, tokens: int | None, *, failed: bool) -> None:
        """Count one more call of a model, by the current part of the platform."""
        whose, took = acting(), round(seconds * 1000)
        key = (utc_now().date(), canonical(model)[:255], whose.part if whose else "platform")
        one = Counts(1, int(failed), tokens or 0, int(tokens is None and not failed), took, took)
        self._waiting.setdefault(key, Counts()).add(one)

    async def flush(self) -> None:
        """Write the counts; those that can't be written are kept for the next time."""
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        try:
            await self._platform.database.write(_add, waiting)
        except (SQLAlchemyError, OSError) as error:
            log.warning("uses of models can't be written: %s", type(error).__name__)
            for key, counts in waiting.items():
                self._waiting.setdefault(key, Counts()).add(counts)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Usage]:
        """Write every few seconds within the block, and at its end."""
        task = lasting("use of models", self._write_now_and_then)
        try:
            yield self
        finally:
            self._stopping.set()
            await task

    async def _write_now_and_then(self) -> None:
        while not self._stopping.is_set():
            try:
                async with asyncio.timeout(_EVERY_SECONDS):
                    await self._stopping.wait()
            except TimeoutError:
                pass
            await self.flush()


def _add(unit: Unit, waiting: dict[Key, Counts]) -> None:
    insert = sqlite.insert if unit.is_sqlite else postgresql.insert
    for (day, model, part), counts in sorted(waiting.items()):
        made = insert(ModelUse).values(day=day, model=model, part=part, **vars(counts))
        summed = {name: getattr(ModelUse, name) + getattr(counts, name) for name in _SUMMED}
        longer = ModelUse.longest_ms < counts.longest_ms
        longest = case((longer, counts.longest_ms), else_=ModelUse.longest_ms)
        keys = [ModelUse.day, ModelUse.model, ModelUse.part]
        unit.session.execute(
            made.on_conflict_do_update(index_elements=keys, set_={**summed, "longest_ms": longest})
        )
