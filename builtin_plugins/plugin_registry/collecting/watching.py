"""The health of each plugin: checked every minute, stored with the time of its last change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.tools.api import Directory, PluginEntry
from kernel.sdk import Platform, ResourceKey, Unit

from ..models import HealthRecord
from ..schemas import PluginHealth
from ..services.records import health_of
from ..settings import RegistrySettings

log = logging.getLogger("platform.registry")

_AT_ONCE = 8


class HealthWatch:
    """Runs every plugin's checks in turn, in one of the API processes that share a database."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._interval = platform.settings_of(RegistrySettings).health_interval
        self._turns = asyncio.Semaphore(_AT_ONCE)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[HealthWatch]:
        """Checks regularly within the block."""
        task = asyncio.create_task(self._watch(), name="plugin health")
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def look(self) -> None:
        """Run all checks, and store the results."""
        entries = await Directory(self._platform).entries()
        states = await asyncio.gather(*(self._look_at(entry) for entry in entries))
        await self._platform.database.write(_keep, states)

    async def _look_at(self, entry: PluginEntry) -> PluginHealth:
        async with self._turns:
            return await health_of(self._platform, entry)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            try:
                if not await self._platform.database.write(_looked_since, self._interval / 2):
                    await self.look()
            except Exception:  # boundary: whatever fails, the next check is due
                log.exception("the health of plugins could not be checked")


def _looked_since(unit: Unit, seconds: float) -> bool:
    """Whether another process has just checked. A time in the future, by a wrong clock, is ignored."""
    now = unit.now()
    recent = HealthRecord.checked_at.between(now - timedelta(seconds=seconds), now)
    return unit.session.scalar(select(HealthRecord.plugin).where(recent).limit(1)) is not None


def _keep(unit: Unit, states: list[PluginHealth]) -> None:
    records, now = {row.plugin: row for row in unit.session.scalars(select(HealthRecord))}, unit.now()
    for health in states:
        row = records.pop(health.name, None)
        if row is None:
            row = HealthRecord(plugin=health.name, changed_at=now)
            unit.session.add(row)
        elif row.status != health.health_status:
            row.changed_at = now
        row.status, row.checked_at = health.health_status, now
    for gone in records.values():
        unit.session.delete(gone)


def health_records(session: Session) -> dict[str, tuple[str, datetime, datetime]]:
    """(status, checked at, changed at) of each plugin at the last check."""
    query = select(HealthRecord.plugin, HealthRecord.status, HealthRecord.checked_at, HealthRecord.changed_at)
    return {plugin: (status, checked, changed) for plugin, status, checked, changed in session.execute(query)}


HEALTH_WATCH: ResourceKey[HealthWatch] = ResourceKey("plugin_registry.health")
