"""One platform for each protocol of a model runtime, shared by the tests that leave it as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.builtin_plugins.orchestrator.chat_support import Stage, stage_with


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both protocols where it matters how messages are put; else the second goes with the rest."""
    if "stage" in metafunc.fixturenames:
        where = metafunc.module.__name__.rpartition(".")[2]
        second = "ollama" if where == "test_chat_plain" else pytest.param("ollama", marks=pytest.mark.long)
        kinds = ["openai", second][: 1 if where == "test_other_clients" else 2]
        metafunc.parametrize("stage", kinds, indirect=True, scope="session")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    """A scripted runtime behind a platform with tools and a pipeline."""
    async with stage_with(tmp_path_factory.mktemp("chats"), request.param, documents=True) as new_stage:
        yield new_stage


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """A platform without a model runtime."""
    async with stage_with(tmp_path_factory.mktemp("bare"), "none", documents=True) as new_stage:
        yield new_stage
