"""Calls to other servers: where they may go, what they may cost, and what is told of them."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.test_utils import TestServer
from yarl import URL

from kernel.libs.outgoing.client import Outgoing
from kernel.libs.outgoing.destinations import CheckedResolver, Destinations, is_public
from kernel.observe.metrics import Metrics
from kernel.observe.tracing import Tracing
from kernel.sdk import OUTGOING, CallLimits, OutgoingClient, StartupError
from kernel.sdk.outgoing import (
    AnswerBroken,
    AnswerTooLarge,
    CallFailed,
    CallTimedOut,
    DestinationRefused,
    OutgoingCall,
)
from kernel.testing import Start

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LIMITS = CallLimits(total_seconds=5, connect_seconds=1, body_bytes=100_000)


@asynccontextmanager
async def server(*handlers: Handler) -> AsyncIterator[str]:
    """A server on this machine, each handler at its name; returns its address."""
    app = web.Application()
    for handler in handlers:
        app.router.add_route("*", f"/{handler.__name__}", handler)
    running = TestServer(app, host="127.0.0.1")
    await running.start_server()
    try:
        yield str(running.make_url("")).rstrip("/")
    finally:
        await running.close()


@asynccontextmanager
async def client(*named: str, **options: object) -> AsyncIterator[OutgoingClient]:
    async with Outgoing([], Metrics(), Tracing()).client(
        "test", named=named, limits=LIMITS, **options
    ) as opened:  # type: ignore[arg-type]
        yield opened


async def hello(request: web.Request) -> web.Response:
    """Tell what arrived."""
    seen = {name.lower(): value for name, value in request.headers.items()}
    return web.json_response({"method": request.method, "headers": seen, "body": await request.text()})


async def gone(_request: web.Request) -> web.Response:
    """An error of the server."""
    return web.Response(status=503, text="later")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.100.100.200",
        "192.0.0.8",
        "192.0.0.192",
        "168.63.129.16",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fec0::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:192.0.0.192",
        "64:ff9b::a00:1",
        "2002:7f00:1::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    """Private, loopback, link-local, metadata, multicast and unassigned ones, however IPv6 wraps them."""
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "64:ff9b::808:808"])
def test_public_addresses(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://[::1]:8000/",
        "http://[::ffff:7f00:1]/",
        "http://169.254.169.254/latest/meta-data/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http:///path",
        "gopher://127.0.0.1/",
        "http://xn--a.example/",
    ],
)
async def test_addresses_that_are_refused(url: str) -> None:
    """Nothing is sent to a private address, nor by another protocol."""
    async with client() as caller:
        with pytest.raises(DestinationRefused):
            await caller.call("GET", url)


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f.1", "127.1", "0177.0.0.1"])
async def test_names_of_this_machine(host: str) -> None:
    """Whatever spells the loopback address reaches nothing, though a server listens."""
    async with server(hello) as base, client() as caller:
        port = URL(base).port
        with pytest.raises((DestinationRefused, AnswerBroken, CallFailed)):
            await caller.call("GET", f"http://{host}:{port}/hello")


async def test_what_the_operator_named() -> None:
    """The named address works as before; another port of its host does not."""
    async with server(hello) as base, server(hello) as other, client(base) as caller:
        async with await caller.call("GET", base + "/hello") as reply:
            assert reply.status == 200
        with pytest.raises(DestinationRefused, match="PLATFORM_OUTGOING_ALLOWED"):
            await caller.call("GET", other + "/hello")


@pytest.mark.parametrize("allowed", ["127.0.0.0/8", "127.0.0.1", "localhost", "*.internal"])
async def test_what_the_operator_allows_for_all(allowed: str) -> None:
    places = Destinations(allowed=[allowed])
    host = {"localhost": "localhost", "*.internal": "wiki.internal"}.get(allowed, "127.0.0.1")
    assert places.permits(host, 80, ipaddress.ip_address("127.0.0.1"))
    assert not places.permits("example.org", 80, ipaddress.ip_address("10.0.0.1"))


async def test_the_list_of_hosts() -> None:
    places = Destinations(hosts=["api.example.org", "*.example.com"])
    places.check(URL("https://API.example.org./x"))
    places.check(URL("https://a.b.example.com/"))
    for url in (
        "https://example.org/",
        "https://example.com/",
        "https://evilexample.com/",
        "https://8.8.8.8/",
    ):
        with pytest.raises(DestinationRefused):
            places.check(URL(url))


def test_a_wrong_entry_is_named() -> None:
    with pytest.raises(ValueError, match=r"300\.0\.0\.0/8"):
        Outgoing(["10.0.0.0/8", "300.0.0.0/8"], Metrics(), Tracing())


async def test_a_wrong_setting_stops_the_start(start_platform: Start) -> None:
    with pytest.raises(StartupError, match=r"PLATFORM_OUTGOING_ALLOWED .*10\.0\.0\.0/99"):
        await start_platform(env={"PLATFORM_OUTGOING_ALLOWED": "10.0.0.0/99"})


async def test_the_setting_opens_a_network(start_platform: Start) -> None:
    """What the operator allows can be called by every plugin."""
    running = await start_platform(env={"PLATFORM_OUTGOING_ALLOWED": "127.0.0.0/8"})
    async with (
        running.platform.resource(OUTGOING).client("test") as caller,
        server(hello) as base,
        await caller.call("GET", base + "/hello") as reply,
    ):
        assert reply.status == 200
    metrics = (await running.anonymous.get("/metrics")).body.decode()
    assert 'outgoing_call_duration_seconds_count{client="test",outcome="2xx"} 1' in metrics


class Names(AbstractResolver):
    """A DNS server that changes its mind from answer to answer."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            {"hostname": host, "host": found, "port": port, "family": family, "proto": 0, "flags": 0}
            for found in self.answers.pop(0)
        ]

    async def close(self) -> None:
        """Nothing is open."""


async def test_names_that_change_their_mind() -> None:
    """The addresses that are checked are those that are connected to; private ones are left out."""
    names = Names(["93.184.216.34", "10.0.0.1"], ["127.0.0.1"])
    resolver = CheckedResolver(Destinations(), names)
    assert [found["host"] for found in await resolver.resolve("rebind.example", 80)] == ["93.184.216.34"]
    with pytest.raises(DestinationRefused, match=r"rebind\.example"):
        await resolver.resolve("rebind.example", 80)


async def test_redirects_are_not_followed_unasked() -> None:
    async def away(_request: web.Request) -> web.Response:
        raise web.HTTPFound("/hello")

    async with (
        server(hello, away) as base,
        client(base) as caller,
        await caller.call("GET", base + "/away") as reply,
    ):
        assert reply.status == 302


async def test_each_hop_is_checked() -> None:
    """A server that is allowed can't send the call where it may not go."""
    async with server(hello) as inside:

        async def away(_request: web.Request) -> web.Response:
            raise web.HTTPFound(inside + "/hello")

        limits = CallLimits(redirects=3)
        async with server(away) as base, client(base) as caller:
            with pytest.raises(DestinationRefused):
                await caller.call("GET", base + "/away", limits=limits)
        async with (
            server(away) as base,
            client(base, inside) as caller,
            await caller.call("GET", base + "/away", limits=limits) as reply,
        ):
            assert (reply.status, reply.url) == (200, inside + "/hello")


async def test_secrets_stay_with_their_origin() -> None:
    """Another host gets no credentials, and no body of a POST that became a GET."""
    async with server(hello) as other:

        async def away(_request: web.Request) -> web.Response:
            raise web.HTTPSeeOther(other + "/hello")

        async with server(away) as base, client(base, other) as caller:
            headers = {"Authorization": "Bearer secret", "Cookie": "a=secret", "X-Kept": "yes"}
            limits = CallLimits(redirects=1)
            async with await caller.call(
                "POST", base + "/away", headers=headers, json={"a": 1}, limits=limits
            ) as reply:
                seen = (await reply.read()).decode()
    assert "secret" not in seen and '"x-kept": "yes"' in seen and '"method": "GET"' in seen


async def test_an_endless_circle_ends() -> None:
    """After the last redirect that is allowed, the answer is the redirect."""
    count = 0

    async def around(_request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        raise web.HTTPFound("/around")

    async with (
        server(around) as base,
        client(base) as caller,
        await caller.call("GET", base + "/around", limits=CallLimits(redirects=4)) as reply,
    ):
        assert reply.status == 302
    assert count == 5


async def test_large_answers() -> None:
    """One byte past the limit ends the call, with or without a stated length."""

    async def large(_request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 100_001)

    async with (
        server(large) as base,
        client(base) as caller,
        await caller.call("GET", base + "/large") as reply,
    ):
        with pytest.raises(AnswerTooLarge):
            await reply.read()


async def test_decompression_bombs() -> None:
    """A small answer that unpacks to a large one is counted as unpacked."""
    bomb = gzip.compress(b"\0" * 50_000_000)

    async def bombs(_request: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    assert len(bomb) < LIMITS.body_bytes
    async with (
        server(bombs) as base,
        client(base) as caller,
        await caller.call("GET", base + "/bombs") as reply,
    ):
        with pytest.raises(AnswerTooLarge):
            await reply.read()


async def test_pieces_arrive_as_they_are_sent() -> None:
    """The first piece of a stream is there while the server waits for us."""
    go = asyncio.Event()

    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"data: one\n\n")
        await go.wait()
        await answer.write(b"data: two\n\n")
        return answer

    async with (
        server(stream) as base,
        client(base) as caller,
        await caller.call("GET", base + "/stream") as reply,
    ):
        pieces = reply.pieces()
        assert await anext(pieces) == b"data: one\n\n"
        go.set()
        assert await anext(pieces) == b"data: two\n\n"


async def test_silence() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"one")
        await asyncio.sleep(60)
        return answer

    limits = CallLimits(total_seconds=10, silence_seconds=0.2)
    async with (
        server(stream) as base,
        client(base) as caller,
        await caller.call("GET", base + "/stream", limits=limits) as reply,
    ):
        with pytest.raises(CallTimedOut):
            await reply.read()


async def test_time_in_all() -> None:
    async def never(_request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async with server(never) as base, client(base) as caller:
        with pytest.raises(CallTimedOut) as caught:
            await caller.call("GET", base + "/never", limits=CallLimits(total_seconds=0.2))
    assert not caught.value.connecting


async def test_nobody_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{probe.getsockname()[1]}"
        async with client(base) as caller:
            with pytest.raises(CallFailed) as caught:
                await caller.call("GET", base + "/")
    assert not isinstance(caught.value, CallTimedOut)


async def test_leaving_early_closes_the_connection() -> None:
    left = asyncio.Event()

    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while True:
                await answer.write(b"x" * 1000)
                await asyncio.sleep(0.01)
        finally:
            left.set()

    async with server(stream) as base, client(base) as caller:
        async with await caller.call("GET", base + "/stream") as reply:
            await anext(reply.pieces())
        async with asyncio.timeout(10):
            await left.wait()


async def test_what_is_told_of_a_call(caplog: pytest.LogCaptureFixture) -> None:
    """Host, outcome and time; never a path, a query, a header or a body."""
    told: list[OutgoingCall] = []
    secrets = {"headers": {"Authorization": "Bearer hidden"}, "body": "hidden"}
    with caplog.at_level(logging.DEBUG):
        async with server(hello, gone) as base, client(base, trace=told.append) as caller:
            for path in ("hello", "gone"):
                async with await caller.call("POST", f"{base}/{path}?key=hidden", **secrets) as reply:  # type: ignore[arg-type]
                    await reply.read()
            with pytest.raises(DestinationRefused) as caught:
                await caller.call("GET", "http://user:hidden@10.0.0.1/hidden?key=hidden")
    assert [(call.client, call.host, call.status, call.error) for call in told] == [
        ("test", "127.0.0.1", 200, None),
        ("test", "127.0.0.1", 503, None),
        ("test", "10.0.0.1", None, "DestinationRefused"),
    ]
    ours = [record.getMessage() for record in caplog.records if record.name == "platform.outgoing"]
    assert len(ours) == 3 and "hidden" not in f"{told} {caught.value} {ours}"


async def test_what_is_sent() -> None:
    """Our name, no cookies, and nothing that the environment says about proxies."""
    async with (
        server(hello) as base,
        client(base) as caller,
        await caller.call("PUT", base + "/hello", body="words") as reply,
    ):
        seen = (await reply.read()).decode()
    assert '"method": "PUT"' in seen and '"body": "words"' in seen and '"user-agent": "Platform/' in seen
    assert "cookie" not in seen


async def test_the_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with (
        server(hello) as base,
        client(base) as caller,
        await caller.call("GET", base + "/hello") as reply,
    ):
        assert reply.status == 200


@pytest.mark.parametrize(
    ("host", "address", "permitted"),
    [
        ("10.1.2.3", "10.1.2.3", True),
        ("wiki.corp", "192.168.7.7", True),
        ("elsewhere.example", "10.1.9.9", True),
        ("elsewhere.example", "93.184.216.34", False),
        ("wiki.corp", "169.254.169.254", False),
        ("wiki.corp", "::ffff:169.254.169.254", False),
        ("wiki.corp", "fd00:ec2::254", False),
        ("wiki.corp", "192.0.0.192", False),
        ("wiki.corp", "fe80::1", False),
        ("wiki.corp", "0.0.0.0", False),
        ("10.1.2.3", "::ffff:10.1.2.3", True),
    ],
)
def test_a_closed_list_is_all_that_counts(host: str, address: str, permitted: bool) -> None:
    """`within`: neither public addresses nor other lists, and no metadata address whatever it names."""
    destinations = Destinations(
        named=["http://elsewhere.example"], allowed=["0.0.0.0/0"], within=["10.1.0.0/16", "*.corp"]
    )
    assert destinations.permits(host, 80, ipaddress.ip_address(address)) is permitted


def test_an_empty_closed_list_permits_nothing() -> None:
    """Names and addresses alike are refused before DNS is asked."""
    destinations = Destinations(within=[])
    for url in ("http://example.org/", "http://93.184.216.34/", "http://127.0.0.1/"):
        with pytest.raises(DestinationRefused):
            destinations.check(URL(url))
