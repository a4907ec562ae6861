"""One platform on SQLite and one on PostgreSQL for all tests over HTTP."""

from __future__ import annotations

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running, somebody
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.kept import Kept


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(request: pytest.FixtureRequest, kept: Kept) -> Running:
    """A platform with knowledge bases, graphs and RDF."""
    return await kept.platform("graph_rdf", request.param, "rag", "graph_rdf", HashEmbeddings())


@pytest_asyncio.fixture(loop_scope="session")
async def ann(running: Running) -> Actor:
    """A new account."""
    return await somebody(running)
