"""Limits on what a client may send and on how slowly; and a shutdown that lets requests finish."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import logging
import socket
import time
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from aiohttp.compression_utils import HAS_BROTLI

from kernel.gateway.app import gateway_app
from kernel.process.server import Listener, bind
from kernel.sdk import PUBLIC, Context, Plugin, RouteTable, hookimpl
from kernel.testing import Running, Start
from tests.fakes.echo import EchoPlugin
from tests.fakes.network import RawClient, raw_client

SMALL = {"PLATFORM_MAX_BODY_SIZE_MB": "1"}
MEGABYTE = 1024 * 1024


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


class TestBodySize:
    async def test_declared_too_large(self, start_platform: Start) -> None:
        """A body that announces itself as too large is refused before it is sent."""
        running = await start_platform(EchoPlugin, env=SMALL)
        async with raw_client(running.url) as client:
            await client.send(head("POST", "/v1/echo/body", f"Content-Length: {MEGABYTE + 1}"))
            answer = await client.answer()
        assert answer.status == 413
        assert json.loads(answer.body)["code"] == "payload_too_large"

    async def test_chunks_past_the_limit(self, start_platform: Start) -> None:
        """A body that does not say how large it is is cut off at the limit."""
        running = await start_platform(EchoPlugin, env=SMALL)
        answer = await running.anonymous.post("/v1/echo/body", data=_pieces(MEGABYTE * 3 // 2))
        assert answer.status == 413

    async def test_a_bomb(self, start_platform: Start) -> None:
        """What counts is the size after decompression: a small body may not grow past the limit."""
        running = await start_platform(EchoPlugin, env=SMALL)
        bomb = gzip.compress(b'{"name": "' + b"a" * (20 * MEGABYTE) + b'"}')
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        answer = await running.anonymous.post("/v1/echo/body", data=bomb, headers=headers)
        assert len(bomb) < MEGABYTE
        assert answer.status == 413

    async def test_a_bomb_that_nobody_reads(self, start_platform: Start) -> None:
        """The rest of a compressed body isn't unpacked once the answer is there: the connection ends."""
        running = await start_platform(EchoPlugin)
        bomb = gzip.compress(bytes(200 * MEGABYTE), 1)
        lines = ["Content-Encoding: gzip", f"Content-Length: {len(bomb)}"]
        async with raw_client(running.url) as client:
            await client.send(head("POST", "/v1/echo/nowhere", *lines) + bomb[:-1000])
            answer = await client.answer()
            assert (answer.status, answer.headers["connection"]) == (404, "close")
            await client.send(bomb[-1000:])

    @pytest.mark.parametrize("coding", ["gzip", "identity", "Identity", ""])
    async def test_a_declared_coding(self, start_platform: Start, coding: str) -> None:
        running = await start_platform(EchoPlugin)
        headers = {"Content-Encoding": coding, "Content-Type": "application/json"}
        body = b'{"name": "squeezed"}'
        data = gzip.compress(body) if coding == "gzip" else body
        answer = await running.anonymous.post("/v1/echo/body", data=data, headers=headers)
        assert (answer.status, answer.json()["name"]) == (200, "squeezed")

    async def test_a_damaged_body(self, start_platform: Start) -> None:
        running = await start_platform(EchoPlugin)
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        answer = await running.anonymous.post("/v1/echo/body", data=b"no gzip at all", headers=headers)
        assert (answer.status, answer.json()["code"]) == (400, "bad_request")

    @pytest.mark.parametrize("path", ["/v1/echo/body", "/v1/echo/nowhere"])
    async def test_a_damaged_body_is_no_error_of_ours(
        self, start_platform: Start, caplog: pytest.LogCaptureFixture, path: str
    ) -> None:
        """Whether it was read or not, nobody can fill the log with tracebacks."""
        running = await start_platform(EchoPlugin)
        request = head("POST", path, "Content-Encoding: gzip", "Content-Length: 13")
        async with raw_client(running.url) as client:
            await client.send(request + b"no gzip")
            await client.send(b" at al")
            assert (await client.answer()).status in (400, 401, 404)
            await client.closed()
        assert not [one for one in caplog.records if one.levelno >= logging.ERROR]

    async def test_damaged_chunks(self, start_platform: Start) -> None:
        running = await start_platform(EchoPlugin)
        async with raw_client(running.url) as client:
            request = head("POST", "/v1/echo/body", "Transfer-Encoding: chunked")
            await client.send(request + b'5\r\n{"nam\r\nnonsense\r\n\r\n')
            assert (await client.answer()).status == 400

    @pytest.mark.parametrize("coding", ["snappy", "gzip, gzip", *([] if HAS_BROTLI else ["br"])])
    async def test_an_unknown_coding(self, start_platform: Start, coding: str) -> None:
        """A body in an unknown coding is 415, and the response names the known ones."""
        running = await start_platform(EchoPlugin)
        headers = {"Content-Encoding": coding, "Content-Type": "application/json"}
        body = b'{"name": "not what it seems"}'
        answer = await running.anonymous.post("/v1/echo/body", data=body, headers=headers)
        assert (answer.status, answer.json()["code"]) == (415, "unsupported_media_type")
        assert answer.headers["Accept-Encoding"].startswith("gzip, deflate")
        assert "uncompressed" in answer.json()["detail"]

    async def test_an_unknown_transfer_coding(self, start_platform: Start) -> None:
        """A body with a compressed transfer coding isn't read as if it were plain."""
        running = await start_platform(EchoPlugin)
        async with raw_client(running.url) as client:
            request = head("POST", "/v1/echo/body", "Transfer-Encoding: gzip, chunked")
            await client.send(request + b'd\r\n{"name": "a"}\r\n0\r\n\r\n')
            answer = await client.answer()
        assert (answer.status, b"Transfer-Encoding" in answer.body) == (400, True)

    async def test_just_at_the_limit(self, start_platform: Start) -> None:
        running = await start_platform(EchoPlugin, env=SMALL)
        body = b'{"name": "a"' + b" " * (MEGABYTE - 13) + b"}"
        assert len(body) == MEGABYTE
        headers = {"Content-Type": "application/json"}
        answer = await running.anonymous.post("/v1/echo/body", data=body, headers=headers)
        assert answer.status == 200


async def _pieces(size: int):  # type: ignore[no-untyped-def]
    for _ in range(0, size, 65536):
        yield b" " * 65536


class TestHead:
    @pytest.mark.parametrize(
        "lines",
        [
            ["X-Long: " + "a" * 20_000],
            [f"X-Header-{number}: a" for number in range(300)],
            ["Authorization: Bearer " + "a" * 20_000],
        ],
    )
    async def test_too_large(self, start_platform: Start, lines: list[str]) -> None:
        """A head with too long or too many fields is 431, and nothing of it is repeated."""
        running = await start_platform(EchoPlugin)
        async with raw_client(running.url) as client:
            await client.send(head("GET", "/v1/echo/open", *lines))
            answer = await client.answer()
        assert (answer.status, json.loads(answer.body)["code"]) == (431, "headers_too_large")
        assert b"aaaa" not in answer.body

    async def test_a_long_address(self, start_platform: Start) -> None:
        running = await start_platform(EchoPlugin)
        async with raw_client(running.url) as client:
            await client.send(head("GET", "/" + "a" * 40_000))
            assert (await client.answer()).status in (400, 414, 431)

    @pytest.mark.parametrize(
        "data",
        [
            b"nonsense\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nbroken line\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nX-A: a\x00b\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        ],
    )
    async def test_what_is_no_request(self, start_platform: Start, data: bytes) -> None:
        """What can't be parsed as HTTP is a JSON 400 and the end of the connection."""
        running = await start_platform(EchoPlugin)
        async with raw_client(running.url) as client:
            await client.send(data)
            answer = await client.answer()
            assert await client.closed()
        assert (answer.status, json.loads(answer.body)["code"]) == (400, "bad_request")
        assert answer.headers["x-content-type-options"] == "nosniff"


class TestSlowClients:
    async def test_no_head(self, start_platform: Start) -> None:
        """A connection that sends no request is closed after the patience for heads."""
        running = await start_platform(EchoPlugin, env={"PLATFORM_HEADER_TIMEOUT": "0.3"})
        async with raw_client(running.url) as client:
            started = time.monotonic()
            assert await client.closed(5)
        assert time.monotonic() - started >= 0.25

    async def test_a_dripping_head(self, start_platform: Start) -> None:
        """Sending the head drop by drop does not extend the patience."""
        running = await start_platform(EchoPlugin, env={"PLATFORM_HEADER_TIMEOUT": "0.5"})
        async with raw_client(running.url) as client:
            dripping = asyncio.create_task(
                _drip(client, head("GET", "/v1/echo/open", "X-Long: " + "a" * 500))
            )
            assert await client.closed(5)
            dripping.cancel()
            await asyncio.gather(dripping, return_exceptions=True)

    async def test_a_dripping_second_head(self, start_platform: Start) -> None:
        """The same holds for the second request of a connection."""
        running = await start_platform(EchoPlugin, env={"PLATFORM_HEADER_TIMEOUT": "0.5"})
        async with raw_client(running.url) as client:
            await client.send(head("GET", "/v1/echo/open"))
            assert (await client.answer()).status == 200
            dripping = asyncio.create_task(
                _drip(client, head("GET", "/v1/echo/open", "X-Long: " + "a" * 500))
            )
            assert await client.closed(5)
            dripping.cancel()
            await asyncio.gather(dripping, return_exceptions=True)

    async def test_a_second_head_begun_while_the_first_is_served(self, start_platform: Start) -> None:
        """Half a request sent ahead, while another one is served, may not be finished drop by drop."""
        echo = EchoPlugin()
        running = await start_platform(echo, env={"PLATFORM_HEADER_TIMEOUT": "0.5"})
        async with raw_client(running.url) as client:
            await client.send(head("GET", "/v1/echo/wait") + b"GET /v1/echo/open HT")
            await echo.entered.wait()
            echo.go_on.set()
            assert (await client.answer()).status == 200
            await client.send(b"TP/1.")
            assert await client.closed(5)

    async def test_an_idle_connection_is_kept(self, start_platform: Start) -> None:
        """A connection that waits between requests is not taken for a slow one."""
        running = await start_platform(EchoPlugin, env={"PLATFORM_HEADER_TIMEOUT": "0.2"})
        async with raw_client(running.url) as client:
            for _ in range(3):
                await client.send(head("GET", "/v1/echo/open"))
                assert (await client.answer()).status == 200
                with pytest.raises(TimeoutError):
                    await client.closed(0.4)

    async def test_a_silent_body(self, start_platform: Start) -> None:
        """A body that stops coming is 408, and the connection ends."""
        running = await start_platform(EchoPlugin, env={"PLATFORM_BODY_TIMEOUT": "0.3"})
        async with raw_client(running.url) as client:
            await client.send(head("POST", "/v1/echo/body", "Content-Length: 100") + b'{"name"')
            answer = await client.answer()
            assert (answer.status, json.loads(answer.body)["code"]) == (408, "request_timeout")

    async def test_a_body_that_trickles(self, start_platform: Start) -> None:
        """A body that keeps coming, but too slowly, is 408, too."""
        running = await start_platform(EchoPlugin, env={"PLATFORM_BODY_TIMEOUT": "0.3"})
        async with raw_client(running.url) as client:
            await client.send(head("POST", "/v1/echo/body", "Content-Length: 5000") + b'{"name"')
            dripping = asyncio.create_task(_drip(client, b" " * 4000))
            assert (await client.answer()).status == 408
            dripping.cancel()

    async def test_a_body_over_a_slow_line(self, start_platform: Start) -> None:
        """Received data counts: in total, a slow body may take longer than one pause may."""
        running = await start_platform(EchoPlugin, env={"PLATFORM_BODY_TIMEOUT": "0.3"})
        body = b'{"name": "slow"' + b" " * 1000
        async with raw_client(running.url) as client:
            await client.send(head("POST", "/v1/echo/body", f"Content-Length: {len(body) + 26}") + body)
            await _drip(client, b" " * 25 + b"}")
            assert (await client.answer()).status == 200

    async def test_a_slow_handler_is_not_a_slow_client(self, start_platform: Start) -> None:
        """Patience is for the client: a handler may take longer than it."""
        echo = EchoPlugin()
        running = await start_platform(echo, env={"PLATFORM_HEADER_TIMEOUT": "0.2"})
        call = asyncio.create_task(running.anonymous.get("/v1/echo/wait"))
        await echo.entered.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(call), 0.5)
        echo.go_on.set()
        assert (await call).status == 200


class FloodPlugin(Plugin):
    """Answers without an end, as an event stream does."""

    name = "flood"

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Flood")

        @table.get("/v1/flood", access=PUBLIC)
        async def flood(ctx: Context) -> web.StreamResponse:
            """Write until nobody listens."""
            response = web.StreamResponse()
            await response.prepare(ctx.request)
            try:
                while True:
                    await response.write(bytes(64 * 1024))
            finally:
                self.ended.set()

        return [table]


class TestClientsThatDoNotRead:
    async def test_one_that_reads_nothing(self, start_platform: Start) -> None:
        """An answer that nobody takes is given up: its connection and its handler end."""
        flood = FloodPlugin()
        running = await start_platform(flood, env={"PLATFORM_SEND_TIMEOUT": "1"})
        parts = urlsplit(running.url)
        with socket.create_connection((parts.hostname, parts.port)) as deaf:
            deaf.sendall(head("GET", "/v1/flood"))
            await asyncio.wait_for(flood.ended.wait(), 15)

    async def test_one_that_reads_slowly(self, start_platform: Start) -> None:
        """Whoever takes a little now and then may go on."""
        flood = FloodPlugin()
        running = await start_platform(flood, env={"PLATFORM_SEND_TIMEOUT": "1"})
        async with raw_client(running.url) as client:
            await client.send(head("GET", "/v1/flood"))
            for _ in range(30):
                assert await client.reader.read(256 * 1024)
                await asyncio.sleep(0.1)
        assert not flood.ended.is_set()


async def _drip(client: RawClient, data: bytes) -> None:
    for start in range(len(data)):
        await client.send(data[start : start + 1])
        await asyncio.sleep(0.02)


class TestShutdown:
    async def test_a_request_in_flight_finishes(self, start_platform: Start) -> None:
        """A stopping server takes no new connection but answers what it has begun."""
        echo = EchoPlugin()
        running = await start_platform(echo)
        listener, url = await _listen(running, grace=10)
        async with aiohttp.ClientSession() as session:
            call = asyncio.create_task(session.get(url + "/v1/echo/wait"))
            await echo.entered.wait()
            stopping = asyncio.create_task(listener.stop())
            await _until_refused(url)
            echo.go_on.set()
            answer = await call
            assert (answer.status, await answer.json()) == (200, "done")
            await asyncio.wait_for(stopping, 5)

    async def test_the_grace_is_not_endless(self, start_platform: Start) -> None:
        """A request that does not finish within the grace is cancelled."""
        echo = EchoPlugin()
        running = await start_platform(echo)
        listener, url = await _listen(running, grace=0.3)
        async with aiohttp.ClientSession() as session:
            call = asyncio.create_task(session.get(url + "/v1/echo/wait"))
            await echo.entered.wait()
            await asyncio.wait_for(listener.stop(), 5)
            assert echo.cancelled.is_set()
            with pytest.raises(aiohttp.ClientError):
                await call

    async def test_idle_connections_do_not_hold_it_up(self, start_platform: Start) -> None:
        """Connections that wait for a next request are closed at once."""
        running = await start_platform(EchoPlugin)
        listener, url = await _listen(running, grace=10)
        async with raw_client(url) as client:
            await client.send(head("GET", "/v1/echo/open"))
            await client.answer()
            started = time.monotonic()
            await listener.stop()
            assert await client.closed()
        assert time.monotonic() - started < 2


class _Odd(socket.socket):
    """A listening socket at whose end the connections never end, or the process has no file handles left."""

    taken = 0
    endless = False

    def accept(self) -> tuple[socket.socket, object]:
        type(self).taken += 1
        if not self.endless:
            raise OSError(errno.EMFILE, "Too many open files")
        ours, theirs = socket.socketpair()
        theirs.close()
        ours.setblocking(False)
        return ours, None


@pytest.mark.parametrize("endless", [True, False])
async def test_a_stop_waits_for_no_end_of_newcomers(start_platform: Start, endless: bool) -> None:
    """However many there are, and if none can be taken: it ends, and once more does nothing."""

    class Odd(_Odd):
        pass

    Odd.endless = endless
    running = await start_platform(EchoPlugin)
    listener = Listener(gateway_app(running.platform), patience=5, grace=1)
    bound = Odd()
    bound.bind(("127.0.0.1", 0))
    bound.setblocking(False)
    await listener.start(bound)
    async with asyncio.timeout(30):
        await listener.stop()
        taken = Odd.taken
        await listener.stop()
    assert 1 <= taken <= 1024
    assert Odd.taken == taken
    assert bound.fileno() == -1


async def _listen(running: Running, grace: float) -> tuple[Listener, str]:
    listener = Listener(gateway_app(running.platform), patience=5, grace=grace)
    await listener.start(bind("127.0.0.1", 0))
    return listener, f"http://127.0.0.1:{listener.port}"


async def _until_refused(url: str) -> None:
    async with asyncio.timeout(5):
        while True:
            try:
                async with raw_client(url):
                    await asyncio.sleep(0.01)
            except OSError:
                return


class TestClientLeaves:
    async def test_the_handler_is_cancelled(self, start_platform: Start) -> None:
        """Work for a client that left is not finished for nobody."""
        echo = EchoPlugin()
        running = await start_platform(echo)
        async with raw_client(running.url) as client:
            await client.send(head("GET", "/v1/echo/wait"))
            await echo.entered.wait()
        await asyncio.wait_for(echo.cancelled.wait(), 5)
        assert (await running.anonymous.get("/v1/echo/open")).status == 200
