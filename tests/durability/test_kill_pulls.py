"""A pull of a model survives: its worker is killed, then the whole platform, and it goes on where it was."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kernel.testing import eventually
from tests.durability.test_kills import Server
from tests.fakes.model_server import PullScript, Script, model_server

pytestmark = [pytest.mark.long, pytest.mark.durability]
TOKEN = "a token of the services, long enough"


class Service:
    """A service that pulls models."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self._server, self._session = server, session

    async def call(self, method: str, path: str, **options: Any) -> Any:
        request = self._session.request(
            method, self._server.url + path, headers={"X-Service-Token": TOKEN}, **options
        )
        async with request as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def states(self) -> dict[str, str]:
        return {
            item["model"]: item["status"] for item in (await self.call("GET", "/v1/models/pulls"))["items"]
        }


@pytest.mark.either_database
async def test_a_pull_survives_kills(platform_home: Path, database_url: str | None) -> None:
    """Acknowledged once, pulled once: nothing is fetched twice, and the next in the queue follows."""
    gate = asyncio.Event()
    big, next_one = PullScript(files=(10_000, 40_000), gate=gate), PullScript()
    script = Script(models=("there",), pulls={"big": big, "next": next_one})
    async with model_server(script) as ollama, aiohttp.ClientSession() as session:
        env = {"OLLAMA_BASE_URL": ollama.url, "SERVICE_SYNC_TOKEN": TOKEN}
        env["PLATFORM_MODELS_PULL_PAUSE_SECONDS"] = "0.1"
        server = Server(platform_home, database_url, plugins=("models",), **env)
        await server.start()
        try:
            service = Service(server, session)
            for model in ("big", "next"):
                await service.call("POST", "/v1/models", json={"model_id": model, "wait": False})
            await eventually(lambda: big.attempts == 1, 60)
            await ollama.streaming.wait()
            server.kill_worker()
            await eventually(lambda: big.attempts == 2, 60)
            server.kill_worker()
            await server.kill_api()
            await server.start()
            await eventually(lambda: big.attempts >= 3, 60)
            assert await service.states() == {"big": "running", "next": "queued"}
            gate.set()

            async def both_done() -> bool:
                return await service.states() == {"big": "done", "next": "done"}

            await eventually(both_done, 60)
            listed = (await service.call("GET", "/v1/models"))["items"]
        finally:
            await server.stop()
    assert [item["id"] for item in listed] == ["there", "big", "next"]
    assert (big.completed, next_one.completed, next_one.attempts) == (50_000, 5_000, 1)
