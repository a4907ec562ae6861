"""One platform for each protocol of a model runtime, shared by the tests that leave it as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.builtin_plugins.orchestrator.chat_support import Stage, stage_with


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["ollama", "openai"])
async def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    """A scripted runtime behind a platform with tools and a pipeline."""
    async with stage_with(tmp_path_factory.mktemp("chats"), request.param, documents=True) as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """A platform without a model runtime."""
    async with stage_with(tmp_path_factory.mktemp("bare"), "none", documents=True) as made:
        yield made
