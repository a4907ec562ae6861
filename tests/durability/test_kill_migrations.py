"""Migrations killed in the middle: the next start continues from what was committed."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.fakes.other_client import PostgresClient
from tests.fakes.processes import Process, running_process, without_plugins

PLUGINS = ("platform_ops", "tenancy", "rag", "marketplace", "plugin_registry")


class Schema:
    """The tables of a database, seen from outside."""

    def __init__(self, url: str | None, home: Path) -> None:
        self._file = home / "platform.db"
        self._client = PostgresClient(url) if url else None

    def count(self) -> int:
        """How many there are; none while the file is not there, or locked."""
        if self._client is not None:
            return int(self._client.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"))
        if not self._file.exists():
            return 0
        try:
            with closing(sqlite3.connect(self._file)) as connection:
                query = "SELECT count(*) FROM sqlite_master WHERE type = 'table'"
                return int(connection.execute(query).fetchone()[0])
        except sqlite3.OperationalError:
            return 0

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


async def killed_after(process: Process, schema: Schema, more: int) -> bool:
    """Kill it as soon as there are more tables than that; whether it was still at work."""
    async with asyncio.timeout(90):
        while process.returncode is None and await asyncio.to_thread(schema.count) <= more:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    at_work = process.returncode is None
    await process.kill()
    return at_work


@pytest.mark.either_database
async def test_killed_migrations_are_finished_by_the_next(
    platform_home: Path, empty_database_url: str | None, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """SIGKILL whenever tables were added; in the end the schema is that of the models."""
    env = {"PLATFORM_HOME": str(platform_home), **without_plugins(*PLUGINS)}
    if empty_database_url is not None:
        env["DATABASE_URL"] = empty_database_url
    schema, log, kills = Schema(empty_database_url, platform_home), tmp_path / "log", 0
    for _ in range(request.config.getoption("rounds")):
        before = await asyncio.to_thread(schema.count)
        async with running_process("-m", "cli", "db", "upgrade", env=env, log=log) as process:
            kills += await killed_after(process, schema, before)
    assert kills, "no migration was killed while it ran"
    for command in ("upgrade", "check"):
        async with running_process("-m", "cli", "db", command, env=env, log=log) as process:
            assert await process.wait(90) == 0, process.output()
    schema.close()
