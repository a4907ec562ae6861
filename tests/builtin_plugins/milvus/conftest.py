"""Databases with the tables of vectors and of Milvus, which no platform has opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from builtin_plugins.milvus.engine import MilvusEngine
from builtin_plugins.milvus.models import IdentityRecord
from builtin_plugins.milvus.plugin import MilvusPlugin
from builtin_plugins.milvus.store import MilvusStore
from builtin_plugins.vectors.conformance import Stores
from kernel.db import migrate
from kernel.db.engine import Database, Unit
from kernel.settings.loading import KernelSettings
from kernel.testing.databases import copy_sqlite
from tests.builtin_plugins.milvus.milvus_server import MilvusLite, running_lite
from tests.builtin_plugins.vectors.vector_tables import make_tables

IDENTITY = "0a1b2c3d"
"""All tests use the same names in the engine, as each new one takes it seconds to make."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusLite]:
    """An engine for the tests of a module."""
    with running_lite(tmp_path_factory.mktemp("milvus") / "lite") as server:
        yield server


@pytest.fixture
async def databases(tmp_path: Path, database_url: str | None) -> AsyncIterator[tuple[Database, Database]]:
    """One fresh database, opened twice as by two processes."""
    if database_url is None:
        copy_sqlite(tmp_path, ("vectors",))
    url = KernelSettings(home=tmp_path, database_url=database_url).sqlalchemy_url
    pair = Database(url, pool_size=4), Database(url, pool_size=4)
    await make_tables(pair[0])
    await migrate.upgrade(pair[0], migrate.Owner("milvus", MilvusPlugin().register_tables()), {})

    def identify(unit: Unit) -> None:
        unit.session.add(IdentityRecord(id=1, identity=IDENTITY))

    await pair[0].write(identify)
    yield pair
    for database in pair:
        await database.close()


@pytest.fixture
def database(databases: tuple[Database, Database]) -> Database:
    """The database that the units of a test are of."""
    return databases[0]


@pytest.fixture
async def stores(server: MilvusLite, databases: tuple[Database, Database]) -> AsyncIterator[Stores]:
    """Two stores on it, which follow the rows only when they search."""
    pair = [MilvusStore(database, MilvusEngine(server.settings, IDENTITY)) for database in databases]
    yield pair[0], pair[1]
    for store in pair:
        await store.close()
