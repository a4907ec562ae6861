"""What the tests of the MCP client share: servers behind a platform, and how somebody sees them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.mcp_server.mcp_support import Peer
from tests.fakes.waiting import eventually

NAUGHTY = Path(__file__).parent / "naughty.py"


def naughty(mode: str, **settings: Any) -> dict[str, Any]:
    """The settings of a server that behaves so."""
    return {"command": [sys.executable, str(NAUGHTY), mode], **settings}


async def started(start: Start, servers: dict[str, Any], **options: Any) -> Running:
    """A platform with these servers behind it, which it may not have asked yet."""
    env = {"PLATFORM_MCP_CLIENT_SERVERS": json.dumps(servers), **options.pop("env", {})}
    return await start("mcp_client", "mcp_server", "access_tokens", env=env, **options)


async def server(actor: Actor, name: str) -> dict[str, Any]:
    """How a server is."""
    found = (await actor.get("/v1/mcp/servers")).json()["servers"]
    return next(item for item in found if item["name"] == name)


async def until(actor: Actor, name: str, **wanted: Any) -> dict[str, Any]:
    """How a server is, once it is so."""

    async def is_so() -> bool:
        return wanted.items() <= (await server(actor, name)).items()

    await eventually(is_so, 30)
    return await server(actor, name)


async def has_tools(actor: Actor, name: str) -> list[str]:
    """The tools of a server, once it has some."""

    async def listed() -> bool:
        return bool((await server(actor, name))["tools"])

    await eventually(listed, 30)
    return list((await server(actor, name))["tools"])


async def offered_to(actor: Actor) -> list[str]:
    """The names of all tools that somebody is offered."""
    listed = await Peer(actor).ask("tools/list")
    return [tool["name"] for tool in listed["tools"]]


async def call(actor: Actor, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a call, as a client of ours gets it."""
    return await Peer(actor).ask("tools/call", name=tool, arguments=arguments)


def said(result: dict[str, Any]) -> str:
    """The text of a result."""
    return str(result["content"][0]["text"])
