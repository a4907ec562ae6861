"""One platform on SQLite and one on PostgreSQL for all tests that leave other tests' rows alone."""

from __future__ import annotations

import pytest
import pytest_asyncio

from kernel.testing import Running
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.kept import Kept


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(request: pytest.FixtureRequest, kept: Kept) -> Running:
    """A platform with tenancy alone."""
    return await kept.platform("tenancy", request.param, "tenancy")


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def sharing(request: pytest.FixtureRequest, kept: Kept) -> Running:
    """A platform with tenancy and with knowledge bases to share, embedded by a quick fake."""
    return await kept.platform(
        "sharing", request.param, "tenancy", "rag", "extractive_answers", HashEmbeddings()
    )
