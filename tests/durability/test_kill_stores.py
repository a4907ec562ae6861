"""Files are uploaded and put into vector stores while processes are killed; what fails is asked for again, as
OpenAI's SDK does it: each file and each store is there once, and is read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.durability.test_kills import Client, Server
from tests.fakes.paced_embeddings import paced

pytestmark = [pytest.mark.durability, pytest.mark.long]

KILLS = 4


class Storing(Client):
    """Makes files and stores, each until it is acknowledged."""

    stores: dict[str, str]
    repetitions = 0

    async def store(self, number: int) -> None:
        """A file, and a vector store with it."""
        text = f"Part {number} weighs {number * 7} grams."

        def form() -> dict[str, Any]:
            data = aiohttp.FormData({"purpose": "assistants"})
            data.add_field("file", text.encode(), filename=f"{number}.txt")
            return {"data": data}

        file = await self._until_made("/v1/files", form)
        body = {"name": f"Store {number}", "file_ids": [file["id"]], "metadata": {"number": str(number)}}
        made = await self._until_made("/v1/vector_stores", lambda: {"json": body})
        self.stores[str(made["id"])] = text

    async def _until_made(self, path: str, options: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        signed_in, retries = dict(self._headers), 0
        try:
            async with asyncio.timeout(120):
                while True:
                    self._headers = {**signed_in, "x-stainless-retry-count": str(retries)}
                    with suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
                        return await self._call("POST", path, **options())
                    retries += 1
                    self.repetitions += 1
                    await asyncio.sleep(0.1)
        finally:
            self._headers = signed_in

    async def listed(self, path: str) -> list[dict[str, Any]]:
        page: Any = await self._call("GET", f"{path}?limit=100")
        assert not page["has_more"]
        return list(page["data"])

    async def read(self) -> list[dict[str, Any]]:
        """The stores once all of their files are read."""
        async with asyncio.timeout(120):
            while any(one["status"] != "completed" for one in await self.listed("/v1/vector_stores")):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        return await self.listed("/v1/vector_stores")


async def test_stores_and_files_are_made_once(platform_home: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    plugins = ("models", "rag", "openai_files")
    server = Server(platform_home, None, plugins=plugins, **paced(tmp_path / "packages"))
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            client = Storing(server, session)
            client.stores = {}
            await client.sign_up()
            killing = asyncio.create_task(_kill(server, chance))
            number = 0
            while not killing.done():
                number += 1
                await client.store(number)
            await killing
            assert client.repetitions, "no request was cut off"
            files = [one["filename"] for one in await client.listed("/v1/files")]
            assert sorted(files) == sorted(f"{at}.txt" for at in range(1, number + 1))
            stores = {one["id"]: one for one in await client.read() if one["name"] != "Kills"}
            assert set(stores) == set(client.stores)
            for made, text in client.stores.items():
                assert stores[made]["file_counts"]["completed"] == stores[made]["file_counts"]["total"] == 1
                found: Any = await client._call(
                    "POST", f"/v1/vector_stores/{made}/search", json={"query": text}
                )
                assert [one["content"][0]["text"].strip() for one in found["data"]] == [text]
                assert stores[made]["metadata"]["number"] in text
    finally:
        await server.stop()


async def _kill(server: Server, chance: random.Random) -> None:
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(0.05, 0.8))  # the random moment itself
        server.kill_worker()
        await server.kill_api()
        await server.start()
