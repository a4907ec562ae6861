"""Calls of models, counted in memory and written together.

A killed process loses the calls of the last seconds; nothing is charged by them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from operator import add
from typing import Final

from sqlalchemy import case
from sqlalchemy.dialects import postgresql, sqlite

from builtin_plugins.models.models import ModelUse
from builtin_plugins.models.names import canonical
from kernel.sdk import Platform, Tally, Unit, acting, repeating, utc_now

_EVERY_SECONDS: Final = 2.0
_SUMMED: Final = ("calls", "errors", "tokens", "tokens_unknown", "total_ms")

Key = tuple[date, str, str]


@dataclass(frozen=True)
class Counts:
    """The calls of one model by one part of the platform on one day; times are in milliseconds."""

    calls: int = 0
    errors: int = 0
    tokens: int = 0
    tokens_unknown: int = 0
    total_ms: int = 0
    longest_ms: int = 0

    def __add__(self, other: Counts) -> Counts:
        """The calls of both."""
        summed = {name: getattr(self, name) + getattr(other, name) for name in _SUMMED}
        return Counts(**summed, longest_ms=max(self.longest_ms, other.longest_ms))


class ModelUsage:
    """What this process has counted but not written yet."""

    def __init__(self, platform: Platform) -> None:
        self._waiting: Tally[Key, Counts] = Tally(platform.database, "uses of models", _write, add)

    def count(self, model: str, seconds: float, tokens: int | None, *, failed: bool) -> None:
        """Count one more call of a model, by the current part of the platform."""
        whose, took = acting(), round(seconds * 1000)
        key = (utc_now().date(), canonical(model)[:255], whose.part if whose else "platform")
        unknown = int(tokens is None and not failed)
        self._waiting.add(key, Counts(1, int(failed), tokens or 0, unknown, took, took))

    async def flush(self) -> None:
        """Write the counts; those that can't be written are kept for the next time."""
        await self._waiting.flush()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ModelUsage]:
        """Write every few seconds within the block, and at its end."""
        async with repeating("use of models", self.flush, _EVERY_SECONDS):
            yield self


def _write(unit: Unit, waiting: Mapping[Key, Counts]) -> None:
    insert = sqlite.insert if unit.is_sqlite else postgresql.insert
    for (day, model, part), counts in sorted(waiting.items()):
        row = insert(ModelUse).values(day=day, model=model, part=part, **vars(counts))
        summed = {name: getattr(ModelUse, name) + getattr(counts, name) for name in _SUMMED}
        longer = ModelUse.longest_ms < counts.longest_ms
        longest = case((longer, counts.longest_ms), else_=ModelUse.longest_ms)
        keys = [ModelUse.day, ModelUse.model, ModelUse.part]
        unit.session.execute(
            row.on_conflict_do_update(index_elements=keys, set_={**summed, "longest_ms": longest})
        )
