"""Platforms that stay open while pytest changes between the databases of a fixture, and from file to file.

pytest has one value of a fixture with parameters at a time: after a file's tests on PostgreSQL, the next
file's on SQLite would open another platform, so that each file would open two.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kernel.testing import Running, platforms, postgres_database

_FEW = {"PLATFORM_DATABASE_POOL_SIZE": "1"}  # connections stay open as long as their platform
_MOST = {"sqlite": 6, "postgresql": 3}  # a server allows 100 connections: four processes stay well below


class Kept:
    """The platforms that a test process used last; older ones are closed.

    Fixtures ask again for each module, since a platform may have been closed in between.
    """

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._open: dict[tuple[str, str], tuple[Running, AsyncExitStack]] = {}

    async def platform(
        self, name: str, database: str, *plugins: Any, env: Mapping[str, str | None] | None = None
    ) -> Running:
        """The platform of this name on "sqlite" or "postgresql", with these plugins."""
        found = self._open.pop((name, database), None)
        while len(same := [key for key in self._open if key[1] == database]) >= _MOST[database]:
            await self._close(same[0])
        self._open[name, database] = found or await self._opened(name, database, plugins, env or {})
        return self._open[name, database][0]

    async def close(self) -> None:
        """Close all of them, the newest first, even if closing one fails."""
        async with AsyncExitStack() as stack:
            for _, opened in self._open.values():
                stack.push_async_callback(opened.aclose)

    async def _close(self, key: tuple[str, str]) -> None:
        _, opened = self._open.pop(key)
        await opened.aclose()

    async def _opened(
        self, name: str, database: str, plugins: tuple[Any, ...], env: Mapping[str, str | None]
    ) -> tuple[Running, AsyncExitStack]:
        async with AsyncExitStack() as stack:
            url = None if database == "sqlite" else stack.enter_context(postgres_database(by_first=True))
            start = await stack.enter_async_context(platforms(self._folders.mktemp(name)))
            return await start(*plugins, env={"DATABASE_URL": url, **_FEW, **env}), stack.pop_all()
