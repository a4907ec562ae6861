"""A server that knows its callers: each account's own credential is sent with its own calls alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.sdk import SecretStore
from kernel.testing import Start
from tests.builtin_plugins.mcp_client.client_support import (
    call,
    has_tools,
    offered_to,
    said,
    server,
    started,
    until,
)
from tests.builtin_plugins.mcp_server.mcp_support import Peer, Workshop, program
from tests.fakes.hash_embeddings import HashEmbeddings


async def test_credentials_of_accounts(
    start_platform: Start, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two accounts call one server, each as itself; without a credential nobody calls it, or is offered the
    tools that others see there.

    Another's wrong credential neither keeps its tools from them nor makes it look ill.
    """
    home = tmp_path_factory.mktemp("behind")
    behind = await start_platform(
        "rag", "access_tokens", "mcp_server", HashEmbeddings(), Workshop(), home=home
    )
    running = await started(
        start_platform, {"behind": {"url": f"{behind.url}/mcp", "credentials": "account"}}
    )
    ann, ben, eve = [await running.user(name) for name in ("ann", "ben", "eve")]
    assert (await until(ann, "behind", status="healthy"))["tools"] == []
    path = "/v1/mcp/servers/behind/credential"
    assert (await eve.put(path, json={"token": "wrong"})).status == 204
    for text in ("two\r\nlines", "bäd"):
        assert (await eve.put(path, json={"token": text})).status == 422
    assert (await server(eve, "behind"))["status"] == "healthy"
    assert (await eve.delete(path)).status == 204
    for actor, name in ((ann, "ann"), (ben, "ben")):
        token = (await program(await behind.user(f"{name}-there"))).token
        assert (await actor.put(path, json={"token": token})).status == 204
    assert "mcp_behind_workshop_weather" in await has_tools(ann, "behind")
    for actor, name in ((ann, "ann"), (ben, "ben")):
        found = await call(actor, "mcp_behind_workshop_weather", city="Oslo")
        assert f"{name}-there" in said(found)
    assert (await server(eve, "behind"))["tools"] == []
    assert "mcp_behind_workshop_weather" not in await offered_to(eve)
    unknown = {"name": "mcp_behind_workshop_weather", "arguments": {"city": "Oslo"}}
    await Peer(eve).refused("tools/call", 400, -32602, **unknown)
    assert (await server(eve, "behind"))["credential_stored"] is False
    assert (await eve.put("/v1/mcp/servers/nobody/credential", json={"token": "x"})).status == 404
    assert (await eve.delete(path)).status == 404
    assert (await ben.delete(path)).status == 204
    assert "mcp_behind_workshop_weather" not in await offered_to(ben)
    assert (await eve.put(path, json={"token": "wrong"})).status == 204
    assert "mcp_behind_workshop_weather" not in await offered_to(eve)
    assert "mcp_behind_workshop_weather" in await offered_to(ann)
    assert (await call(ann, "mcp_behind_workshop_refuse"))["isError"] is True


async def test_a_list_of_the_operators(
    start_platform: Start, platform_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tools that the operator's secret lists are offered to everybody; a call needs one's own credential.

    A wrong one keeps them from nobody.
    """
    home = tmp_path_factory.mktemp("behind")
    behind = await start_platform("access_tokens", "mcp_server", Workshop(), home=home)
    token = (await program(await behind.user("operator"))).token or ""
    SecretStore(platform_home).set("behind", token)
    settings = {"url": f"{behind.url}/mcp", "secret": "behind", "credentials": "account"}
    running = await started(start_platform, {"behind": settings})
    ann = await running.user("ann")
    path = "/v1/mcp/servers/behind/credential"
    assert "mcp_behind_workshop_weather" in await has_tools(ann, "behind")
    refused = await call(ann, "mcp_behind_workshop_weather", city="Oslo")
    assert f"PUT {path}" in said(refused)
    assert (await ann.put(path, json={"token": "wrong"})).status == 204
    assert "credential" in said(await call(ann, "mcp_behind_workshop_weather", city="Oslo"))


async def test_the_operators_credential(
    start_platform: Start, platform_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("behind")
    behind = await start_platform("access_tokens", "mcp_server", Workshop(), home=home)
    token = (await program(await behind.user("operator"))).token or ""
    settings = {
        "url": f"{behind.url}/mcp",
        "secret": "behind",
        "allow": ["*weather", "*erase"],
        "trusted": True,
    }
    SecretStore(platform_home).set("behind", token)
    running = await started(start_platform, {"behind": settings})
    ann = await running.user("ann")
    assert set(await has_tools(ann, "behind")) == {"mcp_behind_workshop_erase", "mcp_behind_workshop_weather"}
    assert "operator" in said(await call(ann, "mcp_behind_workshop_weather", city="Oslo"))
    refused = await ann.put("/v1/mcp/servers/behind/credential", json={"token": "x"})
    assert refused.json()["code"] == "no_credential_needed"
