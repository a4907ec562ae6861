"""The calls of `platformctl models`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

from cli.client import signed_in

_LONGEST_WORD: Final = 24
_CONNECTIONS = "/v1/models/connections"


async def connect_server(name: str | None, body: dict[str, Any]) -> dict[str, Any]:
    """Connect a model server; without a name, under a free one, or that of the connection to its address."""
    async with signed_in() as client:
        if name is None:
            name = _free_name(body["url"], (await client.get(_CONNECTIONS))["items"])
        return dict(await client.call("PUT", f"{_CONNECTIONS}/{name}", json=body))


async def list_servers() -> list[dict[str, Any]]:
    """The model servers, in the order in which they are asked."""
    async with signed_in() as client:
        return list((await client.get(_CONNECTIONS))["items"])


async def check_connection(name: str) -> dict[str, Any]:
    """Test a server."""
    async with signed_in() as client:
        return dict(await client.call("POST", f"{_CONNECTIONS}/{name}/test"))


async def disconnect_server(name: str) -> None:
    """Remove a connection."""
    async with signed_in() as client:
        await client.call("DELETE", f"{_CONNECTIONS}/{name}")


def _free_name(url: str, servers: Sequence[dict[str, Any]]) -> str:
    """The first word of the host, or `ollama`, with a number if another server has that name."""
    address = (url if "://" in url else f"http://{url}").rstrip("/")
    same = [one["name"] for one in servers if one["origin"] == "saved" and one["url"] == address]
    if same:
        return str(same[0])
    host = _host(address).removeprefix("api.").removeprefix("www.")
    word = re.sub(r"[^a-z0-9-]", "", host.partition(".")[0]).lstrip("-0123456789")[:_LONGEST_WORD]
    name = "ollama" if word in ("", "local", "localhost", "host") else word
    names = {one["name"] for one in servers}
    return next(free for at in count(1) if (free := name if at == 1 else f"{name}-{at}") not in names)


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:  # the platform says what is wrong with it
        return ""
