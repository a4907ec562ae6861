"""Servers that hang, lie, change, flood and die: each harms only itself, and /health names it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.mcp_client.client_support import (
    call,
    has_tools,
    naughty,
    said,
    server,
    started,
    until,
)
from tests.builtin_plugins.mcp_server.mcp_support import Peer

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODES = ("good", "hang", "lie", "change", "die", "flood", "garbage", "nan", "ask")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A platform with a server of each kind behind it."""
    servers = {mode: naughty(mode, seconds=1) for mode in MODES}
    servers["lie"] |= {"allow": ["[!h]*", "harmless", "huge"]}
    servers["missing"] = {"command": ["/nowhere/at/all"]}
    servers["old"] = naughty("old")
    async with platforms(tmp_path_factory.mktemp("naughty")) as start:
        yield await started(start, servers)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(running: Running) -> Actor:
    """Somebody who is told what is wrong."""
    return await running.user("boss", role="admin")


async def still_well(admin: Actor) -> None:
    """The platform and the other servers go on."""
    assert said(await call(admin, "mcp_good_add", a=20, b=22)).count("42")
    assert (await admin.get("/health")).status == 200


async def test_a_good_one(running: Running, admin: Actor) -> None:
    """Its tools are in the catalogue under its name, and nobody takes its word that they are harmless."""
    assert await has_tools(admin, "good") == ["mcp_good_add"]
    found = await call(admin, "mcp_good_add", a=1, b=2)
    assert found["structuredContent"] == {"server": "good", "tool": "add", "text": "3"}
    tools = {tool["name"]: tool for tool in (await Peer(admin).ask("tools/list"))["tools"]}
    assert tools["mcp_good_add"]["annotations"]["destructiveHint"] is True
    await has_tools(admin, "lie")
    assert tools["mcp_good_add"]["description"] == "Adds two numbers."


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("hang", "1 s"),
        ("die", "ended"),
        ("flood", "256 KB"),
        ("garbage", "not JSON"),
        ("nan", "not JSON"),
    ],
)
async def test_a_failing_call(running: Running, admin: Actor, mode: str, why: str) -> None:
    """A call fails with the server's name, and the server is there again for the next."""
    await has_tools(admin, mode)
    failed = await call(admin, f"mcp_{mode}_add", a=1, b=2)
    assert failed["isError"] is True
    assert why in said(failed)
    assert f"'{mode}'" in said(failed)
    await still_well(admin)
    await until(admin, mode, status="healthy")
    assert why in said(await call(admin, f"mcp_{mode}_add", a=1, b=2))


async def test_one_that_lies(running: Running, admin: Actor) -> None:
    """Tools whose schema is none, refers outside or explodes are left out and named; the rest are offered."""
    tools = await has_tools(admin, "lie")
    assert set(tools) == {"mcp_lie_add", "mcp_lie_cut", "mcp_lie_harmless", "mcp_lie_names", "mcp_lie_round"}
    problem = (await server(admin, "lie"))["problem"]
    for name in ("array", "outside", "nowhere", "nonsense", "deep", "huge", "bomb"):
        assert f"'{name}'" in problem
    listed = {tool["name"]: tool for tool in (await Peer(admin).ask("tools/list"))["tools"]}
    assert listed["mcp_lie_cut"]["description"] == "Half a character: ?"
    assert listed["mcp_lie_harmless"]["annotations"]["readOnlyHint"] is False
    inner = listed["mcp_lie_round"]["inputSchema"]["properties"]["x"]["properties"]
    assert inner == {"x": {"type": "object"}}
    assert set(listed["mcp_lie_names"]["inputSchema"]["properties"]) == {"definitions"}


async def test_one_that_changes(running: Running, admin: Actor) -> None:
    """A tool that is described otherwise than before is kept back and named."""
    await has_tools(admin, "change")
    assert said(await call(admin, "mcp_change_add", a=1, b=2)).count("3")
    changed = await until(admin, "change", status="unhealthy")
    assert changed["problem"] and changed["tools"] == []
    await Peer(admin).refused("tools/call", 400, -32602, name="mcp_change_add", arguments={})
    await still_well(admin)


async def test_one_that_asks(running: Running, admin: Actor) -> None:
    """What a server asks of its client is refused: it gets no model, no files and no answers of people."""
    await has_tools(admin, "ask")
    assert "-32601" in said(await call(admin, "mcp_ask_add"))


async def test_health_names_them(running: Running, admin: Actor) -> None:
    """A server that can't be started or has no known MCP version is named; the platform is degraded."""
    await until(admin, "missing", status="unhealthy")
    await until(admin, "old", status="unhealthy")
    assert "started" in (await server(admin, "missing"))["problem"]
    assert "MCP version" in (await server(admin, "old"))["problem"]
    health = (await running.anonymous.get("/health")).json()
    assert health["checks"]["mcp_servers"].startswith("unhealthy: ")
    somebody = await running.user()
    assert {item["problem"] for item in (await somebody.get("/v1/mcp/servers")).json()["servers"]} == {None}
