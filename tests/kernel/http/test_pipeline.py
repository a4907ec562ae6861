"""What every request and every answer has: id, clock, headers, CORS, error shape, metrics."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import BaseModel

from builtin_plugins.inference.api import OPENAI_ERRORS
from kernel.http.middlewares import ACCESS_LOG
from kernel.observe.logs import configure
from kernel.sdk import AUTHENTICATED, PUBLIC, Conflict, Context, RouteTable, hookimpl
from kernel.testing import Actor, Running, Start, platforms
from tests.fakes.echo import EchoPlugin

together = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """One platform for all tests that leave it as it was."""
    async with platforms(tmp_path_factory.mktemp("pipeline")) as start:
        yield await start("api_docs", EchoPlugin)


@together
class TestHeaders:
    @pytest.mark.parametrize(
        "path", ["/v1/echo/open", "/v1/nowhere", "/v1/echo/boom", "/v1/echo/private", "/docs"]
    )
    async def test_of_every_answer(self, shared: Running, path: str) -> None:
        """Id, duration and security headers are on successes and on every kind of error."""
        answer = await shared.anonymous.get(path)
        assert uuid.UUID(answer.headers["X-Request-ID"])
        assert re.fullmatch(r"\d+\.\d\dms", answer.headers["X-Response-Time"])
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "default-src" in answer.headers["Content-Security-Policy"]

    async def test_no_version_is_told(self, shared: Running) -> None:
        """The Server header names neither the language nor the library."""
        answer = await shared.anonymous.get("/health")
        assert not re.search(r"(?i)python|aiohttp|\d", answer.headers.get("Server", ""))

    async def test_a_policy_of_the_handler_stays(self, shared: Running) -> None:
        answer = await shared.anonymous.get("/v1/echo/page")
        assert answer.headers["Content-Security-Policy"] == "default-src 'self'"

    async def test_the_callers_id_is_kept(self, shared: Running) -> None:
        """A request id that the client sends is answered and reaches the handler."""
        answer = await shared.anonymous.get("/v1/echo/open", headers={"X-Request-ID": "trace-42/a"})
        assert answer.headers["X-Request-ID"] == "trace-42/a"
        assert answer.json()["id"] == "trace-42/a"

    @pytest.mark.parametrize("sent", ["", "a" * 129, "a b", "<script>", "ü", '{"a": 1}'])
    async def test_an_unfit_id_is_replaced(self, shared: Running, sent: str) -> None:
        """An id that is too long or could do harm in a log is replaced by one of ours."""
        answer = await shared.anonymous.get("/v1/echo/open", headers={"X-Request-ID": sent})
        assert uuid.UUID(answer.headers["X-Request-ID"])


@together
class TestCors:
    async def test_any_origin(self, shared: Running) -> None:
        """By default every origin may read answers, and credentials are off."""
        answer = await shared.anonymous.get("/v1/echo/open", headers={"Origin": "https://app.example"})
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert "X-Request-ID" in answer.headers["Access-Control-Expose-Headers"]

    @pytest.mark.parametrize("path", ["/v1/echo/body", "/v1/auth/login", "/v1/nowhere", "/v1/tts/speak"])
    async def test_preflight(self, shared: Running, path: str) -> None:
        """A browser may ask for any method and any header, on every path."""
        asked = {
            "Origin": "https://app.example",
            "Access-Control-Request-Method": "DELETE",
            "Access-Control-Request-Headers": "authorization, x-custom",
        }
        answer = await shared.anonymous.request("OPTIONS", path, headers=asked)
        assert answer.status == 204
        assert "DELETE" in answer.headers["Access-Control-Allow-Methods"]
        assert answer.headers["Access-Control-Allow-Headers"] == "authorization, x-custom"
        assert answer.headers["Access-Control-Allow-Origin"] == "*"

    async def test_an_error_can_be_read(self, shared: Running) -> None:
        """A page can read why a request was refused: errors carry the headers too."""
        for path in ("/v1/echo/private", "/v1/nowhere", "/v1/echo/boom"):
            answer = await shared.anonymous.get(path, headers={"Origin": "https://app.example"})
            assert answer.headers["Access-Control-Allow-Origin"] == "*"

    async def test_options_without_asking(self, shared: Running) -> None:
        """OPTIONS that is no preflight is an ordinary, unsupported method."""
        assert (await shared.anonymous.request("OPTIONS", "/v1/echo/open")).status == 405


async def test_listed_origins_only(start_platform: Start) -> None:
    """With origins listed, only those may read, with credentials; `Vary` names the header."""
    env = {"CORS_ALLOWED_ORIGINS": "https://a.example, https://b.example/"}
    running = await start_platform(EchoPlugin, env=env)
    allowed = await running.anonymous.get("/v1/echo/open", headers={"Origin": "https://b.example"})
    assert allowed.headers["Access-Control-Allow-Origin"] == "https://b.example"
    assert allowed.headers["Access-Control-Allow-Credentials"] == "true"
    stranger = await running.anonymous.get("/v1/echo/open", headers={"Origin": "https://c.example"})
    without = await running.anonymous.get("/v1/echo/open")
    for answer in (stranger, without):
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert answer.status == 200
    assert {a.headers.get("Vary") for a in (allowed, stranger, without)} == {"Origin"}


@together
class TestErrors:
    @pytest.mark.parametrize(
        "path", ["/nowhere", "/v1/echo/nowhere", "/v1/echo/open/", "//v1/echo/open", "/v1"]
    )
    async def test_unknown_path(self, shared: Running, path: str) -> None:
        answer = await shared.anonymous.get(path)
        assert (answer.status, answer.json()) == (404, {"detail": "Not found", "code": "not_found"})

    async def test_wrong_method(self, shared: Running) -> None:
        """A known path with another method is a JSON 405 that names the methods it has."""
        answer = await shared.anonymous.delete("/v1/echo/body")
        assert (answer.status, answer.json()["code"]) == (405, "method_not_allowed")
        assert answer.headers["Allow"] == "POST"
        assert isinstance(answer.detail, str)

    @pytest.mark.parametrize(("route", "error"), [("boom", "RuntimeError"), ("unfit", "ValueError")])
    async def test_what_nobody_foresaw(
        self, shared: Running, caplog: pytest.LogCaptureFixture, route: str, error: str
    ) -> None:
        """An unexpected error, also a library's, is a plain 500; its text reaches the log alone."""
        answer = await shared.anonymous.get(f"/v1/echo/{route}")
        assert answer.json() == {"detail": "Internal server error", "code": "internal_error"}
        assert answer.status == 500
        assert error in caplog.text

    async def test_a_handler_that_exits(self, shared: Running) -> None:
        """`sys.exit` in a handler ends its request, not the server."""
        answer = await shared.anonymous.get("/v1/echo/exit")
        assert (answer.status, answer.json()["code"]) == (500, "internal_error")
        assert (await shared.anonymous.get("/v1/echo/open")).status == 200

    async def test_a_store_that_goes_away(self, shared: Running) -> None:
        """A lost connection behind a handler is 503, and not taken for a client that left."""
        answer = await shared.anonymous.get("/v1/echo/reset")
        assert (answer.status, answer.json()["code"]) == (503, "unavailable")

    async def test_a_declared_error(self, shared: Running) -> None:
        answer = await shared.anonymous.get("/v1/echo/taken")
        assert (answer.status, answer.json()) == (409, {"detail": "the name is taken", "code": "taken"})


@together
class TestHead:
    @pytest.mark.parametrize(
        "path", ["/v1/echo/open", "/health", "/openapi.json", "/docs", "/v1/echo/private"]
    )
    async def test_like_get_without_a_body(self, shared: Running, path: str) -> None:
        get = await shared.anonymous.get(path)
        head = await shared.anonymous.request("HEAD", path)
        assert (head.status, head.body) == (get.status, b"")
        assert head.headers["Content-Type"] == get.headers["Content-Type"]


@together
class TestClientAddress:
    async def test_a_clients_word_counts_nothing(self, shared: Running) -> None:
        """`X-Forwarded-For` from a client is ignored: it could evade every limit with it."""
        answer = await shared.anonymous.get("/v1/echo/open", headers={"X-Forwarded-For": "203.0.113.9"})
        assert answer.json()["ip"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("203.0.113.9, 127.0.0.2", "203.0.113.9"),
        ("nonsense", "127.0.0.1"),
        ("203.0.113.9, nonsense", "127.0.0.1"),
        ("2001:db8::7", "2001:db8::7"),
        ("", "127.0.0.1"),
    ],
)
async def test_a_proxys_word_counts(start_platform: Start, sent: str, seen: str) -> None:
    """Behind a configured proxy the last address that is no proxy is the client's."""
    running = await start_platform(EchoPlugin, env={"TRUSTED_PROXY_CIDRS": "127.0.0.0/8"})
    answer = await running.anonymous.get("/v1/echo/open", headers={"X-Forwarded-For": sent})
    assert answer.json()["ip"] == seen


async def test_an_answer_that_breaks_off(start_platform: Start) -> None:
    """A handler that fails in the middle of its answer must not look like one that finished."""

    class Breaks(EchoPlugin):
        name = "breaks"

        @hookimpl
        def register_routes(self) -> list[RouteTable]:
            table = RouteTable("Breaks")

            @table.get("/v1/breaks", access=PUBLIC, query=Fault)
            async def stream(ctx: Context, query: Fault) -> web.StreamResponse:
                """Begin an answer and fail."""
                response = web.StreamResponse()
                await response.prepare(ctx.request)
                await response.write(b"half of it")
                raise Conflict("known") if query.known else RuntimeError("unknown")

            return [table]

    running = await start_platform(Breaks)
    for known in ("true", "false"):
        with pytest.raises(aiohttp.ClientPayloadError):
            await running.anonymous.get("/v1/breaks", params={"known": known})


async def test_errors_for_openai(start_platform: Start) -> None:
    """A route that OpenAI's clients call says every error where they look, those before its handler too."""

    class Chats(EchoPlugin):
        name = "chats"

        @hookimpl
        def register_routes(self) -> list[RouteTable]:
            table = RouteTable("Chats")

            @table.post(
                "/v1/chats", access=AUTHENTICATED, body=Fault, max_body=100, error_format=OPENAI_ERRORS
            )
            async def chat(_ctx: Context, body: Fault) -> None:
                """Fail."""
                raise Conflict("It is taken") if body.known else RuntimeError("unknown")

            return [table]

    running = await start_platform("api_docs", Chats)
    actor = await running.user()

    async def told(sender: Actor, body: Any) -> tuple[Any, ...]:
        answer = await sender.post("/v1/chats", json=body)
        said = answer.json()
        error = said["error"]
        assert error["code"] == said["code"] and set(error) == {"message", "type", "param", "code"}
        return answer.status, error["type"], error["message"], error["param"]

    taken, wrong = "It is taken", "known: Input should be a valid boolean, unable to interpret input"
    assert await told(actor, {"known": True}) == (409, "invalid_request_error", taken, None)
    assert await told(actor, {"known": False}) == (500, "server_error", "Internal server error", None)
    assert await told(actor, {"known": "x"}) == (422, "invalid_request_error", wrong, "known")
    assert (await told(actor, {"known": "x" * 100}))[0] == 413
    assert (await told(running.anonymous, {}))[:2] == (401, "authentication_error")
    for answer in (await actor.get("/v1/chats"), await actor.get("/v1/chats/none")):
        assert answer.status in (405, 404) and answer.json()["error"]["message"] == answer.json()["detail"]
    document = (await running.anonymous.get("/openapi.json")).json()
    answers = document["paths"]["/v1/chats"]["post"]["responses"]
    names = [answers[status]["content"]["application/json"]["schema"]["$ref"] for status in ("401", "422")]
    assert [name.rpartition("/")[2] for name in names] == ["OpenAIErrorBody", "OpenAIValidationError"]


class Fault(BaseModel):
    """Which error the handler raises."""

    known: bool


class TestMetrics:
    async def test_names_and_labels(self, start_platform: Start) -> None:
        """The metrics of wire-facts 2.3, with route templates as endpoints and unknown paths as one."""
        running = await start_platform(EchoPlugin)
        for path in ("/v1/echo/items/7", "/v1/echo/items/8", "/made/up", "/made/up/too"):
            await running.anonymous.get(path)
        answer = await running.anonymous.get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        lines = answer.body.decode().splitlines()
        assert _value(lines, "http_requests_total", endpoint="/v1/echo/items/{item_id}", status="200") == 2
        assert _value(lines, "http_requests_total", endpoint="__unmatched__", status="404") == 2
        assert _value(lines, "http_request_duration_seconds_count", endpoint="/v1/echo/items/{item_id}") == 2
        assert "# TYPE http_request_duration_seconds histogram" in lines
        assert 'http_requests_in_progress{method="GET"} 1.0' in lines

    async def test_a_client_that_leaves(self, start_platform: Start) -> None:
        """A request whose client left is counted as 499 and no longer as in progress."""
        echo = EchoPlugin()
        running = await start_platform(echo)
        call = asyncio.create_task(running.anonymous.get("/v1/echo/wait"))
        await echo.entered.wait()
        call.cancel()
        await asyncio.wait_for(echo.cancelled.wait(), 5)
        lines = (await running.anonymous.get("/metrics")).body.decode().splitlines()
        assert _value(lines, "http_requests_total", endpoint="/v1/echo/wait", status="499") == 1
        assert 'http_requests_in_progress{method="GET"} 1.0' in lines

    async def test_methods_that_nobody_knows(self, start_platform: Start) -> None:
        """A client can't fill the metrics with methods that it makes up."""
        running = await start_platform(EchoPlugin)
        for method in ("PROPFIND", "MKCOL", "BREW", "X" * 50):
            await running.anonymous.request(method, "/v1/echo/open")
        text = (await running.anonymous.get("/metrics")).body.decode()
        assert 'method="other"' in text
        assert "PROPFIND" not in text and "BREW" not in text


def _value(lines: list[str], name: str, **labels: str) -> float:
    """The sum of all samples of a metric that have these labels."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    found = [line for line in lines if line.startswith(name + "{") and all(item in line for item in wanted)]
    return sum(float(line.rpartition(" ")[2]) for line in found)


class TestLogs:
    async def test_request_id_in_every_line(
        self, start_platform: Start, logged: list[dict[str, Any]]
    ) -> None:
        """Each line that a request causes carries its id; the access line names route, status and time."""
        running = await start_platform(EchoPlugin)
        await running.anonymous.get("/v1/echo/boom", headers={"X-Request-ID": "find-me"})
        running.platform.resource(ACCESS_LOG).flush()
        mine = [line for line in logged() if line.get("request_id") == "find-me"]
        assert {line["logger"] for line in mine} == {"platform.http", "platform.access"}
        access = next(line for line in mine if line["logger"] == "platform.access")
        assert access["message"] == "GET /v1/echo/boom 500"
        assert access["duration_ms"] >= 0

    async def test_a_client_that_leaves_is_no_error(self, start_platform: Start, logged: Logged) -> None:
        """Who closes a stream in the middle, as by a stop button, leaves a line of access, no traceback."""

        class Talks(EchoPlugin):
            name = "talks"

            @hookimpl
            def register_routes(self) -> list[RouteTable]:
                table = RouteTable("Talks")

                @table.get("/v1/talks", access=PUBLIC)
                async def talk(ctx: Context) -> web.StreamResponse:
                    """Go on talking when the connection is gone."""
                    response = web.StreamResponse()
                    await response.prepare(ctx.request)
                    await response.write(b"first")
                    assert ctx.request.transport is not None
                    ctx.request.transport.abort()
                    await response.write(b"second")
                    return response

                return [table]

        running = await start_platform(Talks)
        with pytest.raises(aiohttp.ClientPayloadError):
            await running.anonymous.get("/v1/talks")
        await running.anonymous.get("/livez")
        running.platform.resource(ACCESS_LOG).flush()
        assert [line for line in logged() if line["level"] in ("warning", "error")] == []
        assert "GET /v1/talks 499" in [line["message"] for line in logged()]

    async def test_no_password_and_no_token(
        self, start_platform: Start, logged: list[dict[str, Any]]
    ) -> None:
        """Neither a password nor a token of a request is ever written to the log."""
        running = await start_platform(EchoPlugin)
        account = {"username": "zoe", "email": "zoe@example.org", "password": "correct horse"}
        await running.anonymous.post("/v1/auth/register", json=account)
        zoe = await running.sign_in("zoe", "correct horse")
        await running.anonymous.post("/v1/auth/login", json={**account, "password": "wrong battery"})
        await running.anonymous.post("/v1/auth/login", json={"username": "zoe", "password": ["wrong staple"]})
        change = {"current_password": "wrong battery", "new_password": "brand new one"}
        await zoe.post("/v1/auth/change-password", json=change)
        await zoe.get("/v1/echo/boom", params={"token": "query-token-value"})
        running.platform.resource(ACCESS_LOG).flush()
        text = json.dumps(logged())
        secrets = [
            "correct horse",
            "wrong battery",
            "wrong staple",
            "brand new",
            "query-token-value",
            zoe.token,
        ]
        assert "/v1/auth/change-password" in text
        assert [secret for secret in secrets if str(secret) in text] == []


Logged = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Logged]:
    """The log as a production process writes it, at its most talkative: reads the lines so far."""
    root, before = logging.getLogger(), (logging.getLogger().handlers[:], logging.getLogger().level)
    configure("DEBUG", "json", tmp_path / "log")
    yield lambda: [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    root.handlers[0].close()
    root.handlers[:], level = before
    root.setLevel(level)
