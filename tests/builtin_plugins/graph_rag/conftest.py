"""One platform on SQLite and one on PostgreSQL for all tests over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import pytest_asyncio

from kernel.testing import Running, platforms, postgres_database
from tests.fakes.hash_embeddings import HashEmbeddings


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["sqlite", "postgresql"])
async def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    """A platform with knowledge bases and graphs."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        async with platforms(tmp_path_factory.mktemp("graph_rag")) as start:
            yield await start("rag", "graph_rag", HashEmbeddings(), env={"DATABASE_URL": url})
