"""One platform for all tests of the MCP server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kernel.testing import Running, platforms
from tests.builtin_plugins.mcp_server.mcp_support import Workshop
from tests.fakes.hash_embeddings import HashEmbeddings


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def mcp(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A platform with knowledge bases, tokens, tools and the MCP server."""
    async with platforms(tmp_path_factory.mktemp("mcp")) as start:
        yield await start(
            "rag", "extractive_answers", "access_tokens", "mcp_server", HashEmbeddings(), Workshop()
        )
