"""Random filters against a plain model of them: in lists, counts and the search of each store.

`pytest tests/builtin_plugins/rag/test_filters_fuzz.py --filter-tries 10000` is the long run.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from builtin_plugins.vectors.store import SqlVectorStore
from kernel.db import migrate
from kernel.db.engine import Database
from kernel.settings.loading import KernelSettings
from kernel.testing.databases import copy_sqlite
from tests.builtin_plugins.rag.filter_world import OWNER, fill, try_filters
from tests.builtin_plugins.vectors.vector_tables import make_tables


@pytest.fixture
async def database(tmp_path: Path, database_url: str | None) -> AsyncIterator[Database]:
    """A database with the tables of documents and vectors."""
    if database_url is None:
        copy_sqlite(tmp_path, ("vectors", "rag"))
    opened = Database(KernelSettings(home=tmp_path, database_url=database_url).sqlalchemy_url)
    await make_tables(opened)
    await migrate.upgrade(opened, OWNER, {})
    yield opened
    await opened.close()


@pytest.mark.long
async def test_filters_mean_the_same_everywhere(database: Database, request: pytest.FixtureRequest) -> None:
    """FAISS, on SQLite and PostgreSQL."""
    chance = random.Random(request.config.getoption("--filter-seed"))
    vectors = SqlVectorStore(database)
    entries = await fill(database, vectors, chance)
    await try_filters(database, vectors, chance, entries, request.config.getoption("--filter-tries"))
    await vectors.close()
