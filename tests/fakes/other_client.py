"""Another client of a test's database, beside the platform that is tested."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import asyncpg
from sqlalchemy import Connection, NullPool, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from kernel.testing.databases import run_apart

T = TypeVar("T")


class PostgresClient:
    """A connection on which plain functions run statements, each by itself; it has a thread of its own."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._connection = self._do(asyncpg.connect(address))

    def run(self, statement: str) -> Any:
        """The first value of the answer, if there is one."""
        rows = self._do(self._connection.fetch(statement))
        return rows[0][0] if rows else None

    def close(self) -> None:
        """Give up the connection."""
        self._do(self._connection.close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)


def in_transaction(url: str, work: Callable[[Connection], T]) -> T:
    """Call `work(connection)` in a transaction of its own, from plain functions."""
    found: list[T] = []

    async def run() -> None:
        engine = create_async_engine(url, poolclass=NullPool)
        async with engine.begin() as connection:
            found.append(await connection.run_sync(work))

    run_apart(run())
    return found[0]
