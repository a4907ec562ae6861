"""SIGTERM while many clients ask: no answer is cut, no stream ends in the middle of an event."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from collections import Counter
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from kernel.testing import eventually
from tests.fakes.processes import Served, running_process, served_platform, without_plugins

pytestmark = pytest.mark.durability

log = logging.getLogger("figures")  # shown by --log-cli-level=INFO

CLIENTS = 12


async def _ask_until_gone(served: Served, account: dict[str, str], told: Counter[str]) -> None:
    """By a new connection each time, until nobody listens any more."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        while True:
            try:
                async with session.post(
                    f"{served.url}/v1/rag/knowledge-bases", headers=account, json={"name": "Harbour"}
                ) as answer:
                    body = await answer.json()
                    told["whole" if answer.status == 200 and body["id"] else str(answer.status)] += 1
            except aiohttp.ClientConnectorError:
                told["refused"] += 1
                return
            except aiohttp.ClientError as error:
                told[f"cut: {type(error).__name__}"] += 1
                return


async def _administrator(home: Path, env: dict[str, str], log: Path) -> dict[str, str]:
    """A Platform Admin, made before the platform runs; name and password."""
    command = ("-m", "cli", "users", "create", "boss", "--admin", "--generate", "--json")
    values = {**env, "PLATFORM_HOME": str(home)}
    async with running_process(*command, env=values, log=log) as process:
        assert await process.wait(60) == 0, process.output()
    said = process.output()
    account = json.loads(said[said.index("{") : said.rindex("}") + 1])
    return {"username": "boss", "password": account["password"]}


async def _follow(served: Served, login: dict[str, str], started: asyncio.Event) -> bytes:
    """A log that is followed, until the server ends the stream properly."""
    async with served.session.post(f"{served.url}/v1/auth/login", json=login) as answer:
        headers = {"Authorization": f"Bearer {(await answer.json())['access_token']}"}
    url = f"{served.url}/v1/containers/api-gateway/logs?follow=true&tail=5"
    received = b""
    async with served.session.get(url, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        async for piece in answer.content.iter_any():
            received += piece
            started.set()
    return received


def _under_way(told: Counter[str]) -> bool:
    """Whether every client was answered a few times, and nobody was refused."""
    assert set(told) <= {"whole"}, told
    return told["whole"] >= 3 * CLIENTS


async def test_streams_end_properly(platform_home: Path, tmp_path: Path) -> None:
    """What follows a log holds up no stop, and learns why it ended: no connection is cut."""
    env = without_plugins("platform_ops")
    login = await _administrator(platform_home, env, tmp_path / "users.log")
    async with served_platform(platform_home, "--no-worker", env=env) as served:
        started = asyncio.Event()
        following = asyncio.create_task(_follow(served, login, started))
        await started.wait()
        served.process.signal(signal.SIGTERM)
        async with asyncio.timeout(15):  # without that, a stop takes PLATFORM_SHUTDOWN_TIMEOUT, 20 s
            received = await following
        assert await served.process.wait(60) == 0
    last = received.rstrip().rpartition(b"event: ")[2]
    assert last.startswith(b"error\n")
    assert b"server_stopping" in last


@pytest.mark.long
async def test_no_request_is_cut(
    platform_home: Path, database_url: str | None, request: pytest.FixtureRequest
) -> None:
    """Every request that was taken is answered whole; what comes later finds nobody."""
    env = without_plugins("rag", "embeddings", "platform_ops")
    if database_url is not None:
        env["DATABASE_URL"] = database_url
    for turn in range(request.config.getoption("rounds")):
        async with served_platform(platform_home, "--no-worker", env=env) as served:
            account = await served.sign_up(f"reader-{turn}")
            told: Counter[str] = Counter()
            clients = [asyncio.create_task(_ask_until_gone(served, account, told)) for _ in range(CLIENTS)]
            await eventually(partial(_under_way, told))
            served.process.signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                await asyncio.gather(*clients)
            assert await served.process.wait(60) == 0
            log.info("told at a stop: %s", dict(told))
            assert set(told) <= {"whole", "refused"}, told


async def test_a_slow_first_request_is_answered(platform_home: Path) -> None:
    """Whoever is connected when the stop begins may take a moment to ask, as on a busy machine."""
    async with served_platform(platform_home, "--no-worker", env=without_plugins("platform_ops")) as served:
        address = URL(served.url)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        served.process.signal(signal.SIGTERM)
        await eventually(partial(_refused, address))
        await asyncio.sleep(0.2)  # more than a stop waits for others, and far less than for this one
        writer.write(b"GET /livez HTTP/1.1\r\nHost: harbour\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 ")
        writer.close()
        assert await served.process.wait(60) == 0


async def _refused(address: URL) -> bool:
    """Whether nobody is let in any more: refused, or left to try again, which the system does in a second."""
    try:
        async with asyncio.timeout(0.1):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except (ConnectionError, TimeoutError):
        return True
    writer.close()
    return False
