"""The last log lines of each service in this process, in memory.

A line belongs to the service of the plugin whose code wrote it, else to the service whose request or job was
running, else to the gateway. Anything that looks like a secret is masked first.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from builtin_plugins.tools.api import Directory
from kernel.sdk import PLUGIN_STATES, Platform, ResourceKey, acting
from kernel.sdk.telemetry import LogFormatter

GATEWAY = "api-gateway"
CORE_SERVICES = (
    GATEWAY,
    "plugin-registry",
    "marketplace",
    "orchestrator",
    "rag-pipeline",
    "model-management",
    "tts-stt",
    "graph-rag",
    "platform-ops",
)
MAX_LINES = 2000
_LONGEST = 2000
_WAITING = 1000


class Ring(logging.Handler):
    """Keeps the last lines of each service, and passes new ones to followers."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        super().__init__()
        self.setFormatter(LogFormatter())
        self._folders = folders
        self._owners: dict[str, str | None] = {}
        self._lines = {name: deque[str](maxlen=MAX_LINES) for name in CORE_SERVICES}
        self._followers: set[tuple[str, asyncio.AbstractEventLoop, asyncio.Queue[str]]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record's lines; may be called from any thread."""
        service = self._service_of(record)
        moment = datetime.fromtimestamp(record.created).date().isoformat()
        for line in f"{moment} {self.format(record)}".splitlines():
            self._lines[service].append(line[:_LONGEST])
            for name, loop, queue in tuple(self._followers):
                if name == service and not loop.is_closed():
                    loop.call_soon_threadsafe(_put, queue, line[:_LONGEST])

    def last(self, service: str, count: int) -> list[str]:
        """The last lines, oldest first."""
        return list(self._lines[service].copy())[-count:]

    async def follow(self, service: str, count: int) -> AsyncGenerator[str, None]:
        """The last lines, then each as it is written. A reader that is too slow misses lines."""
        queue: asyncio.Queue[str] = asyncio.Queue(_WAITING)
        me = (service, asyncio.get_running_loop(), queue)
        self._followers.add(me)
        try:
            for line in self.last(service, count):
                yield line
            while True:
                yield await queue.get()
        finally:
            self._followers.discard(me)

    def _service_of(self, record: logging.LogRecord) -> str:
        path = record.pathname
        if path not in self._owners:
            folders = [folder for folder in self._folders if path.startswith(folder)]
            self._owners[path] = self._folders[max(folders, key=len)] if folders else None
        served = acting()
        service = self._owners[path] or (None if served is None else served.part)
        return service if service in self._lines else GATEWAY


RING: ResourceKey[Ring] = ResourceKey("platform_ops.logs")


@asynccontextmanager
async def open_ring(platform: Platform) -> AsyncIterator[Ring]:
    """Start keeping what this process logs."""
    ring = Ring(_folders(platform))
    logging.getLogger().addHandler(ring)
    try:
        yield ring
    finally:
        logging.getLogger().removeHandler(ring)


def _folders(platform: Platform) -> dict[str, str]:
    """Folders of plugins' code, each with the core service that the plugin has routes of."""
    services = Directory(platform).services()
    parts = {plugin: service for service, plugins in services.items() for plugin in plugins}
    services_by_folder = {}
    for record in platform.resource(PLUGIN_STATES).loaded():
        module = sys.modules.get(type(record.instance).__module__)
        if record.name in parts and module is not None and module.__file__ is not None:
            services_by_folder[str(Path(module.__file__).parent) + "/"] = parts[record.name]
    return services_by_folder


def _put(queue: asyncio.Queue[str], line: str) -> None:
    if not queue.full():
        queue.put_nowait(line)
