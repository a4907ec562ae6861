"""A plugin that implements the service `tts-stt`: every kind of answer, in process or on another machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from aiohttp import web
from pydantic import BaseModel, Field

from kernel.sdk import (
    ADMIN,
    AUTHENTICATED,
    PUBLIC,
    Answer,
    Conflict,
    Context,
    HealthCheck,
    Platform,
    Plugin,
    RawBody,
    RouteTable,
    Service,
    Unhealthy,
    hookimpl,
    send_events,
)
from kernel.sdk.http import iter_body
from kernel.sdk.telemetry import NotInstalled


class Speak(BaseModel):
    """What to say."""

    text: str = Field(min_length=1, max_length=100)


class Busy(Conflict):
    code = "engine_busy"


class SpeechPlugin(Plugin):
    """The service, with handles for the test."""

    name = "speech"
    version = "1.2.3"

    def __init__(self) -> None:
        self.next_event = asyncio.Event()
        self.entered = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.received: list[int] = []
        self.healthy = self.installed = True

    @hookimpl
    def register_services(self) -> list[Service]:
        return [Service("tts-stt", [self._table()], self.version, health_extra=self._extra)]

    @hookimpl
    def register_health_checks(self) -> list[HealthCheck]:
        return [HealthCheck("tts_engine", self._check, critical=True, service="tts-stt")]

    async def _check(self, _platform: Platform) -> None:
        if not self.installed:
            raise NotInstalled("install an engine")
        if not self.healthy:
            raise Unhealthy("the engine is missing")

    async def _extra(self, _platform: Any) -> dict[str, Any]:
        return {"tts_available": self.healthy, "stt_available": False}

    def _table(self) -> RouteTable:
        table = RouteTable("Speech")

        @table.get("/tts", access=PUBLIC, returns=dict[str, Any])
        async def describe(ctx: Context) -> dict[str, Any]:
            """What arrived."""
            query = [[key, value] for key, value in ctx.request.query.items()]
            principal = {"kind": ctx.principal.kind, "subject": ctx.principal.subject}
            headers = sorted([name.lower(), value] for name, value in ctx.request.headers.items())
            return {
                "query": query,
                "headers": headers,
                "ip": ctx.client_ip,
                "id": ctx.request_id,
                **principal,
            }

        @table.get("/tts/voices/{voice:path}", access=PUBLIC, returns=str)
        async def voice(ctx: Context, voice: str) -> str:
            """One voice."""
            return voice

        @table.get("/tts/private", access=AUTHENTICATED, returns=str)
        async def private(ctx: Context) -> str:
            """For who signed in."""
            return ctx.principal.subject

        @table.get("/tts/admin", access=ADMIN, returns=str)
        async def admin(ctx: Context) -> str:
            """For administrators."""
            return ctx.principal.subject

        @table.post("/tts", access=PUBLIC, body=Speak, media_type="audio/wav", returns=bytes, errors=(Busy,))
        async def speak(ctx: Context, body: Speak) -> web.Response:
            """Speak."""
            if body.text == "busy":
                raise Busy("the engine is busy", headers={"Retry-After": "7"})
            return web.Response(
                body=b"RIFF" + body.text.encode(), headers={"Content-Type": "audio/wav", "X-Language": "tr"}
            )

        @table.post("/stt", access=PUBLIC, body=RawBody(("audio/wav",)), max_body=2**40, returns=int)
        async def hear(ctx: Context) -> int:
            """Count what is heard, piece by piece."""
            total = 0
            async for chunk in iter_body(ctx.request, ctx.platform.settings.body_timeout):
                total += len(chunk)
                self.received.append(len(chunk))
                self.entered.set()
            return total

        @table.post("/tts/accepted", access=PUBLIC, returns=str, status=202)
        async def accepted(ctx: Context) -> Answer:
            """Another status, another header."""
            return Answer("later", headers={"X-Duration": "1.5"})

        @table.post("/tts/nothing", access=PUBLIC, status=204)
        async def nothing(ctx: Context) -> None:
            """No content."""

        @table.get("/tts/events", access=PUBLIC, media_type="text/event-stream")
        async def events(ctx: Context) -> web.StreamResponse:
            """Events, one whenever the test says so."""
            return await send_events(ctx.request, self._events())

        @table.get("/tts/wait", access=PUBLIC, returns=str)
        async def wait(ctx: Context) -> str:
            """Never answer."""
            self.entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
            return ""

        @table.get("/tts/boom", access=PUBLIC)
        async def boom(ctx: Context) -> None:
            """Fail in a way that nobody foresaw."""
            raise RuntimeError("the engine exploded")

        @table.get("/tts/large", access=PUBLIC, media_type="application/octet-stream", returns=bytes)
        async def large(ctx: Context) -> web.StreamResponse:
            """Sixteen megabytes."""
            response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
            await response.prepare(ctx.request)
            for number in range(256):
                await response.write(bytes([number]) * 65536)
            return response

        @table.get("/tts/packed", access=PUBLIC, returns=str)
        async def packed(ctx: Context) -> web.Response:
            """A compressed answer."""
            response = web.Response(body=json.dumps("a" * 5000).encode(), content_type="application/json")
            response.enable_compression(web.ContentCoding.gzip)
            return response

        return table

    async def _events(self) -> AsyncGenerator[tuple[str, Any], None]:
        try:
            for number in range(3):
                await self.next_event.wait()
                self.next_event.clear()
                yield "token", {"number": number}
            yield "done", {}
        finally:
            self.cancelled.set()
