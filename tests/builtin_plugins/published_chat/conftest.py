"""One platform on SQLite and one on PostgreSQL for all tests that leave them as they were."""

from __future__ import annotations

import pytest
import pytest_asyncio

from kernel.testing import Running
from tests.builtin_plugins.published_chat.page_support import PLUGINS, ROOMY, Shop, open_shop
from tests.fakes.kept import Kept


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(request: pytest.FixtureRequest, kept: Kept) -> Running:
    """A platform with the plugins of the chat, no model runtime, and roomy general limits."""
    return await kept.platform("chat", request.param, *PLUGINS, env=ROOMY)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shop(running: Running) -> Shop:
    """An owner with a handbook, its pipeline, and a chat over it."""
    return await open_shop(running)
