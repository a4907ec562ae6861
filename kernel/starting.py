"""Opening plugins' resources and their last word before serving, each within a time limit."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from kernel.errors import FAULTS
from kernel.watchdog import StartWatch

if TYPE_CHECKING:
    from kernel.platform import Platform
    from kernel.resources import Resource

log = logging.getLogger("platform.plugins")

_SLOW = 2.0


class Starter:
    """Starts the plugins of one platform; what it opens is closed by `stack`."""

    def __init__(self, platform: Platform, stack: AsyncExitStack, watch: StartWatch) -> None:
        self._platform = platform
        self._stack = stack
        self._watch = watch
        self._seconds = platform.settings.plugin_start_timeout

    async def open_resources(self, opened: Callable[[Resource[Any], Any], None]) -> None:
        """Enter every plugin's resources; one that fails or hangs takes its plugin out."""
        for plugin, resources in self._platform.declare("register_resources"):
            for resource in resources:
                if self._platform.role in resource.essential_in and self._in_service(plugin):
                    await self._step(plugin, f"opening '{resource.key.name}'", self._open(resource, opened))

    async def start_plugins(self) -> None:
        """Call every plugin's `on_start`."""
        for plugin, call in self._platform.hooks.calls("on_start", platform=self._platform):
            if self._in_service(plugin):
                await self._step(plugin, "on_start", _awaited(call))

    async def _open(self, resource: Resource[Any], opened: Callable[[Resource[Any], Any], None]) -> None:
        manager = _closing_within(self._seconds, resource.key.name, resource.open(self._platform))
        opened(resource, await self._stack.enter_async_context(manager))

    async def _step(self, plugin: str, what: str, step: Awaitable[None]) -> None:
        """One step of a start; its failure takes the plugin out of service."""
        with self._clock(plugin, what), self._watch.step(plugin, what):
            try:
                async with asyncio.timeout(self._seconds) as limit:
                    await step
            except FAULTS as error:  # boundary: a stranger's start
                late = isinstance(error, TimeoutError) and limit.expired()
                why = (
                    f"took longer than {self._seconds:g} s"
                    if late
                    else f"failed: {type(error).__name__}: {error}"
                )
                self._platform.fail_plugin(plugin, f"{what} {why}")

    def _in_service(self, plugin: str) -> bool:
        return self._platform.host.records[plugin].status == "loaded"

    @contextmanager
    def _clock(self, plugin: str, what: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        elapsed = time.monotonic() - started
        if elapsed > _SLOW:
            log.warning("plugin %s: %s took %.1f s", plugin, what, elapsed)


async def _awaited(call: Callable[[], Any]) -> None:
    result = call()
    if isinstance(result, Awaitable):
        await result


@asynccontextmanager
async def _closing_within(
    seconds: float, name: str, manager: AbstractAsyncContextManager[Any]
) -> AsyncIterator[Any]:
    """`manager`, whose end may neither hang nor raise: the other resources must be closed too."""
    value = await manager.__aenter__()
    try:
        yield value
    finally:
        try:
            async with asyncio.timeout(seconds):
                await manager.__aexit__(None, None, None)
        except FAULTS:  # boundary: a stranger's resource
            log.exception("closing '%s' failed", name)
