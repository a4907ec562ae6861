"""Random filters against a plain model of them, in the search of pgvector."""

from __future__ import annotations

import random

import pytest

from builtin_plugins.pgvector.setup import open_vector_store
from builtin_plugins.pgvector.store import PgVectorStore
from kernel.db import migrate
from kernel.db.engine import Database
from tests.builtin_plugins.pgvector.test_pgvector import databases as databases
from tests.builtin_plugins.pgvector.test_pgvector import vector_server as vector_server
from tests.builtin_plugins.pgvector.test_pgvector import vector_url as vector_url
from tests.builtin_plugins.rag.filter_world import OWNER, fill, try_filters


@pytest.mark.long
@pytest.mark.parametrize("above", [0, 50_000], ids=["graph", "exact"])
async def test_filters_mean_the_same(above: int, database: Database, request: pytest.FixtureRequest) -> None:
    """With and without a graph; see `test_filters_fuzz`."""
    await migrate.upgrade(database, OWNER, {})
    await open_vector_store(database, "pgvector", apply=True)
    chance, vectors = random.Random(request.config.getoption("--filter-seed")), PgVectorStore(database, above)
    entries = await fill(database, vectors, chance)
    await vectors.graphs.settled()
    tries = request.config.getoption("--filter-tries") // 2
    await try_filters(database, vectors, chance, entries, tries)
    await vectors.close()
