"""What a user does with the official client, unmodified, in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from kernel.testing import Actor, Running
from tests.builtin_plugins.mcp_server.mcp_support import LEGACY, MODERN, program, workshop_of
from tests.builtin_plugins.mcp_server.test_mcp_contents import owner_of_a_library
from tests.builtin_plugins.rag.rag_support import somebody

if TYPE_CHECKING:
    from mcp.client import Client

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODES = pytest.mark.parametrize(("mode", "version"), [("auto", MODERN), (MODERN, MODERN), ("legacy", LEGACY)])


@asynccontextmanager
async def connected(actor: Actor, mode: str) -> AsyncIterator[Client]:
    import httpx2  # here and below, as these packages take a second in each process of a run
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {actor.token}"} if actor.token else {}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"{actor.running.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@MODES
async def test_a_session(mcp: Running, mode: str, version: str) -> None:
    """Connect, look around, search, ask, open what is cited, be refused, and go."""
    from mcp import MCPError

    owner, _, _ = await owner_of_a_library(mcp)
    async with connected(await program(owner), mode) as client:
        assert client.protocol_version == version
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["workshop_erase"].annotations is not None
        assert tools["workshop_erase"].annotations.destructive_hint is True
        found = await client.call_tool("search", {"query": "treasure of the harbour"})
        assert found.structured_content is not None
        uri = found.structured_content["passages"][0]["uri"]
        opened = await client.read_resource(uri)
        assert "silver coins" in opened.contents[0].text
        answer = await client.call_tool("ask_harbour", {"question": "What is the treasure of the harbour?"})
        assert "silver coins" in answer.content[0].text
        assert (await client.list_resources()).resources[0].name == "harbour.md"
        assert len((await client.list_resource_templates()).resource_templates) == 2
        refused = await client.call_tool("workshop_refuse", {})
        assert refused.is_error is True
        with pytest.raises(MCPError):
            await client.call_tool("no_such_tool", {})
        with pytest.raises(MCPError):
            await client.read_resource("platform://nothing")


@pytest.mark.parametrize(("mode", "version"), [("auto", MODERN), ("legacy", LEGACY)])
async def test_a_long_call(mcp: Running, mode: str, version: str) -> None:
    """A call that becomes a stream is one answer to the client."""
    workshop = workshop_of(mcp)
    workshop.go_on.clear(), workshop.entered.clear()
    async with connected(await program(await somebody(mcp)), mode) as client, asyncio.timeout(20):
        calling = asyncio.create_task(client.call_tool("workshop_wait", {}))
        await workshop.entered.wait()
        asyncio.get_running_loop().call_later(2.5, workshop.go_on.set)  # later than an answer at once may be
        assert "done" in (await calling).content[0].text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_without_a_good_token(mcp: Running, mode: str) -> None:
    """A client without a valid token is refused, and learns nothing."""
    for token, said in ((None, "Authentication required"), ("nonsense", "Invalid token")):
        with pytest.raises(Exception) as refused:
            async with connected(Actor(mcp, token), mode):
                pass
        assert said in innermost(refused.value)


def innermost(error: BaseException) -> str:
    """What an error says, without the groups around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)
