"""The servers of one process, in step with the rows: a change needs no restart, in no process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from builtin_plugins.models.addresses import NamedRuntime
from builtin_plugins.models.connections.reach import connection_client
from builtin_plugins.models.connections.rows import CHANGED, StoredServers, read_servers
from builtin_plugins.models.services.model_calls import Configured, Models
from builtin_plugins.models.settings import ModelsSettings
from builtin_plugins.owner_secrets.api import OWNER_SECRETS
from kernel.sdk import OutgoingClient, Platform, ResourceKey, lasting

MakeServer = Callable[[OutgoingClient, NamedRuntime], Configured]


@dataclass(frozen=True)
class _Open:
    """A connection that is in use, and what closes its client."""

    named: NamedRuntime
    server: Configured
    closing: AsyncExitStack


class LiveServers:
    """Keeps `models.servers`: those of the settings first, then the connections, oldest first."""

    def __init__(self, platform: Platform, models: Models, make: MakeServer) -> None:
        self._platform = platform
        self._models = models
        self._make = make
        self._fixed = list(models.servers)
        self._open: dict[str, _Open] = {}
        self._retired: list[tuple[float, AsyncExitStack]] = []
        self._changed = asyncio.Event()
        self._changes = 0
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow changes during the block."""
        with self._platform.notices.listening(CHANGED, self._note_change):
            await self.refresh()
            task = lasting("model connections", self._follow)
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await self._close()

    async def refresh(self) -> None:
        """Use what is stored now."""
        async with self._lock:
            secrets = self._platform.resource(OWNER_SECRETS)
            stored: StoredServers = await self._platform.database.read(read_servers, secrets)
            if self._platform.settings_of(ModelsSettings).connectable == "none":
                stored = stored._replace(connections=[])
            fixed = {server.name for server in self._fixed}
            await self._use([named for named in stored.connections if named.name not in fixed])
            self._models.defaults = stored.defaults

    async def _use(self, runtimes: list[NamedRuntime]) -> None:
        before, self._open = self._open, {}
        for named in runtimes:
            connection = before.pop(named.name, None)
            if connection is not None and connection.named != named:
                self._retire(connection)
                connection = None
            self._open[named.name] = connection or await self._connect(named)
        for left in before.values():
            self._retire(left)
        self._models.servers = [*self._fixed, *(opened.server for opened in self._open.values())]
        await self._close_retired(time.monotonic())

    async def _connect(self, named: NamedRuntime) -> _Open:
        closing = AsyncExitStack()
        client = await closing.enter_async_context(connection_client(self._platform, named.url))
        return _Open(named, self._make(client, named), closing)

    def _retire(self, opened: _Open) -> None:
        """Its client is closed later: answers that have begun may end."""
        longest = self._platform.settings_of(ModelsSettings).total_seconds
        self._retired.append((time.monotonic() + longest, opened.closing))

    async def _close_retired(self, until: float) -> None:
        due = [closing for at, closing in self._retired if at <= until]
        self._retired = [(at, closing) for at, closing in self._retired if at > until]
        for closing in due:
            await closing.aclose()

    def _note_change(self, _name: str) -> None:
        self._changes += 1
        self._changed.set()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            changes = self._changes
            await self.refresh()  # if it fails, the event stays set, and the task starts again
            if self._changes == changes:
                self._changed.clear()

    async def _close(self) -> None:
        for opened in self._open.values():
            self._retire(opened)
        await self._close_retired(float("inf"))


LIVE_SERVERS: ResourceKey[LiveServers] = ResourceKey("connected model servers")
