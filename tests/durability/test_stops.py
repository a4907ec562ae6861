"""Stopping in the middle of work: nobody is left behind, and the work goes on at the next start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psutil
import pytest

from kernel.testing import eventually
from tests.durability.test_kills import Client, Server
from tests.fakes.paced_embeddings import paced

pytestmark = pytest.mark.durability


@pytest.fixture
async def busy(platform_home: Path, tmp_path: Path) -> AsyncIterator[tuple[Server, Client]]:
    """A server whose worker is in the middle of ingesting, and the client that asked for it."""
    server = Server(platform_home, None, plugins=("models", "rag"), **paced(tmp_path / "packages"))
    await server.start()
    async with aiohttp.ClientSession() as session:
        client = Client(server, session)
        await client.sign_up()
        for number in range(6):
            await client.upload(number)
        async with asyncio.timeout(60):
            while not await _some_done(client):  # noqa: ASYNC110
                await asyncio.sleep(0.1)  # polling is what clients do
        yield server, client
    await server.stop()


async def _some_done(client: Client) -> bool:
    return any(item["status"] == "completed" for item in await client.documents())


async def _gone(process: psutil.Process) -> None:
    await asyncio.to_thread(psutil.wait_procs, [process], 15)
    assert not process.is_running()


@pytest.mark.long
async def test_nobody_is_left_behind(busy: tuple[Server, Client]) -> None:
    """SIGTERM to `serve` ends it and its busy worker, soon, and no worker outlives a parent that is killed.

    The next start finishes the work.
    """
    server, client = busy
    worker = server.worker()
    assert worker is not None
    async with asyncio.timeout(20):
        await server.stop()
    await _gone(worker)
    await server.start()
    log = server.home.parent / "serve.log"
    await eventually(lambda: log.read_text().count("is ready for jobs") == 2)
    worker = server.worker()
    assert worker is not None
    await server.kill_api()
    await _gone(worker)
    await server.start()
    async with asyncio.timeout(120):
        while any(item["status"] == "processing" for item in await client.documents()):  # noqa: ASYNC110
            await asyncio.sleep(0.2)  # polling is what clients do
    assert {item["status"] for item in await client.documents()} == {"completed"}
