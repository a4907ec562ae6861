"""One platform on SQLite and one on PostgreSQL for all tests that leave them as they were."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import Memberships, make_base, somebody
from tests.fakes.elsewhere import elsewhere
from tests.fakes.kept import Kept
from tests.fakes.loaded_once import LoadedOnce


@pytest.fixture(scope="session")
def members(request: pytest.FixtureRequest) -> Memberships:
    """Who is in which teams and organizations."""
    if request.config.getoption("against"):
        pytest.skip("puts accounts into teams by a plugin, which the installation does not have")
    return Memberships()


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(request: pytest.FixtureRequest, kept: Kept) -> AsyncIterator[Running]:
    """A platform with the plugins of the main job, and no model runtime; with `--against` the one there."""
    against = request.config.getoption("against")
    if against:
        if request.param == "sqlite":
            pytest.skip("is for SQLite")
        async with elsewhere(against) as start:
            yield await start(
                LoadedOnce, "models", "rag_methods", "rag_exchange", "extractive_answers", "api_docs"
            )
        return
    members = request.getfixturevalue("members")
    yield await kept.platform(
        "rag",
        request.param,
        LoadedOnce,
        "models",
        "rag_methods",
        "rag_exchange",
        "extractive_answers",
        "api_docs",
        members,
    )


@pytest_asyncio.fixture(loop_scope="session")
async def ann(running: Running) -> Actor:
    """A new account."""
    return await somebody(running)


@pytest_asyncio.fixture(loop_scope="session")
async def base(ann: Actor) -> str:
    """The id of an empty knowledge base of hers."""
    return await make_base(ann)
