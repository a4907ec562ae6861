"""The registry's tables in effect in this process: from its start, through every change in any process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from kernel.sdk import Platform, ResourceKey, StartupError, Unhealthy

from .models import ConfigValue, SwitchedOff
from .services.fields import read_secrets

log = logging.getLogger("platform.registry")

TOPIC = "plugin_registry"
_RETRY_SECONDS = 5.0

Stored = dict[str, dict[str, Any]]


class LiveState:
    """Applies switches and stored settings to one platform."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._applied: Stored = {}
        self._problems: dict[str, str] = {}
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()
        self._stopping = False

    @asynccontextmanager
    async def following(self) -> AsyncIterator[LiveState]:
        """In effect when the block begins, and within a moment of every change in any process."""
        await self.refresh()
        self._platform.notices.listen(TOPIC, lambda _key: self._changed.set())
        task = asyncio.create_task(self._follow(), name="plugin registry")
        try:
            yield self
        finally:
            # Not cancelled: a statement may be under way.
            self._stopping = True
            self._changed.set()
            await task

    async def refresh(self) -> None:
        """Read the tables and put them into effect."""
        async with self._turn:
            async with self._platform.database.read() as session:
                off = frozenset(await session.scalars(select(SwitchedOff.plugin)))
                rows = list(await session.scalars(select(ConfigValue)))
            self._platform.switch_off(off)
            stored: Stored = {}
            for row in rows:
                stored.setdefault(row.plugin, {})[row.field] = row.value
            for plugin in stored.keys() | self._applied.keys():
                await self._apply(plugin, stored.get(plugin, {}))

    async def check(self) -> None:
        """Raise Unhealthy for stored settings that no longer fit their plugin."""
        if self._problems:
            raise Unhealthy("; ".join(f"{plugin}: {text}" for plugin, text in self._problems.items()))

    async def _apply(self, plugin: str, stored: Mapping[str, Any]) -> None:
        cls = self._platform.settings_class(plugin)
        if cls is None:
            return
        values = await asyncio.to_thread(read_secrets, self._platform.secrets, plugin, cls, stored)
        if self._applied.get(plugin) == values:
            return
        try:
            self._platform.apply_settings(plugin, values)
        except StartupError as error:
            log.error("stored settings of %s are not applied: %s", plugin, error)
            self._problems[plugin] = f"stored settings are not applied: {error}"
        else:
            self._problems.pop(plugin, None)
            self._applied[plugin] = dict(values)

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._stopping:
                return
            try:
                await self.refresh()
            except (SQLAlchemyError, OSError) as error:
                log.warning("the registry's tables can't be read: %s", type(error).__name__)
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._changed.set)


LIVE: ResourceKey[LiveState] = ResourceKey("plugin registry")
