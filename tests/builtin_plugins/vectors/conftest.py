"""Databases with the tables of vectors, which no platform has opened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kernel.db.engine import Database
from kernel.settings.loading import KernelSettings
from kernel.testing.databases import copy_sqlite
from tests.builtin_plugins.vectors.vector_tables import make_tables


@pytest.fixture
async def databases(tmp_path: Path, database_url: str | None) -> AsyncIterator[tuple[Database, Database]]:
    """One fresh database, opened twice as by two processes."""
    if database_url is None:
        copy_sqlite(tmp_path, ("vectors",))
    url = KernelSettings(home=tmp_path, database_url=database_url).sqlalchemy_url
    # A server allows 100 connections, and other tests run beside these.
    pair = Database(url, pool_size=4), Database(url, pool_size=4)
    await make_tables(pair[0])
    yield pair
    for database in pair:
        await database.close()


@pytest.fixture
def database(databases: tuple[Database, Database]) -> Database:
    """The database that the units of a test are of."""
    return databases[0]
