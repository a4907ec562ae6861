"""The MCP server on the wire: versions, headers, errors, origins, streams; both eras at one address."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kernel.testing import Running, platforms
from tests.builtin_plugins.mcp_server.mcp_support import (
    LEGACY,
    META,
    MODERN,
    Peer,
    program,
    validator,
    workshop_of,
)
from tests.builtin_plugins.rag.rag_support import somebody
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="session")

ERAS = pytest.mark.parametrize("version", [MODERN, LEGACY])


async def peer(mcp: Running, version: str = MODERN) -> Peer:
    return Peer(await program(await somebody(mcp)), version)


async def test_discover(mcp: Running) -> None:
    """A modern client learns versions and capabilities in one request, and may keep the answer."""
    found = await (await peer(mcp)).ask("server/discover")
    assert found["supportedVersions"][:2] == [MODERN, LEGACY]
    assert set(found["capabilities"]) == {"tools", "resources"}
    assert (found["resultType"], found["cacheScope"]) == ("complete", "private")
    assert found["_meta"][f"{META}serverInfo"]["name"] == "platform"


async def test_initialize(mcp: Running) -> None:
    """An older client begins with a handshake; it gets an id of its own, which it need not send to go on."""
    client = await peer(mcp, LEGACY)
    hello: dict[str, Any] = {"capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}
    reply = await client.send("initialize", protocolVersion=LEGACY, **hello)
    assert reply.json()["result"]["protocolVersion"] == LEGACY
    other = await client.send("initialize", protocolVersion=LEGACY, **hello)
    assert reply.headers["Mcp-Session-Id"] != other.headers["Mcp-Session-Id"]
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    accepted = await client.post(told, {"MCP-Protocol-Version": LEGACY})
    assert (accepted.status, accepted.body) == (202, b"")
    assert await client.ask("ping") == {}
    older = await client.ask("initialize", protocolVersion="2025-06-18", **hello)
    assert older["protocolVersion"] == "2025-06-18"
    unknown = await client.ask("initialize", protocolVersion="1999-01-01", **hello)
    assert unknown["protocolVersion"] == LEGACY
    without = await client.post(client.message("tools/list", {}), {})
    assert without.status == 200


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"MCP-Protocol-Version": None}, -32020),
        ({"MCP-Protocol-Version": "2025-11-25"}, -32020),
        ({"Mcp-Method": None}, -32020),
        ({"Mcp-Method": "tools/list"}, -32020),
        ({"Mcp-Name": None}, -32020),
        ({"Mcp-Name": "other"}, -32020),
        ({"Mcp-Name": "=?base64?%%%?="}, -32020),
    ],
)
async def test_headers_say_what_the_body_says(mcp: Running, headers: dict[str, Any], code: int) -> None:
    """A header that is missing or differs from the body is refused: intermediaries may have trusted it."""
    client = await peer(mcp)
    await client.refused("tools/call", 400, code, headers=headers, name="workshop_weather", arguments={})


async def test_names_beyond_ascii(mcp: Running) -> None:
    """A name may come in Base64."""
    name = base64.b64encode(b"workshop_weather").decode()
    reply = await (await peer(mcp)).send(
        "tools/call",
        headers={"Mcp-Name": f"=?base64?{name}?="},
        name="workshop_weather",
        arguments={"city": "Oslo"},
    )
    assert reply.json()["result"]["structuredContent"]["result"]["city"] == "Oslo"


async def test_versions(mcp: Running) -> None:
    """An unknown version is refused with those that are spoken here, in header and body or in the header."""
    client = await peer(mcp)
    body = client.message("tools/list", {})
    body["params"]["_meta"][f"{META}protocolVersion"] = "2099-01-01"
    for message, version in ((body, "2099-01-01"), ({**body, "params": {}}, "2099-01-01")):
        reply = await client.post(message, {**client.headers(body), "MCP-Protocol-Version": version})
        validator(MODERN, "UnsupportedProtocolVersionError").validate(reply.json())
        assert (reply.status, reply.json()["error"]["data"]["requested"]) == (400, version)
    bare = await client.post({**body, "params": {}}, {**client.headers(body)})
    assert (bare.status, bare.json()["error"]["code"]) == (400, -32602)
    del body["params"]["_meta"][f"{META}clientCapabilities"]
    body["params"]["_meta"][f"{META}protocolVersion"] = MODERN
    assert (await client.post(body, client.headers(body))).json()["error"]["code"] == -32602


async def test_methods_that_are_not_there(mcp: Running) -> None:
    """An unknown method is 404 with -32601 to a modern client, and an answer to an older one."""
    modern, legacy = await peer(mcp), await peer(mcp, LEGACY)
    for method in ("prompts/list", "initialize", "ping", "nonsense"):
        await modern.refused(method, 404, -32601)
    for method in ("prompts/list", "server/discover", "nonsense"):
        await legacy.refused(method, 200, -32601)
    await modern.refused("resources/read", 400, -32602, headers={"Mcp-Name": "x"}, uri="x")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\\udfff"}}', -32700),
        (b"[]", -32600),
        (b'"text"', -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": 1}}', -32602),
    ],
)
async def test_what_is_no_message(mcp: Running, body: bytes, code: int) -> None:
    """A body that is no request is refused with its own code, and nothing fails."""
    reply = await (await peer(mcp)).post(body, {})
    assert (reply.status, reply.json()["error"]["code"]) == (400, code)
    validator(MODERN, "JSONRPCErrorResponse").validate(reply.json())


async def test_media_type_and_size(mcp: Running) -> None:
    client = await peer(mcp)
    assert (await client.post(b"{}", {"Content-Type": "text/plain"})).status == 415
    assert (await client.post(b" " * (4 * 1024 * 1024 + 1), {})).status == 413
    ping = '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {"x": %s}}}'
    assert (await client.post((ping % f'"{"[]," * 200_000}"').encode(), {})).status == 200
    refused = await client.post((ping % f"[{'[],' * 200_000}0]").encode(), {})
    assert refused.status == 413 and "values" in refused.json()["detail"]
    assert (await client.actor.get("/mcp")).status == 405
    assert (await client.actor.delete("/mcp")).status == 405


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("http://evil.example:8000", 403),
        ("null", 403),
        ("http://[", 403),
        ("http://localhost:3000", 200),
        ("http://127.0.0.1", 200),
        ("http://[::1]:8080", 200),
    ],
)
async def test_foreign_pages(mcp: Running, origin: str, status: int) -> None:
    """A page of another site is refused, whatever it calls itself in Host and whatever token it has."""
    client = await peer(mcp)
    body = client.message("tools/list", {})
    headers = {**client.headers(body), "Origin": origin}
    assert (await client.post(body, headers)).status == status
    if status == 403:
        host = origin.rpartition("/")[2]
        assert (await client.post(body, {**headers, "Host": host})).status == status


async def test_pages_read_answers(mcp: Running, tmp_path: Path) -> None:
    """A page that may call reads the answer, its session's id and how to sign in, whatever CORS allows."""
    env = {"CORS_ALLOWED_ORIGINS": "https://b.example", "PLATFORM_MCP_ALLOWED_ORIGINS": "https://a.example"}
    async with platforms(tmp_path) as start:
        strict = await start(
            "rag", "extractive_answers", "access_tokens", "mcp_server", HashEmbeddings(), env=env
        )
        for running, origin in ((mcp, "http://localhost:6274"), (strict, "https://a.example")):
            client, page = await peer(running, LEGACY), {"Origin": origin}
            wanted = {"protocolVersion": LEGACY, "capabilities": {}}
            body = client.message("initialize", {**wanted, "clientInfo": {"name": "a", "version": "1"}})
            asked = {**page, "Access-Control-Request-Method": "POST"}
            reply = await client.post(body, page)
            for answer in (
                reply,
                await running.anonymous.request("OPTIONS", "/mcp", headers=asked),
                await running.anonymous.get("/.well-known/oauth-protected-resource/mcp", headers=page),
                await client.actor.get("/mcp", headers=page),  # older clients ask whether there is a stream
                await running.anonymous.request(
                    "OPTIONS", "/mcp", headers={**page, "Access-Control-Request-Method": "GET"}
                ),
            ):
                assert answer.headers["Access-Control-Allow-Origin"] == "*"
            shown = reply.headers["Access-Control-Expose-Headers"].split(", ")
            assert reply.headers["Mcp-Session-Id"] and {"Mcp-Session-Id", "WWW-Authenticate"} <= {*shown}


async def test_without_a_token(mcp: Running) -> None:
    reply = await Peer(mcp.anonymous).post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {})
    said = reply.headers["WWW-Authenticate"]
    assert (reply.status, said.startswith("Bearer ")) == (401, True)
    where = said.split('resource_metadata="')[1].split('"')[0]
    told = (await mcp.anonymous.get(where)).json()
    assert told["resource"] == f"{mcp.url}/mcp"
    assert told["bearer_methods_supported"] == ["header"]
    assert (
        "authorization_servers" not in told
    )  # RFC 9728: what has no value is left out, and clients check it
    assert (await mcp.anonymous.get("/.well-known/oauth-protected-resource")).json() == told


@ERAS
async def test_a_refusal_is_an_error_of_the_protocol(mcp: Running, version: str) -> None:
    """What the platform refuses before it reads a message, it refuses in words that clients show."""
    client = await peer(mcp, version)
    body = client.message("tools/list", {})
    headers = {**client.headers(body), "Authorization": "Bearer nonsense"}
    reply = await client.post(body, headers)
    assert (reply.status, reply.json()["error"]["message"]) == (401, "Invalid token")
    challenge = reply.headers["WWW-Authenticate"]
    assert challenge.startswith('Bearer error="invalid_token", resource_metadata="')
    assert f'{mcp.url}/.well-known/oauth-protected-resource/mcp"' in challenge
    refused = await client.post(body, {**client.headers(body), "Content-Type": "text/plain"})
    error = {"code": 415, "message": "Send application/json", "data": {"code": "unsupported_media_type"}}
    house = {"detail": error["message"], "code": "unsupported_media_type"}
    assert refused.json() == {**house, "jsonrpc": "2.0", "id": None, "error": error}


@ERAS
async def test_long_calls_stream(mcp: Running, version: str) -> None:
    """A call that takes its time becomes a stream with signs of life, which ends with the answer."""
    client, workshop = await peer(mcp, version), workshop_of(mcp)
    workshop.go_on.clear()
    body = client.message("tools/call", {"name": "workshop_wait", "arguments": {}})
    async with asyncio.timeout(20), opened(client, body) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.headers["X-Accel-Buffering"] == "no"
        assert (await answer.content.readline()).startswith(b":")
        workshop.go_on.set()
        rest = (await answer.content.read()).decode()
    data = next(line[6:] for line in rest.splitlines() if line.startswith("data: "))
    message = json.loads(data)
    validator(version, "CallToolResult").validate(message["result"])
    assert (message["id"], "done" in message["result"]["content"][0]["text"]) == (body["id"], True)


@ERAS
async def test_who_leaves_cancels(mcp: Running, version: str) -> None:
    """A client that closes its connection stops the work, before the stream and during it."""
    client, workshop = await peer(mcp, version), workshop_of(mcp)
    for after_the_first_sign in (False, True):
        workshop.go_on.clear(), workshop.entered.clear(), workshop.ended.clear()
        body = client.message("tools/call", {"name": "workshop_wait", "arguments": {}})
        async with asyncio.timeout(20):
            leaving = asyncio.create_task(listen(client, body, after_the_first_sign))
            await workshop.entered.wait()
            if not after_the_first_sign:
                leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            await workshop.ended.wait()


@pytest.mark.parametrize("in_stream", [False, True])
async def test_an_older_client_cancels_by_message(mcp: Running, in_stream: bool) -> None:
    client, workshop = await peer(mcp, LEGACY), workshop_of(mcp)
    stranger = await peer(mcp, LEGACY)
    workshop.go_on.clear(), workshop.entered.clear(), workshop.ended.clear()
    body = client.message("tools/call", {"name": "workshop_wait", "arguments": {}})
    session = {"Mcp-Session-Id": "mine"}
    async with asyncio.timeout(20):
        begun = asyncio.Event()
        asked = asyncio.create_task(whole(client, body, session, begun if in_stream else None))
        await (begun if in_stream else workshop.entered).wait()
        others = [(stranger, "mine", body["id"]), (client, "other", body["id"]), (client, None, body["id"])]
        for who, named, number in [*others, (client, "mine", str(body["id"])), (client, "mine", None)]:
            await cancel(who, named, number)
        assert not workshop.ended.is_set()
        await cancel(client, "mine", body["id"])
        said = await asked
        await workshop.ended.wait()
    assert "result" not in said
    await cancel(client, "mine", body["id"])  # what has ended is no fault


async def cancel(client: Peer, session: str | None, number: Any) -> None:
    """Say that a request is cancelled."""
    told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
    accepted = await client.post(told, {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": session})
    assert (accepted.status, accepted.body) == (202, b"")


async def whole(
    client: Peer, body: dict[str, Any], headers: dict[str, str], begun: asyncio.Event | None
) -> str:
    accept = {"Accept": "application/json, text/event-stream" if begun else "application/json"}
    async with opened(client, body, {**headers, **accept}) as answer:
        assert answer.status == 200
        if begun:
            assert (await answer.content.readline()).startswith(b":")
            begun.set()
        return (await answer.read()).decode()


async def listen(client: Peer, body: dict[str, Any], first_sign: bool) -> None:
    async with opened(client, body) as answer:
        if first_sign:
            await answer.content.readline()
            answer.close()
        else:
            await answer.read()


def opened(client: Peer, body: dict[str, Any], more: dict[str, str] | None = None) -> Any:
    """A request whose answer is read bit by bit."""
    headers = {"Accept": "application/json, text/event-stream", **client.headers(body), **(more or {})}
    headers["Authorization"] = f"Bearer {client.actor.token}"
    session: aiohttp.ClientSession = client.actor.running.session
    return session.post(client.actor.running.url + "/mcp", json=body, headers=headers)


async def test_an_ended_token_ends_the_stream(mcp: Running) -> None:
    owner, workshop = await somebody(mcp), workshop_of(mcp)
    made = (await owner.post("/v1/auth/tokens", json={"name": "x"})).json()
    client = Peer(type(owner)(mcp, made["token"], owner.user))
    workshop.go_on.clear(), workshop.ended.clear()
    body = client.message("tools/call", {"name": "workshop_wait", "arguments": {}})
    async with asyncio.timeout(20), opened(client, body) as answer:
        await answer.content.readline()
        assert (await owner.delete(f"/v1/auth/tokens/{made['id']}")).status == 204
        with pytest.raises(aiohttp.ClientError):
            await answer.content.read()
        await workshop.ended.wait()
