"""One suite for a service in the gateway's process and for the same service on another machine.

Handlers and clients can't tell the difference (design.md section 1).
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from kernel.testing import Actor, Reply, Running, Start
from tests.fakes.network import raw_client
from tests.fakes.speech import SpeechPlugin

ENV = {
    "JWT_SECRET": "a secret of at least thirty-two bytes, for tests",
    "PLATFORM_MAX_PROXY_BODY_SIZE_MB": "2",
}


@dataclass
class Gateway:
    """The gateway that clients talk to, and the service behind it."""

    running: Running
    service: SpeechPlugin
    forwarded: bool

    @property
    def anonymous(self) -> Actor:
        return self.running.anonymous


@pytest_asyncio.fixture(params=["in process", "forwarded"])
async def gateway(request: pytest.FixtureRequest, start_platform: Start) -> AsyncIterator[Gateway]:
    """A gateway with the service in its own process, then with the service on another port."""
    speech = SpeechPlugin()
    if request.param == "in process":
        yield Gateway(await start_platform(speech, env=ENV), speech, forwarded=False)
        return
    service = await start_platform(speech, only="tts-stt", env={**ENV, "TRUSTED_PROXY_CIDRS": "127.0.0.0/8"})
    running = await start_platform(
        "remote_services", env={**ENV, "PLATFORM_SERVICE_URLS": f"tts-stt={service.url}"}
    )
    yield Gateway(running, speech, forwarded=True)


async def get(gateway: Gateway, raw_path: str, **options: Any) -> Reply:
    url = URL(gateway.running.url + raw_path, encoded=True)
    async with gateway.running.session.get(url, **options) as answer:
        return Reply(answer.status, answer.headers, await answer.read())


class TestRequests:
    async def test_what_arrives(self, gateway: Gateway) -> None:
        """Query with repeated keys, headers, caller and request id reach the handler as they were sent."""
        ana = await gateway.running.user("ana")
        headers = {
            "X-Request-ID": "trace-7",
            "X-Custom": "kept",
            "Accept-Language": "tr",
            "User-Agent": "curl/9",
        }
        answer = await ana.get("/v1/tts?a=1&a=2&b=%20x&c=&%C3%BC=%26", headers=headers)
        assert answer.status == 200
        heard = answer.json()
        assert heard["query"] == [["a", "1"], ["a", "2"], ["b", " x"], ["c", ""], ["ü", "&"]]
        assert (heard["kind"], heard["subject"]) == ("user", str(ana.user["id"]))
        assert (heard["id"], answer.headers["X-Request-ID"]) == ("trace-7", "trace-7")
        assert heard["ip"] == "127.0.0.1"
        for pair in (["x-custom", "kept"], ["accept-language", "tr"], ["user-agent", "curl/9"]):
            assert pair in heard["headers"]

    @pytest.mark.parametrize(
        "path", ["a/b", "a%2Fb", "%C3%BC", "a%20b", "a+b", "a%252Fb", "a;b=c", "..%2f..", "a//b", "%C3%9F"]
    )
    async def test_paths(self, gateway: Gateway, path: str) -> None:
        from urllib.parse import unquote

        answer = await get(gateway, f"/v1/tts/voices/{path}")
        assert (answer.status, answer.json()) == (200, unquote(path))

    async def test_an_oddly_spelt_prefix(self, gateway: Gateway) -> None:
        """A prefix with escaped letters is the prefix, and reaches no other route of the service."""
        answer = await get(gateway, "/v1/t%74s/voices/a%2Fb")
        assert (answer.status, answer.json()) == (200, "a/b")
        assert (await get(gateway, "/v1/tts/../health")).status == 404

    async def test_a_body(self, gateway: Gateway) -> None:
        """A JSON body goes in, a binary one comes out, with the handler's headers."""
        ana = await gateway.running.user("ana")
        answer = await ana.post("/v1/tts", json={"text": "merhaba"})
        assert (answer.status, answer.body) == (200, b"RIFFmerhaba")
        assert answer.headers["Content-Type"] == "audio/wav"
        assert answer.headers["X-Language"] == "tr"

    async def test_a_compressed_body(self, gateway: Gateway) -> None:
        ana = await gateway.running.user("ana")
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        answer = await ana.post("/v1/tts", data=gzip.compress(b'{"text": "merhaba"}'), headers=headers)
        assert (answer.status, answer.body) == (200, b"RIFFmerhaba")

    async def test_bad_bodies(self, gateway: Gateway) -> None:
        ana = await gateway.running.user("ana")
        answer = await ana.post("/v1/tts", json={"text": ""})
        assert (answer.status, answer.detail[0]["loc"]) == (422, ["body", "text"])
        assert (await ana.post("/v1/tts", data=b"x", headers={"Content-Type": "text/plain"})).status == 415

    async def test_a_body_that_streams(self, gateway: Gateway) -> None:
        """A body is handed on while it is still being sent."""
        ana = await gateway.running.user("ana")
        rest = asyncio.Event()

        async def body() -> AsyncIterator[bytes]:
            yield b"first"
            await rest.wait()
            yield b"second"

        call = asyncio.create_task(ana.post("/v1/stt", data=body(), headers={"Content-Type": "audio/wav"}))
        await asyncio.wait_for(gateway.service.entered.wait(), 5)
        assert sum(gateway.service.received) == 5
        rest.set()
        assert (await call).json() == 11

    async def test_a_body_past_the_cap(self, gateway: Gateway) -> None:
        ana = await gateway.running.user("ana")
        headers = {"Content-Type": "application/json"}
        large = b'{"text": "' + b"a" * (3 * 2**20) + b'"}'
        assert (await ana.post("/v1/tts", data=io.BytesIO(large), headers=headers)).status == 413

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(large), 65536):
                yield large[start : start + 65536]

        assert (await ana.post("/v1/tts", data=pieces(), headers=headers)).status == 413

    async def test_expect_continue(self, gateway: Gateway) -> None:
        """A client that asks before it sends its body gets 100 Continue."""
        ana = await gateway.running.user("ana")
        answer = await ana.post("/v1/tts", json={"text": "merhaba"}, expect100=True)
        assert (answer.status, answer.body) == (200, b"RIFFmerhaba")


class TestAnswers:
    async def test_statuses(self, gateway: Gateway) -> None:
        """Statuses, headers and empty bodies come back as they are."""
        ana = await gateway.running.user("ana")
        accepted = await ana.post("/v1/tts/accepted")
        assert (accepted.status, accepted.json(), accepted.headers["X-Duration"]) == (202, "later", "1.5")
        nothing = await ana.post("/v1/tts/nothing")
        assert (nothing.status, nothing.body) == (204, b"")
        busy = await ana.post("/v1/tts", json={"text": "busy"})
        assert (busy.status, busy.json()) == (409, {"detail": "the engine is busy", "code": "engine_busy"})
        assert busy.headers["Retry-After"] == "7"

    async def test_errors(self, gateway: Gateway) -> None:
        """Unknown paths, wrong methods and crashes look the same from outside."""
        assert (await gateway.anonymous.get("/v1/tts/boom")).json()["code"] == "internal_error"
        unknown = await gateway.anonymous.get("/v1/tts/nowhere")
        assert (unknown.status, unknown.json()) == (404, {"detail": "Not found", "code": "not_found"})
        ana = await gateway.running.user("ana")
        assert (await ana.delete("/v1/tts")).status == 405
        assert (await ana.post("/v1/tts/voices/a")).status == 405

    async def test_headers_of_every_answer(self, gateway: Gateway) -> None:
        answer = await gateway.anonymous.get("/v1/tts", headers={"Origin": "https://app.example"})
        for name in ("X-Request-ID", "X-Response-Time", "X-Content-Type-Options", "Server", "Date"):
            assert len(answer.headers.getall(name)) == 1, name  # type: ignore[attr-defined]
        assert answer.headers.getall("Access-Control-Allow-Origin") == ["*"]  # type: ignore[attr-defined]

    async def test_head(self, gateway: Gateway) -> None:
        head = await gateway.anonymous.request("HEAD", "/v1/tts/voices/a")
        assert (head.status, head.body) == (200, b"")
        assert head.headers["Content-Type"] == "application/json"

    async def test_a_large_answer(self, gateway: Gateway) -> None:
        answer = await gateway.anonymous.get("/v1/tts/large")
        assert len(answer.body) == 2**24
        assert answer.body[::65536] == bytes(range(256))

    async def test_a_compressed_answer(self, gateway: Gateway) -> None:
        """A compressed answer can be read by who asked for one, and by who did not."""
        for headers in ({"Accept-Encoding": "gzip"}, {"Accept-Encoding": "identity"}, {}):
            answer = await gateway.anonymous.get("/v1/tts/packed", headers=headers)
            body = gzip.decompress(answer.body) if "Content-Encoding" in answer.headers else answer.body
            assert json.loads(body) == "a" * 5000

    async def test_events_one_by_one(self, gateway: Gateway) -> None:
        url = gateway.running.url + "/v1/tts/events"
        gateway.service.next_event.set()
        async with gateway.running.session.get(url) as answer:
            assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            assert answer.headers["Cache-Control"] == "no-cache"
            assert "Content-Length" not in answer.headers
            assert await _event(answer) == 'event: token\ndata: {"number": 0}'
            for number in (1, 2):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(
                        asyncio.shield(reading := asyncio.ensure_future(_event(answer))), 0.05
                    )
                gateway.service.next_event.set()
                assert await asyncio.wait_for(reading, 5) == f'event: token\ndata: {{"number": {number}}}'
            assert (await _event(answer)).startswith("event: done")
            assert await answer.content.read() == b""


async def _event(answer: aiohttp.ClientResponse) -> str:
    return (await answer.content.readuntil(b"\n\n")).decode().strip()


class TestClientLeaves:
    async def test_while_it_waits(self, gateway: Gateway) -> None:
        async with raw_client(gateway.running.url) as client:
            await client.send(b"GET /v1/tts/wait HTTP/1.1\r\nHost: x\r\n\r\n")
            await asyncio.wait_for(gateway.service.entered.wait(), 5)
        await asyncio.wait_for(gateway.service.cancelled.wait(), 5)

    async def test_while_events_stream(self, gateway: Gateway) -> None:
        """When the client leaves in the middle of a stream, its generator is ended."""
        async with raw_client(gateway.running.url) as client:
            await client.send(b"GET /v1/tts/events HTTP/1.1\r\nHost: x\r\n\r\n")
            gateway.service.next_event.set()
            await client.head()
            await client.reader.readuntil(b"\n\n")
        await asyncio.wait_for(gateway.service.cancelled.wait(), 5)

    async def test_while_it_sends(self, gateway: Gateway) -> None:
        """When the client leaves in mid-body, the service is not left waiting, and goes on serving."""
        ana = await gateway.running.user("ana")
        async with raw_client(gateway.running.url) as client:
            head = f"POST /v1/stt HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ana.token}\r\n"
            await client.send(head.encode() + b"Content-Type: audio/wav\r\nContent-Length: 1000\r\n\r\nfirst")
            await asyncio.wait_for(gateway.service.entered.wait(), 5)
        assert (await gateway.anonymous.get("/v1/tts")).status == 200


class TestAccess:
    @pytest.mark.parametrize("path", ["/v1/tts", "/v1/tts/accepted", "/v1/stt", "/v1/tts/nowhere"])
    async def test_writes_need_a_token(self, gateway: Gateway, path: str) -> None:
        """A write without a token is 401 before anything is looked at, even a body."""
        answer = await gateway.anonymous.post(path, data=b"anything", headers={"Content-Type": "text/plain"})
        assert (answer.status, answer.json()["code"]) == (401, "unauthorized")
        assert gateway.service.received == []

    async def test_the_services_own_rules(self, gateway: Gateway) -> None:
        user, admin = await gateway.running.user(), await gateway.running.user(role="admin")
        actors = [gateway.anonymous, user, admin]
        assert [(await actor.get("/v1/tts/private")).status for actor in actors] == [401, 200, 200]
        assert [(await actor.get("/v1/tts/admin")).status for actor in actors] == [401, 403, 200]

    async def test_bad_bearers(self, gateway: Gateway) -> None:
        """A bad bearer is refused at the gateway, on open reads too, and two headers are 400."""
        headers = {"Authorization": "Bearer nonsense"}
        for method, path in (("GET", "/v1/tts"), ("POST", "/v1/stt"), ("GET", "/v1/tts/nowhere")):
            assert (await gateway.anonymous.request(method, path, headers=headers)).status == 401
        twice = [("Authorization", "Bearer a"), ("Authorization", "Bearer b")]
        async with gateway.running.session.get(gateway.running.url + "/v1/tts", headers=twice) as answer:
            assert answer.status == 400

    async def test_other_methods(self, gateway: Gateway) -> None:
        """Methods that the gateway's table does not list for a prefix are 405."""
        ana = await gateway.running.user("ana")
        for method in ("PUT", "PATCH", "DELETE"):
            assert (await ana.request(method, "/v1/tts/voices/a")).status == 405


class TestStatus:
    async def test_the_services_health_is_shown(self, gateway: Gateway) -> None:
        """`GET /v1/status` has the service's health, wherever it runs."""
        entry = await _entry(gateway)
        assert (entry["reachable"], entry["status"], entry["version"]) == (True, "healthy", "1.2.3")
        assert entry["checks"] == {"database": "healthy", "tts_engine": "healthy"}
        gateway.service.healthy = False
        entry = await _entry(gateway)
        assert (entry["reachable"], entry["status"]) == (True, "unhealthy")
        assert entry["checks"]["tts_engine"] == "unhealthy: the engine is missing"


async def _entry(gateway: Gateway) -> dict[str, Any]:
    services = (await gateway.anonymous.get("/v1/status")).json()["services"]
    return dict(next(item for item in services if item["name"] == "tts-stt"))
