"""One platform on SQLite and one on PostgreSQL for all tests that leave them as they were."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import pytest_asyncio

from kernel.testing import Running, platforms, postgres_database
from tests.builtin_plugins.published_chat.page_support import PLUGINS, ROOMY, Shop, open_shop


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["sqlite", "postgresql"])
async def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    """A platform with the plugins of the chat, no model runtime, and roomy general limits."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        async with platforms(tmp_path_factory.mktemp("chat")) as start:
            yield await start(*PLUGINS, env={"DATABASE_URL": url, **ROOMY})


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shop(running: Running) -> Shop:
    """An owner with a handbook, its pipeline, and a chat over it."""
    return await open_shop(running)
