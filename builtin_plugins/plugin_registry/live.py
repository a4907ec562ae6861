"""Applies the registry's tables to this process: at its start, and after every change in any process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.owner_secrets.api import OWNER_SECRETS, SecretUnreadable
from kernel.sdk import PLUGIN_STATES, Platform, ResourceKey, Settings, StartupError, Unhealthy, lasting
from kernel.sdk.operations import PLUGIN_SETTINGS

from .models import ConfigValue
from .services.adoption import adopt_files
from .services.disabled import switched_off
from .services.fields import fixed_fields, read_secrets

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
        self._unreadable: dict[str, str] = {}
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()
        self._stopping = False

    @asynccontextmanager
    async def following(self) -> AsyncIterator[LiveState]:
        """Applied when the block begins, and within a moment of every change in any process."""
        await adopt_files(self._platform)
        await self.refresh()
        self._platform.notices.listen(TOPIC, lambda _key: self._changed.set())
        task = lasting("plugin registry", self._follow)
        try:
            yield self
        finally:
            # Not cancelled: a statement may be running.
            self._stopping = True
            self._changed.set()
            await task

    async def refresh(self) -> None:
        """Read the tables and apply them."""
        async with self._turn:
            off, stored, self._unreadable = await self._platform.database.read(self._read)
            self._platform.resource(PLUGIN_STATES).switch_off(off)
            for plugin in stored.keys() | self._applied.keys():
                self._apply(plugin, stored.get(plugin, {}))

    async def check(self) -> None:
        """Raise Unhealthy for stored settings that no longer fit their plugin."""
        problems = {**self._problems, **self._unreadable}
        if problems:
            raise Unhealthy("; ".join(f"{plugin}: {text}" for plugin, text in problems.items()))

    def _read(self, session: Session) -> tuple[frozenset[str], Stored, dict[str, str]]:
        """Disabled plugins, stored settings with their secrets, and plugins whose secrets can't be read."""
        rows: Stored = {}
        for row in session.scalars(select(ConfigValue)):
            rows.setdefault(row.plugin, {})[row.field] = row.value
        stored, unreadable = dict[str, dict[str, Any]](), dict[str, str]()
        for plugin, values in rows.items():
            cls = self._platform.resource(PLUGIN_SETTINGS).class_of(plugin)
            try:
                stored[plugin] = {} if cls is None else self._stored(session, plugin, cls, values)
            except SecretUnreadable as error:
                unreadable[plugin] = str(error.detail)
        return frozenset(switched_off(session, self._platform.plugins)), stored, unreadable

    def _stored(
        self, session: Session, plugin: str, cls: type[Settings], values: dict[str, Any]
    ) -> dict[str, Any]:
        """The stored values that count: an administered one gives way to the environment's."""
        fixed = fixed_fields(self._platform, cls)
        found = read_secrets(session, self._platform.resource(OWNER_SECRETS), plugin, cls, values)
        return {field: value for field, value in found.items() if field not in fixed}

    def _apply(self, plugin: str, values: dict[str, Any]) -> None:
        if plugin in self._unreadable or self._applied.get(plugin) == values:
            return
        if self._platform.resource(PLUGIN_SETTINGS).class_of(plugin) is None:
            return
        try:
            self._platform.resource(PLUGIN_SETTINGS).apply(plugin, values)
        except StartupError as error:
            log.error("stored settings of %s are not applied: %s", plugin, error)
            self._problems[plugin] = f"stored settings are not applied: {error}"
        else:
            self._problems.pop(plugin, None)
            self._applied[plugin] = values

    async def _follow(self) -> None:
        outage = self._platform.database.outage(log, "the registry's tables can't be read")
        self._changed.set()  # this may have been stopped by an error meanwhile (`lasting`)
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._stopping:
                return
            with outage.tolerated():
                await self.refresh()
            if outage.lasts:
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._changed.set)


LIVE: ResourceKey[LiveState] = ResourceKey("plugin registry")
