"""A streaming answer ends with the session of its caller, in every process, whichever way it streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from sqlalchemy import delete, insert, update

from builtin_plugins.accounts.api import ADMINISTRATION
from kernel.auth.models import Account
from kernel.auth.states import TOPIC
from kernel.db.tables import Notice
from kernel.http import responses
from kernel.http.streams import OPEN_STREAMS, OpenStream
from kernel.sdk import PUBLIC, Conflict, Context, Plugin, Principal, RouteTable, hookimpl, send_events
from kernel.sdk.accounts import TOKENS, operator_of, revoke_sessions
from kernel.testing import Actor, Running, Start, eventually
from tests.fakes.network import raw_client
from tests.fakes.rows import execute

SECRET = {"JWT_SECRET": "a secret of at least thirty-two bytes, for tests"}


class Streaming(Plugin):
    """Streams without an end, in every way there is."""

    name = "streaming"

    def __init__(self) -> None:
        self.ended, self.begin, self.fail = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.file = Path()

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Streams")

        @table.get("/v1/streaming/events", access=PUBLIC, media_type="text/event-stream", returns=str)
        async def events(ctx: Context) -> web.StreamResponse:
            """Stream events."""
            return await send_events(ctx.request, self._ticks())

        @table.get("/v1/streaming/bytes", access=PUBLIC, media_type="application/octet-stream", returns=str)
        async def raw(ctx: Context) -> web.StreamResponse:
            """Stream bytes without a helper."""
            response = web.StreamResponse()
            try:
                await response.prepare(ctx.request)
                while True:
                    await response.write(b"tick")
                    await asyncio.sleep(0.05)
            finally:
                self.ended.set()

        @table.get("/v1/streaming/silence", access=PUBLIC, media_type="text/event-stream", returns=str)
        async def silence(ctx: Context) -> web.StreamResponse:
            """Stream one event, then nothing."""
            return await send_events(ctx.request, self._silence())

        @table.get("/v1/streaming/thought", access=PUBLIC, media_type="text/event-stream", returns=str)
        async def thought(ctx: Context) -> web.StreamResponse:
            """Stream an event after a long silence, then an error after another."""
            return await send_events(ctx.request, self._thought())

        @table.get("/v1/streaming/payload", access=PUBLIC, media_type="application/octet-stream", returns=str)
        async def payload(ctx: Context) -> web.Response:
            """Answer with a body that is made as it is sent."""
            return web.Response(body=self._chunks())

        return [table]

    async def _ticks(self) -> AsyncGenerator[tuple[str, Any], None]:
        try:
            while True:
                yield "tick", {}
                await asyncio.sleep(0.05)
        finally:
            self.ended.set()

    async def _silence(self) -> AsyncGenerator[tuple[str, Any], None]:
        try:
            yield "tick", {}
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def _thought(self) -> AsyncGenerator[tuple[str, Any], None]:
        await self.begin.wait()
        yield "tick", {}
        await self.fail.wait()
        raise Conflict("No more")

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"tick"
                await asyncio.sleep(0.05)
        finally:
            self.ended.set()


@asynccontextmanager
async def opened(actor: Actor, running: Running, path: str) -> AsyncIterator[aiohttp.ClientResponse]:
    headers = {"Authorization": f"Bearer {actor.token}"} if actor.token else {}
    async with running.session.get(running.url + path, headers=headers) as answer:
        assert answer.status == 200
        assert await answer.content.readany()
        yield answer


async def revoke(running: Running, actor: Actor) -> None:
    await running.platform.database.write(lambda unit: revoke_sessions(unit, actor.user["id"]))


async def rest(answer: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """What else arrives, and whether the answer was whole."""
    received = b""
    try:
        async with asyncio.timeout(8):
            async for chunk in answer.content.iter_any():
                received += chunk
    except aiohttp.ClientPayloadError:
        return received, False
    return received, True


@pytest.mark.parametrize("path", ["events", "bytes", "silence", "payload"])
async def test_head_is_answered_without_the_stream(start_platform: Start, path: str) -> None:
    """No byte of a stream follows its head: the client would take it for the connection's next answer."""
    plugin = Streaming()
    running = await start_platform(plugin)
    async with raw_client(running.url) as client:
        for method, asked in (("HEAD", f"/v1/streaming/{path}"), ("GET", "/livez")):
            await client.send(f"{method} {asked} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        status, headers = await client.head()
        assert (status, "transfer-encoding" in headers) == (200, False)
        assert (await client.answer()).body == b'{"status":"alive"}'
    if path != "payload":  # aiohttp does not begin that one
        await asyncio.wait_for(plugin.ended.wait(), 5)


class TestSilence:
    """A comment line at times keeps proxies from cutting a stream that has nothing to say yet."""

    @pytest.fixture
    def plugin(self, monkeypatch: pytest.MonkeyPatch) -> Streaming:
        monkeypatch.setattr(responses, "ALIVE_EVERY", 0.05)
        return Streaming()

    async def test_before_and_between_events(self, start_platform: Start, plugin: Streaming) -> None:
        """Comments come before the first event and between events, and change none of them."""
        running = await start_platform(plugin)
        async with opened(running.anonymous, running, "/v1/streaming/thought") as answer:
            assert await answer.content.readuntil(b"\n\n") == b": still at work\n\n"
            plugin.begin.set()
            while (line := await answer.content.readuntil(b"\n\n")).startswith(b":"):
                pass
            assert line == b"event: tick\ndata: {}\n\n"
            assert (await answer.content.readuntil(b"\n\n")).startswith(b":")
            plugin.fail.set()
            received, whole = await rest(answer)
        assert whole and received.decode().strip().split("\n\n")[-1].startswith("event: error\n")

    async def test_error_after_the_first_comment(self, start_platform: Start, plugin: Streaming) -> None:
        """Once the status has been sent, an error before the first event is an event as well."""
        plugin.fail.set()
        running = await start_platform(plugin, env=SECRET)
        ana = await running.user("ana")
        async with opened(ana, running, "/v1/streaming/thought") as answer:
            await revoke(running, ana)
            received, whole = await rest(answer)
        assert whole and '"code": "session_revoked"' in received.decode()


@pytest.mark.parametrize("path", ["events", "silence"])
async def test_events_end_with_a_word(start_platform: Start, path: str) -> None:
    """Server-sent events end with an `error` event that says why; what made them is stopped."""
    plugin = Streaming()
    running = await start_platform(plugin, env=SECRET)
    ana = await running.user("ana")
    async with opened(ana, running, f"/v1/streaming/{path}") as answer:
        await revoke(running, ana)
        received, whole = await rest(answer)
    assert whole
    last = received.decode().strip().split("\n\n")[-1]
    assert last.startswith("event: error\n") and '"code": "session_revoked"' in last
    await asyncio.wait_for(plugin.ended.wait(), 5)


@pytest.mark.parametrize("path", ["bytes", "payload"])
async def test_others_are_cut(start_platform: Start, path: str) -> None:
    """An answer with no way to say it breaks off, so that nobody takes it for whole; its maker is stopped."""
    plugin = Streaming()
    running = await start_platform(plugin, env=SECRET)
    ana = await running.user("ana")
    async with opened(ana, running, f"/v1/streaming/{path}") as answer:
        await revoke(running, ana)
        assert (await rest(answer))[1] is False
    await asyncio.wait_for(plugin.ended.wait(), 5)


@pytest.mark.parametrize("notice", ["heard", "lost"])
async def test_in_another_process(start_platform: Start, database_url: str | None, notice: str) -> None:
    """A revocation in one process ends streams in another, also when its notice is lost."""
    env = {**SECRET, "DATABASE_URL": database_url}
    here, there = await start_platform(Streaming, env=env), await start_platform(Streaming, env=env)
    ana = await here.user("ana")
    async with opened(ana, there, "/v1/streaming/events") as answer:
        if notice == "heard":
            await revoke(here, ana)
        else:
            await execute(here.platform.database, update(Account).values(epoch=Account.epoch + 1))
        received, _ = await rest(answer)
    assert b"session_revoked" in received


async def test_proxied(start_platform: Start, caplog: pytest.LogCaptureFixture) -> None:
    """A stream that the gateway passes on from another machine is cut, there too; nobody else is blamed."""
    let_go = asyncio.Event()

    async def upstream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"tick")
                await asyncio.sleep(0.05)
        finally:
            let_go.set()

    app = web.Application()
    app.router.add_get("/{path:.*}", upstream)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    running = await start_platform(
        "remote_services", env={**SECRET, "PLATFORM_SERVICE_URLS": f"tts-stt=http://127.0.0.1:{port}"}
    )
    ana = await running.user("ana")
    async with opened(ana, running, "/v1/tts/stream") as answer:
        await revoke(running, ana)
        assert (await rest(answer))[1] is False
    await asyncio.wait_for(let_go.wait(), 5)
    await runner.cleanup()
    assert "ended its response early" not in caplog.text


async def test_as_many_as_an_account_may_have(start_platform: Start) -> None:
    """One more is refused before it begins; others' are not, and one that ends makes room."""
    running = await start_platform(Streaming, env={"PLATFORM_ACCOUNT_STREAMS": "2"})
    ann, ben = await running.user(), await running.user()
    url = f"{running.url}/v1/streaming/events"
    async with aiohttp.ClientSession() as http, AsyncExitStack() as held:
        mine = {"Authorization": f"Bearer {ann.token}"}
        first = await held.enter_async_context(http.get(url, headers=mine))
        second = await held.enter_async_context(http.get(url, headers=mine))
        assert (first.status, second.status) == (200, 200)
        async with http.get(url, headers=mine) as third:
            assert (third.status, (await third.json())["code"]) == (429, "too_many_streams")
            assert int(third.headers["Retry-After"]) > 0
        async with http.get(url, headers={"Authorization": f"Bearer {ben.token}"}) as other:
            assert other.status == 200
        first.close()

        async def again() -> bool:
            async with http.get(url, headers=mine) as answer:
                return answer.status == 200

        await eventually(again)


async def test_told_twice() -> None:
    """Who is ending already is not disturbed by hearing it again."""
    stream = OpenStream(1, "session", lambda: None)

    async def follow() -> None:
        async with stream.ending_softly():
            try:
                await asyncio.Event().wait()
            finally:
                stream.end()

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    stream.end()
    with pytest.raises(TimeoutError):
        await following


async def test_one_that_can_not_be_ended(start_platform: Start) -> None:
    """The others of the account are ended all the same."""
    running = await start_platform()
    streams = running.platform.resource(OPEN_STREAMS)
    ana = Principal("user", "1", 1, "ana", "user", claims={"epoch": 1}, credential="session")
    ended: list[str] = []

    def broken() -> None:
        raise RuntimeError("it can't be ended")

    for cut in (broken, lambda: ended.append("second")):
        assert streams.watch(ana, cut) is not None
    streams.end("session")
    assert ended == ["second"]


class TestWhoStays:
    async def test_others(self, start_platform: Start) -> None:
        """Other accounts' streams, services' and strangers' go on, and so does one of a fresh session."""
        running = await start_platform(Streaming, env=SECRET)
        ana, bob = await running.user("ana"), await running.user("bob")
        service = Actor(running, running.platform.resource(TOKENS).mint_service("indexer", 1))
        await revoke(running, ana)
        fresh = await running.sign_in("ana", ana.password)
        for actor in (bob, service, running.anonymous, fresh):
            async with opened(actor, running, "/v1/streaming/events") as answer:
                await running.platform.database.write(lambda unit: unit.notify(TOPIC, str(ana.user["id"])))
                for _ in range(30):  # past the next look at all streams
                    assert b"error" not in await answer.content.readany()

    async def test_the_next_request_of_a_connection(self, start_platform: Start) -> None:
        """A stream that ended in time leaves nothing behind that could cut what follows on its connection."""
        running = await start_platform(Streaming, env=SECRET)
        ana = await running.user("ana")
        async with opened(ana, running, "/v1/streaming/events") as answer:
            await revoke(running, ana)
            await rest(answer)
        for _ in range(3):
            await running.platform.database.write(lambda unit: unit.notify(TOPIC, str(ana.user["id"])))
            assert (await running.anonymous.get("/v1/auth/capabilities")).status == 200

    async def test_deactivated_and_gone(self, start_platform: Start) -> None:
        running = await start_platform(Streaming, env=SECRET)
        for name in ("ana", "bob"):
            actor = await running.user(name)
            async with opened(actor, running, "/v1/streaming/events") as answer:
                if name == "ana":
                    await running.platform.resource(ADMINISTRATION).set_active(
                        operator_of(running.platform), actor.user["id"], False
                    )
                else:
                    gone = delete(Account).where(Account.username == name)
                    notice = insert(Notice).values(topic=TOPIC, key=str(actor.user["id"]))
                    await execute(running.platform.database, gone, notice)
                assert b"session_revoked" in (await rest(answer))[0]
