"""Platforms that stay open while pytest changes between the databases of a fixture.

pytest has one value of a fixture with parameters at a time: after a file's tests on PostgreSQL, the next
file's on SQLite would open another platform, so that each file would open two.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any, TypeVar

import pytest

from kernel.testing import Running, platforms, postgres_database

_FEW = {"PLATFORM_DATABASE_POOL_SIZE": "2"}  # of a server's connections, as they are held to the end

T = TypeVar("T")


class Kept:
    """What is opened once for all tests of a process, and closed at their end."""

    def __init__(self, stack: AsyncExitStack, folders: pytest.TempPathFactory) -> None:
        self._stack = stack
        self._folders = folders
        self._open: dict[tuple[str, str], Any] = {}

    async def once(self, name: str, kind: str, opened: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What `opened()` gave the first time that it was asked for."""
        if (name, kind) not in self._open:
            self._open[name, kind] = await self._stack.enter_async_context(opened())
        found: T = self._open[name, kind]
        return found

    async def platform(
        self, name: str, database: str, *plugins: Any, env: Mapping[str, str | None] | None = None
    ) -> Running:
        """The platform of this name on "sqlite" or "postgresql", with these plugins."""

        @asynccontextmanager
        async def started() -> AsyncIterator[Running]:
            with ExitStack() as stack:
                url = stack.enter_context(postgres_database(by_first=True)) if database != "sqlite" else None
                async with platforms(self._folders.mktemp(name)) as start:
                    yield await start(*plugins, env={"DATABASE_URL": url, **_FEW, **(env or {})})

        return await self.once(name, database, started)
