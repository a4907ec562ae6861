"""What the gateway does with a service on another machine that is away, slow, broken or nosy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest

from builtin_plugins.accounts.api import ADMINISTRATION
from builtin_plugins.remote_services.proxy import Proxy
from kernel.sdk.accounts import operator_of, revoke_sessions
from kernel.sdk.http import REMOTE_SERVICES
from kernel.testing import Running, Start
from tests.fakes.network import raw_client
from tests.fakes.processes import free_port
from tests.fakes.speech import SpeechPlugin

Behave = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def odd_service(behave: Behave, port: int = 0) -> AsyncIterator[str]:
    """A server that does with each connection what the test says."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await behave(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    tasks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", port)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def saying(*pieces: bytes) -> Behave:
    """Read a request's head, then write these bytes and end the connection."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return behave


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    await asyncio.Event().wait()


async def gateway_to(start_platform: Start, url: str, name: str = "tts-stt", timeout: float = 5) -> Running:
    running = await start_platform("remote_services", env={"PLATFORM_SERVICE_URLS": f"{name}={url}"})
    proxy_of(running).timeout = proxy_of(running).long_timeout = timeout
    return running


def proxy_of(running: Running) -> Proxy:
    """The proxy, with time limits that a test may change."""
    proxy = running.platform.resource(REMOTE_SERVICES)
    assert isinstance(proxy, Proxy)
    return proxy


class TestFaults:
    async def test_refused(self, start_platform: Start) -> None:
        """A service that does not listen is 503, and named unreachable."""
        running = await gateway_to(start_platform, f"http://127.0.0.1:{free_port()}")
        answer = await running.anonymous.get("/v1/tts")
        assert (answer.status, answer.json()["code"]) == (503, "unavailable")
        assert "tts-stt is unreachable" in answer.detail

    async def test_what_openai_clients_are_told(self, start_platform: Start) -> None:
        """The gateway's own errors below `/v1/ai` have the message where OpenAI's clients look for it."""
        running = await gateway_to(start_platform, f"http://127.0.0.1:{free_port()}", "orchestrator")
        for method, status in (("POST", 503), ("PUT", 405)):
            answer = await running.anonymous.request(method, "/v1/ai/chat/completions")
            assert (answer.status, answer.json()["error"]["message"]) == (status, answer.detail)

    async def test_unknown_host(self, start_platform: Start) -> None:
        running = await gateway_to(start_platform, "http://nowhere.invalid:8006")
        answer = await running.anonymous.get("/v1/tts")
        assert (answer.status, "unreachable" in answer.detail) == (503, True)

    async def test_silence(self, start_platform: Start) -> None:
        """A service that does not answer in time is 504."""
        async with odd_service(silence) as url:
            running = await gateway_to(start_platform, url, timeout=0.3)
            answer = await running.anonymous.get("/v1/tts")
        assert (answer.status, answer.json()["code"]) == (504, "gateway_timeout")
        assert "0.3 s" in answer.detail

    @pytest.mark.parametrize(
        "said",
        [
            b"",
            b"nonsense\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Le",
            b"HTTP/1.1 999999 No\r\n\r\n",
            b"\x00" * 100,
        ],
    )
    async def test_nonsense(self, start_platform: Start, said: bytes) -> None:
        """An invalid answer is 502, without any of its content."""
        async with odd_service(saying(said)) as url:
            running = await gateway_to(start_platform, url)
            answer = await running.anonymous.get("/v1/tts")
        assert (answer.status, answer.json()["code"]) == (502, "bad_gateway")
        assert "nonsense" not in answer.detail

    @pytest.mark.parametrize(
        "said",
        [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf",),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", b"nonsense\r\n"),
        ],
    )
    async def test_half_an_answer(self, start_platform: Start, said: tuple[bytes, ...]) -> None:
        """An answer that breaks off does not look like one that ended."""
        async with odd_service(saying(*said)) as url:
            running = await gateway_to(start_platform, url)
            try:
                seen = (await running.anonymous.get("/v1/tts")).status
            except aiohttp.ClientPayloadError:
                seen = 0
            assert seen in (0, 502)
            assert (await running.anonymous.get("/v1/auth/capabilities")).status == 200

    async def test_an_early_refusal(self, start_platform: Start) -> None:
        """A service that refuses while the body is still coming is heard."""
        refusal = b"HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        async with odd_service(saying(refusal)) as url:
            running = await gateway_to(start_platform, url)
            ana = await running.user()
            answer = await ana.post("/v1/tts", data=b"x" * 100_000)
        assert answer.status in (409, 502)

    async def test_it_comes_back(self, start_platform: Start) -> None:
        port = free_port()
        running = await gateway_to(start_platform, f"http://127.0.0.1:{port}")
        assert (await running.anonymous.get("/v1/tts")).status == 503
        async with odd_service(saying(OK), port):
            assert (await running.anonymous.get("/v1/tts")).body == b"ok"


class TestTimeLimits:
    def test_which_services_may_take_long(self) -> None:
        """30 s, and 300 s for the services of spec section 8."""
        from builtin_plugins.remote_services.proxy import CONNECT_TIMEOUT, LONG_TIMEOUT, TIMEOUT
        from kernel.gateway.services import installed_services

        assert (CONNECT_TIMEOUT, TIMEOUT, LONG_TIMEOUT) == (10, 30, 300)
        long = {service.name for service in installed_services().values() if service.long}
        assert long == {"rag-pipeline", "model-management", "tts-stt", "graph-rag", "orchestrator"}

    async def test_each_gets_its_own(self, start_platform: Start) -> None:
        """A quick service is given up sooner than one that may take long."""
        async with odd_service(silence) as url:
            running = await gateway_to(start_platform, url, name="marketplace")
            proxy_of(running).timeout, proxy_of(running).long_timeout = 0.2, 60
            assert (await running.anonymous.get("/v1/marketplace/plugins")).status == 504

    async def test_a_stream_that_goes_on(self, start_platform: Start) -> None:
        """The limit is for silence: a stream that keeps coming may last longer."""

        async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(8):
                await asyncio.sleep(0.1)
                writer.write(b"1\r\na\r\n")
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()

        async with odd_service(drip) as url:
            running = await gateway_to(start_platform, url, timeout=0.5)
            assert (await running.anonymous.get("/v1/tts")).body == b"a" * 8


class TestHeaders:
    async def test_hop_by_hop(self, start_platform: Start) -> None:
        """Headers of one connection stay on it, also those that `Connection` names."""
        seen: list[bytes] = []

        async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(
                b"HTTP/1.1 200 OK\r\nConnection: x-private, keep-alive\r\nX-Private: a\r\n"
                b"Keep-Alive: timeout=5\r\n"
                b"Proxy-Authenticate: Basic\r\nTrailer: X-T\r\nX-Public: b\r\nServer: secret/1.0\r\n"
                b"X-Request-ID: forged\r\nContent-Length: 2\r\n\r\nok"
            )
            await writer.drain()

        async with odd_service(behave) as url:
            running = await gateway_to(start_platform, url)
            async with raw_client(running.url) as client:
                await client.send(
                    b"GET /v1/tts HTTP/1.1\r\nHost: public.example\r\n"
                    b"Connection: close, X-Drop\r\nX-Drop: 1\r\n"
                    b"TE: trailers\r\nProxy-Authorization: Basic x\r\nUpgrade: h2c\r\nX-Keep: 1\r\n"
                    b"X-Forwarded-For: 1.2.3.4\r\nX-Service-Token: t\r\nX-Request-ID: mine\r\n\r\n"
                )
                answer = await client.answer()
        sent = seen[0].decode().lower()
        for name in (
            "x-drop",
            "te:",
            "proxy-authorization",
            "upgrade",
            "x-service-token",
            "public.example",
            "1.2.3.4",
        ):
            assert name not in sent
        assert "x-keep: 1" in sent and "x-request-id: mine" in sent and "x-forwarded-for: 127.0.0.1" in sent
        assert answer.headers["x-public"] == "b"
        assert (answer.headers["x-request-id"], answer.headers["server"]) == ("mine", "Platform")
        assert not {"x-private", "keep-alive", "proxy-authenticate", "trailer"} & set(answer.headers)

    async def test_redirects_and_cookies(self, start_platform: Start) -> None:
        """Redirects are the client's to follow, and cookies are not kept at the gateway."""
        redirect = (
            b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n"
            b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n"
        )
        seen: list[bytes] = []

        async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for _ in range(2):
                seen.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(redirect)
                await writer.drain()

        async with odd_service(behave) as url:
            running = await gateway_to(start_platform, url)
            for _ in range(2):
                answer = await running.anonymous.get("/v1/tts", allow_redirects=False)
                assert (answer.status, answer.headers["Location"]) == (302, "/elsewhere")
                assert answer.headers.getall("Set-Cookie") == ["a=1", "b=2"]  # type: ignore[attr-defined]
        assert b"cookie" not in b"".join(seen).lower()


class TestNotForwarded:
    @pytest.mark.parametrize(
        ("method", "headers", "status"),
        [
            ("POST", [], 401),
            ("GET", [("Authorization", "Bearer nonsense")], 401),
            ("GET", [("Authorization", "Basic dTpw")], 401),
            ("GET", [("Authorization", "Bearer a"), ("Authorization", "Bearer b")], 400),
            ("DELETE", [], 405),
        ],
    )
    async def test_what_is_refused_here(
        self, start_platform: Start, method: str, headers: list[tuple[str, str]], status: int
    ) -> None:
        """Nothing of a request that the gateway refuses reaches the service."""
        connections = 0

        async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1

        async with odd_service(behave) as url:
            running = await gateway_to(start_platform, url)
            async with running.session.request(method, running.url + "/v1/tts", headers=headers) as answer:
                assert answer.status in (status, 401)
        assert connections == 0

    @pytest.mark.parametrize("how", ["revoked", "deactivated"])
    async def test_a_session_that_is_over(self, start_platform: Start, how: str) -> None:
        """A well-made token of an ended session is refused here, for reads and writes."""
        connections = 0

        async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1

        async with odd_service(behave) as url:
            running = await gateway_to(start_platform, url)
            ana = await running.user()
            if how == "revoked":
                await running.platform.database.write(lambda unit: revoke_sessions(unit, ana.user["id"]))
            else:
                await running.platform.resource(ADMINISTRATION).set_active(
                    operator_of(running.platform), ana.user["id"], False
                )
            assert [(await ana.get("/v1/tts")).status, (await ana.post("/v1/tts")).status] == [401, 401]
        assert connections == 0

    async def test_a_body_past_the_cap(self, start_platform: Start) -> None:
        """A declared body past the cap is 413 before the service is troubled."""
        async with odd_service(silence) as url:
            env = {"PLATFORM_SERVICE_URLS": f"tts-stt={url}", "MAX_PROXY_BODY_SIZE_MB": "1"}
            running = await start_platform("remote_services", env=env)
            ana = await running.user()
            async with raw_client(running.url) as client:
                head = f"POST /v1/tts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ana.token}\r\n"
                await client.send(head.encode() + b"Content-Length: 1048577\r\n\r\n")
                answer = await client.answer()
        assert (answer.status, json.loads(answer.body)["code"]) == (413, "payload_too_large")


class TestMounts:
    async def test_services_that_nobody_offers(self, start_platform: Start) -> None:
        """A prefix whose service is not there answers 503 to reads and 401 to strangers' writes."""
        running = await start_platform()
        for path in ("/v1/plugins", "/v1/rag/knowledge-bases", "/v1/models", "/v1/ai/models", "/v1/graph/x"):
            answer = await running.anonymous.get(path)
            assert (answer.status, "unreachable" in answer.detail) == (503, True), path
        assert (await running.anonymous.post("/v1/rag/knowledge-bases")).status == 401
        assert (await running.anonymous.post("/v1/ai/chat/completions")).status == 503

    async def test_alone_at_its_root(self, start_platform: Start) -> None:
        """A service alone serves its own root, health, metrics and documents; its writes need a token."""
        alone = await start_platform("api_docs", SpeechPlugin(), only="tts-stt")
        assert (await alone.anonymous.get("/tts/voices/a")).json() == "a"
        assert (await alone.anonymous.get("/v1/tts")).status == 404
        health = (await alone.anonymous.get("/health")).json()
        assert (health["service"], health["tts_available"], health["stt_available"]) == (
            "tts-stt",
            True,
            False,
        )
        assert "/tts" in (await alone.anonymous.get("/openapi.json")).json()["paths"]
        for path in ("/docs", "/redoc", "/metrics"):
            assert (await alone.anonymous.get(path)).status == 200
        assert (await alone.anonymous.post("/tts", json={"text": "a"})).status == 401
        assert (await alone.anonymous.get("/tts", headers={"Authorization": "Bearer x"})).status == 401
