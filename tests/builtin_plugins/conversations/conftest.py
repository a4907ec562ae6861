"""One platform on SQLite and one on PostgreSQL for all tests that leave them as they were."""

from __future__ import annotations

import pytest
import pytest_asyncio

from kernel.testing import Running
from tests.builtin_plugins.conversations.talk_support import Talk, open_talk
from tests.fakes.kept import Kept
from tests.fakes.loaded_once import LoadedOnce


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(request: pytest.FixtureRequest, kept: Kept) -> Running:
    """A platform with conversations, and no model runtime."""
    return await kept.platform(
        "talk", request.param, LoadedOnce, "models", "rag", "extractive_answers", "conversations"
    )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def talk(running: Running) -> Talk:
    """Ann with a shared pipeline over two documents, and Bob, who may ask it."""
    return await open_talk(running)
