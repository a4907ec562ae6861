"""One platform on SQLite and one on PostgreSQL for all tests that leave them as they were."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import pytest_asyncio

from kernel.testing import Running, platforms, postgres_database
from tests.builtin_plugins.conversations.talk_support import Talk, open_talk
from tests.fakes.loaded_once import LoadedOnce


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["sqlite", "postgresql"])
async def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    """A platform with conversations, and no model runtime."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        async with platforms(tmp_path_factory.mktemp("talk")) as start:
            yield await start(LoadedOnce, "models", "rag", "conversations", env={"DATABASE_URL": url})


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def talk(running: Running) -> Talk:
    """Ann with a shared pipeline over two documents, and Bob, who may ask it."""
    return await open_talk(running)
