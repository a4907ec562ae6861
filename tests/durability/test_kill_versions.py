"""A document is replaced again and again while processes are killed: a search finds one version each time."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.durability.test_kills import Client, Server
from tests.fakes.paced_embeddings import paced

pytestmark = [pytest.mark.durability, pytest.mark.long]

PATH = "policies/travel.txt"
_CLIENTS = 8
_AT_ONCE = 4
"""Versions that are sent before those before them are awaited."""


class Replacing(Client):
    """Puts versions of one document and looks at which of them a search finds."""

    sent = 0
    acknowledged_last = 0

    async def replace(self) -> None:
        """Send the next version; it counts only if the answer arrives."""
        self.sent += 1
        form = aiohttp.FormData()
        text = f"A hotel may cost this much: edition {self.sent} says {100 + self.sent} euro a night.\n"
        form.add_field("file", text.encode(), filename="travel.txt")
        where = f"/v1/rag/knowledge-bases/{self.base}/documents/by-path/{PATH}"
        with suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
            answer = await self._call("PUT", where, data=form)
            self.acknowledged_last = int(str(answer["version"]))

    async def editions(self) -> list[int] | None:
        """The editions in what a search finds; None while nothing answers."""
        body = {"question": "How much may a hotel cost a night?", "top_k": 20}
        try:
            found: Any = await self._call("POST", f"/v1/rag/knowledge-bases/{self.base}/search", json=body)
        except (aiohttp.ClientError, TimeoutError, ConnectionError):
            return None
        return [int(item["text"].partition("edition ")[2].split()[0]) for item in found["items"]]


@pytest.mark.parametrize("seed", [1, 2])
async def test_one_version_answers_at_any_time(platform_home: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    server = Server(platform_home, None, plugins=("models", "rag"), **paced(tmp_path / "packages"))
    await server.start()
    seen: list[list[int]] = []
    try:
        async with aiohttp.ClientSession() as session:
            client = Replacing(server, session)
            await client.sign_up()
            await client.replace()
            await _settled(client)
            for kill in range(6):
                looking = asyncio.create_task(_look(client, seen))
                for _ in range(4):
                    await client.replace()
                await asyncio.sleep(chance.uniform(0.0, 0.6))  # the random moment itself
                server.kill_worker()
                if kill % 2:
                    await server.kill_api()
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)
                if kill % 2:
                    await server.start()
            await _settled(client)
            last = await client.editions()
            seen.append(last or [])
    finally:
        await server.stop()
    assert {len(one) for one in seen} == {1}, "both, or none, were found"
    assert last == [client.acknowledged_last] or last == [client.sent]
    with sqlite3.connect(platform_home / "platform.db") as connection:
        rows = connection.execute("SELECT version, status FROM rag_document ORDER BY version DESC").fetchall()
    connection.close()
    assert [status for _, status in rows] == ["completed"] + ["superseded"] * (len(rows) - 1)
    assert 1 < len(rows) <= 11


async def test_eight_clients_search_while_it_is_replaced(
    platform_home: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """`--replacements` says how often; the worker is killed in the middle."""
    count = int(request.config.getoption("replacements"))
    server = Server(platform_home, None, plugins=("models", "rag"), **paced(tmp_path / "packages"))
    await server.start()
    seen: list[list[int]] = []
    try:
        async with aiohttp.ClientSession() as session:
            client = Replacing(server, session)
            await client.sign_up()
            await client.replace()
            await _settled(client)
            looking = [asyncio.create_task(_look(client, seen)) for _ in range(_CLIENTS)]
            for number in range(count):
                await client.replace()
                if number == count // 2:
                    server.kill_worker()
                elif number % _AT_ONCE == 0:
                    await _settled(client)
            await _settled(client)
            for one in looking:
                one.cancel()
            await asyncio.gather(*looking, return_exceptions=True)
            last = await client.editions()
    finally:
        await server.stop()
    assert {len(one) for one in seen} == {1}, "both, or none, were found"
    assert (last, client.acknowledged_last) == ([client.sent], count + 1)
    assert len({edition for (edition,) in seen}) > count // _AT_ONCE // 2
    assert len(seen) >= count


async def _look(client: Replacing, seen: list[list[int]]) -> None:
    while True:
        found = await client.editions()
        if found is not None:
            seen.append(found)


async def _settled(client: Client) -> None:
    async with asyncio.timeout(120):
        while any(item["status"] == "processing" for item in await client.documents()):  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # polling is what clients do
