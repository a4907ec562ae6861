"""Answers on the wire: the short way says what aiohttp's own would, and stands back where more is asked."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kernel.sdk import Context
from kernel.testing import Running, platforms
from tests.fakes.echo import EchoPlugin
from tests.fakes.network import raw_client

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """One platform for all tests: they leave it as it was."""
    async with platforms(tmp_path_factory.mktemp("wire")) as start:
        yield await start(EchoPlugin)


def request(path: str, *lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: x", *lines, "", ""]).encode()


async def test_every_head_says_the_same(running: Running) -> None:
    """The head made at once and the one that aiohttp makes (for HEAD) hold the same headers."""
    async with raw_client(running.url) as client:
        await client.send(request("/livez"))
        short = await client.answer()
        await client.send(request("/livez", method="HEAD"))
        status, long = await client.head()
    assert (short.status, short.body, status) == (200, b'{"status":"alive"}', 200)
    assert short.headers.keys() == long.keys()
    own = {"x-request-id", "x-response-time", "date"}
    assert {k: v for k, v in short.headers.items() if k not in own} == {
        k: v for k, v in long.items() if k not in own
    }


async def test_a_connection_that_is_to_end(running: Running) -> None:
    """A client that asks for the end of its connection gets `Connection: close`, and the end."""
    async with raw_client(running.url) as client:
        await client.send(request("/livez", "Connection: close"))
        answer = await client.answer()
        assert (answer.headers["connection"], answer.body) == ("close", b'{"status":"alive"}')
        assert await client.closed()


@pytest.mark.parametrize(("lines", "stays"), [((), False), (("Connection: keep-alive",), True)])
async def test_an_old_client(running: Running, lines: tuple[str, ...], stays: bool) -> None:
    """HTTP/1.0: the connection ends after the answer, unless the client asks to keep it."""
    async with raw_client(running.url) as client:
        await client.send(request("/livez", *lines, version="1.0"))
        answer = await client.answer()
        assert (answer.headers.get("connection") == "keep-alive") is stays
        if not stays:
            assert await client.closed()


async def test_pipelined_requests(running: Running) -> None:
    """Requests sent at once are answered in their order, each with its own id."""
    async with raw_client(running.url) as client:
        await client.send(b"".join(request("/livez", f"X-Request-ID: n{i}") for i in range(5)))
        answers = [await client.answer() for _ in range(5)]
    assert [a.headers["x-request-id"] for a in answers] == [f"n{i}" for i in range(5)]
    assert {a.status for a in answers} == {200}


async def test_an_unreadable_request(running: Running) -> None:
    """What can't be parsed is refused with the headers of every answer, and the connection ends."""
    async with raw_client(running.url) as client:
        await client.send(b"GET /livez HTTP/1.1\r\nHost: x\r\nno colon here\r\n\r\n")
        answer = await client.answer()
        assert await client.closed()
    assert (answer.status, answer.headers["server"]) == (400, "Platform")
    assert {"x-request-id", "x-content-type-options", "content-security-policy"} <= answer.headers.keys()


async def test_an_encoded_path(running: Running) -> None:
    """A path is found however the client encodes its letters."""
    assert (await running.anonymous.get("/l%69vez")).status == 200


async def test_a_client_that_waits_to_be_asked(running: Running) -> None:
    """`Expect: 100-continue` is answered before the body comes; an expectation nobody knows is refused."""
    body = b'{"name": "x"}'
    lines = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    async with raw_client(running.url) as client:
        await client.send(request("/v1/echo/body", *lines, "Expect: 100-continue", method="POST"))
        assert await client.head() == (100, {})
        await client.send(body)
        assert (await client.answer()).status == 200
    for unknown in (b"a miracle", b"\xff\xfe"):
        asked = request("/v1/echo/body", *lines, "Expect: ?", method="POST").replace(b"?", unknown)
        async with raw_client(running.url) as client:
            await client.send(asked)
            refused = await client.answer()  # the connection ends: a body may follow, or the next request
        assert (refused.status, refused.headers["connection"]) == (417, "close")


@pytest.mark.parametrize(
    ("path", "status"),
    [("/livez", 200), ("/v1/echo/open", 200), ("/v1/nowhere", 404), ("/v1/echo/private", 401)],
)
async def test_nothing_is_left_for_the_collector(running: Running, path: str, status: int) -> None:
    """A request is freed when it is answered, refused ones too: cycles would stop the process to be found."""
    gc.collect()
    gc.freeze()  # what other tests have left need not be looked at again
    gc.disable()
    try:
        before = _contexts()  # of streams that are open in other platforms of this process
        assert {(await running.anonymous.get(path)).status for _ in range(20)} == {status}
        left = _contexts() - before
    finally:
        gc.enable()
        gc.unfreeze()
    assert left <= 1  # the last one's task may not be through yet


def _contexts() -> int:
    return sum(type(item) is Context for item in gc.get_objects())
