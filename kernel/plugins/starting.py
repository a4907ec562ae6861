"""Opens plugins' resources and calls `on_start`, each within a time limit."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from kernel.errors import ANY_ERROR
from kernel.hooks import hookspecs
from kernel.hooks.calling import Implementation
from kernel.platform import Platform
from kernel.plugins.declarations import Declarations
from kernel.plugins.loading import SLOW
from kernel.plugins.resource_keys import Resources
from kernel.plugins.resources import Resource
from kernel.plugins.states import PluginStates
from kernel.plugins.watchdog import StartWatch

log = logging.getLogger("platform.plugins")


class Starter:
    """Starts the plugins of a platform; `stack` closes what it opens."""

    def __init__(
        self, platform: Platform, states: PluginStates, stack: AsyncExitStack, watch: StartWatch
    ) -> None:
        self._platform = platform
        self._states = states
        self._stack = stack
        self._watch = watch
        self._seconds = platform.settings.plugin_start_timeout

    async def open_resources(self, declarations: Declarations, opened: Resources) -> None:
        """Open every plugin's resources; one that fails or hangs takes its plugin out of service."""
        for plugin, resources in declarations.of(hookspecs.register_resources):
            for resource in resources:
                if self._platform.role in resource.essential_in and self._states.is_loaded(plugin):
                    await self._step(plugin, f"opening '{resource.key.name}'", self._open(resource, opened))

    async def start_plugins(self) -> None:
        """Call every plugin's `on_start`."""
        for started in reversed(self._platform.hooks.implementations(hookspecs.on_start)):
            if self._states.is_loaded(started.plugin):
                await self._step(started.plugin, "on_start", self._call_on_start(started))

    async def _open(self, resource: Resource[Any], opened: Resources) -> None:
        manager = _closing_within(self._seconds, resource.key.name, resource.open(self._platform))
        opened.add(resource.key, await self._stack.enter_async_context(manager))

    async def _call_on_start(self, started: Implementation) -> None:
        result = started.call({"platform": self._platform})
        if isinstance(result, Awaitable):
            await result

    async def _step(self, plugin: str, what: str, step: Awaitable[None]) -> None:
        """One step of a start; its failure takes the plugin out of service."""
        with self._clock(plugin, what), self._watch.step(plugin, what):
            try:
                async with asyncio.timeout(self._seconds) as limit:
                    await step
            except ANY_ERROR as error:  # boundary: third-party code
                late = isinstance(error, TimeoutError) and limit.expired()
                why = (
                    f"took longer than {self._seconds:g} s"
                    if late
                    else f"failed: {type(error).__name__}: {error}"
                )
                self._states.fail(plugin, f"{what} {why}", error)

    @contextmanager
    def _clock(self, plugin: str, what: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        elapsed = time.monotonic() - started
        if elapsed > SLOW:
            may_be_slow = getattr(self._states.records[plugin].instance, "may_start_slowly", False)
            level = logging.INFO if may_be_slow else logging.WARNING
            log.log(level, "plugin %s: %s took %.1f s", plugin, what, elapsed)


@asynccontextmanager
async def _closing_within(
    seconds: float, name: str, manager: AbstractAsyncContextManager[Any]
) -> AsyncIterator[Any]:
    """`manager`, but closing it may neither hang nor raise, as the other resources must be closed, too."""
    value = await manager.__aenter__()
    try:
        yield value
    finally:
        try:
            async with asyncio.timeout(seconds):
                await manager.__aexit__(None, None, None)
        except ANY_ERROR:  # boundary: third-party code
            log.exception("closing '%s' failed", name)
