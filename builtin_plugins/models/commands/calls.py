"""The calls of `platformctl models`."""

from __future__ import annotations

from typing import Any

from cli.client import signed_in

_CONNECTIONS = "/v1/models/connections"


async def connect_server(name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Connect a model server."""
    async with signed_in() as client:
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
