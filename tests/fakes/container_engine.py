"""A container engine's HTTP API, as far as the platform and Docker's own client use it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

STDOUT, STDERR = 1, 2


def framed(stream: int, content: bytes) -> bytes:
    """A frame of a multiplexed stream."""
    return bytes([stream, 0, 0, 0]) + len(content).to_bytes(4, "big") + content


@dataclass
class FakeContainer:
    """A container: what it is called, what it wrote, and whether it runs."""

    service: str
    bundles: str | None = None
    image: str = "platform-local"
    state: str = "running"
    health: str = ""
    tty: bool = False
    written: list[tuple[int, bytes]] = field(default_factory=list)
    more: asyncio.Queue[tuple[int, bytes] | None] = field(default_factory=asyncio.Queue)

    @property
    def id(self) -> str:
        return self.service.encode().hex().ljust(64, "0")[:64]

    def listed(self) -> dict[str, Any]:
        """As in the engine's list."""
        labels = {"com.docker.compose.service": self.service}
        if self.bundles is not None:
            labels["platform.bundle"] = self.bundles
        up = "Up 2 minutes" if self.state == "running" else "Exited (0) 1 minute ago"
        return {
            "Id": self.id,
            "Names": [f"/demo-{self.service}-1"],
            "Image": self.image,
            "ImageID": "sha256:" + "0" * 64,
            "Command": "serve",
            "Created": 1_700_000_000,
            "State": self.state,
            "Status": up + (f" ({self.health})" if self.health else ""),
            "Labels": labels,
            "Ports": [],
            "Mounts": [],
        }

    def raw(self, parts: Iterable[tuple[int, bytes]]) -> bytes:
        """What it wrote, as the engine sends it."""
        return b"".join(content if self.tty else framed(stream, content) for stream, content in parts)


class FakeEngine:
    """The engine; `broken` makes it answer every call with that status."""

    def __init__(self, *containers: FakeContainer) -> None:
        self.containers = {one.id: one for one in containers}
        self.broken: int | None = None
        self.asked: list[str] = []
        self.followers = 0
        self.app = web.Application(middlewares=[self._middleware])
        for prefix in ("", "/v{version}"):
            self.app.router.add_get(prefix + "/_ping", self._ping)
            self.app.router.add_get(prefix + "/containers/json", self._list)
            self.app.router.add_get(prefix + "/containers/{id}/json", self._inspect)
            self.app.router.add_get(prefix + "/containers/{id}/logs", self._logs)
            self.app.router.add_post(prefix + "/containers/{id}/{verb:start|stop}", self._switch)

    @web.middleware
    async def _middleware(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        if self.broken is not None:
            return _message(self.broken, "the engine is out of order, password=hunter22")
        return await handler(request)  # type: ignore[no-any-return]

    async def _ping(self, _request: web.Request) -> web.Response:
        return web.Response(text="OK", headers={"Api-Version": "1.50", "Ostype": "linux"})

    async def _list(self, request: web.Request) -> web.Response:
        wanted = json.loads(request.query.get("filters", "{}")).get("label", [])
        labels = list(wanted) if isinstance(wanted, (list, dict)) else []
        found = [one.listed() for one in self.containers.values()]
        if request.query.get("all") not in ("1", "true"):
            found = [one for one in found if one["State"] == "running"]
        return web.json_response([one for one in found if all(name in one["Labels"] for name in labels)])

    def _of(self, request: web.Request) -> FakeContainer:
        key = request.match_info["id"]
        for one in self.containers.values():
            if key in (one.id, f"demo-{one.service}-1"):
                return one
        raise web.HTTPNotFound(text='{"message": "No such container"}', content_type="application/json")

    async def _inspect(self, request: web.Request) -> web.Response:
        one = self._of(request)
        return web.json_response(
            {"Id": one.id, "Name": f"/demo-{one.service}-1", "Config": {"Tty": one.tty}, "State": {}}
        )

    async def _switch(self, request: web.Request) -> web.Response:
        one, wanted = self._of(request), request.match_info["verb"]
        state = "running" if wanted == "start" else "exited"
        if one.state == state:
            return web.Response(status=304)
        if one.image == "refuses":
            return _message(500, "driver failed programming external connectivity")
        one.state = state
        return web.Response(status=204)

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        one = self._of(request)
        tail = request.query.get("tail", "all")
        parts = one.written if tail == "all" else one.written[-int(tail) :]
        kind = "raw" if one.tty else "multiplexed"
        response = web.StreamResponse(headers={"Content-Type": f"application/vnd.docker.{kind}-stream"})
        await response.prepare(request)
        data = one.raw(parts)
        for start in range(0, len(data), 5):  # neither frames nor lines end where pieces do
            await response.write(data[start : start + 5])
        if request.query.get("follow") in ("1", "true"):
            self.followers += 1
            try:
                while (part := await one.more.get()) is not None:
                    await response.write(one.raw([part]))
            finally:
                self.followers -= 1
        return response


def _message(status: int, text: str) -> web.Response:
    return web.json_response({"message": text}, status=status)


@asynccontextmanager
async def listening(engine: FakeEngine, socket: Path | None = None) -> AsyncIterator[str]:
    """The engine's address: of a unix socket, or of a port of this machine."""
    runner = web.AppRunner(engine.app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        if socket is not None:
            await web.UnixSite(runner, str(socket)).start()
            yield f"unix://{socket}"
        else:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"tcp://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
