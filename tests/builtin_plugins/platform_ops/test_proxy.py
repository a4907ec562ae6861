"""The dynamic proxy to registered services (spec 4.8, wire-facts 9.1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from tests.builtin_plugins.platform_ops.neighbour import Neighbour, neighbour
from tests.builtin_plugins.platform_ops.ops_support import Ops, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def there() -> AsyncIterator[Neighbour]:
    async with neighbour() as fake:
        yield fake


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ops(tmp_path_factory: pytest.TempPathFactory, there: Neighbour) -> AsyncIterator[Ops]:
    """The service, to which this machine is allowed, and `trusted` trusted by its name of the machine."""
    env = {
        "PLATFORM_SERVICES_ALLOWED": "127.0.0.1,localhost",
        "PLATFORM_SERVICES_TRUSTED": f"localhost:{there.port}",
        "MAX_PROXY_BODY_SIZE_MB": "1",
    }
    async with serving(tmp_path_factory.mktemp("home"), env) as served:
        assert (await served.register("echo", "127.0.0.1", there.port)).status == 200
        assert (await served.register("trusted", "localhost", there.port)).status == 200
        assert (await served.register("gone", "127.0.0.1", 1)).status == 200
        yield served


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
async def test_a_request_reaches_the_service_as_it_was_written(ops: Ops, method: str) -> None:
    """Path, repeated query keys, body, status and headers; nothing that is for one hop."""
    body = None if method == "GET" else "hello"
    path = "/v1/proxy/echo/a%2Fb/../c%20d?x=1&x=2&y=%41"
    async with ops.running.session.request(
        method,
        aiohttp.client.URL(ops.running.url + path, encoded=True),
        data=body,
        headers={"Authorization": f"Bearer {ops.admin.token}"},
    ) as answer:
        assert answer.status == 207
        assert await answer.text() == f"{method} /a%2Fb/../c%20d?x=1&x=2&y=%41 {body or ''}"
        assert answer.headers["X-Own"] == "yes"
        assert not {"Keep-Alive", "Set-Cookie"} & set(answer.headers)


async def test_identity_goes_only_to_the_trusted(ops: Ops, there: Neighbour) -> None:
    """Token, cookie and what a client says about itself stay here; a trusted service gets the token."""
    sent = {"Cookie": "a=b", "X-Hop": "1", "Connection": "X-Hop", "X-Forwarded-For": "8.8.8.8"}
    assert (await ops.admin.get("/v1/proxy/echo/x", headers=sent)).status == 207
    headers = there.requests[-1].headers
    assert not {"Authorization", "Cookie", "X-Hop"} & set(headers)
    assert headers["X-Forwarded-For"] == "127.0.0.1"
    assert headers["X-Request-ID"]
    assert (await ops.admin.get("/v1/proxy/trusted/x", headers=sent)).status == 207
    assert there.requests[-1].headers["Authorization"] == f"Bearer {ops.admin.token}"


async def test_both_bodies_are_streamed(ops: Ops, there: Neighbour) -> None:
    """The service has the first piece, and the client its answer to it, before the rest is sent."""
    more = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"first"
        await more.wait()

    headers = {"Authorization": f"Bearer {ops.admin.token}"}
    url = f"{ops.running.url}/v1/proxy/echo/stream"
    async with (
        asyncio.timeout(20),
        ops.running.session.post(url, data=pieces(), headers=headers) as answer,
    ):
        await there.first_piece.wait()
        assert await answer.content.readany() == b"first"
        more.set()
        there.go_on.set()
        assert await answer.content.read() == b"two"


async def test_a_body_that_is_too_large_is_refused(ops: Ops) -> None:
    """413, also where the client does not say the size at first."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 65536

    refused = await ops.admin.post("/v1/proxy/echo/x", data=pieces())
    assert refused.status == 413, refused.body


async def test_what_can_not_be_reached_says_so(ops: Ops) -> None:
    """Unknown 404, nobody there 503, half an answer is no answer; others than administrators have no way."""
    assert (await ops.admin.get("/v1/proxy/unknown/x")).status == 404
    gone = await ops.admin.get("/v1/proxy/gone/x")
    assert (gone.status, gone.json()["code"]) == (503, "service_unreachable")
    with pytest.raises(aiohttp.ClientPayloadError):
        await ops.admin.get("/v1/proxy/echo/broken")
    assert (await ops.user.get("/v1/proxy/echo/x")).status == 403


async def test_the_list_names_the_way(ops: Ops, there: Neighbour) -> None:
    found = (await ops.running.anonymous.get("/v1/proxy")).json()
    assert found["count"] == 3
    echo = found["services"][0]
    assert echo["endpoint"] == f"http://127.0.0.1:{there.port}"
    assert echo["proxy_url"] == "/v1/proxy/echo"
    assert echo["health_status"] == "unknown"
