"""A day in a minute: a folder of a thousand documents changes at random while processes are killed.

After each step, the knowledge base holds what the folder holds: the same paths, the same bytes, each once.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.durability.test_kills import Client, Server
from tests.fakes.paced_embeddings import paced

pytestmark = [pytest.mark.durability, pytest.mark.long]

DOCUMENTS = 1_000
CHANGES = 60
STEPS = 8


class Folder:
    """A folder that people work in."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self._chance = chance
        self._number = 0
        for _ in range(DOCUMENTS):
            self.add()

    def add(self) -> None:
        self._number += 1
        place = self.root / f"part {self._number % 7}" / f"{self._number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"Part {self._number} weighs {self._chance.randrange(10**9)} grams.")

    def change(self) -> None:
        """Something that somebody does."""
        place = self._chance.choice(self.files())
        match self._chance.choice(["add", "change", "change", "rename", "move", "delete", "touch"]):
            case "add":
                self.add()
            case "change":
                place.write_text(f"{place.stem} weighs {self._chance.randrange(10**9)} grams by now.")
            case "rename":
                place.rename(place.with_name(f"renamed {self._chance.randrange(10**9)}.txt"))
            case "move":
                target = self.root / f"moved {self._chance.randrange(3)}" / place.name
                target.parent.mkdir(exist_ok=True)
                place.rename(target)
            case "delete":
                place.unlink()
            case "touch":
                place.touch()

    def files(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*") if path.is_file())

    def digests(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.files()
        }


class Keeper(Client):
    """Runs the source, and looks at what the knowledge base holds."""

    source = ""

    async def add_source(self, folder: Path) -> None:
        body = {"kind": "folder", "name": "Folder", "settings": {"path": str(folder)}}
        made = await self._call("POST", f"/v1/rag/knowledge-bases/{self.base}/sources", json=body)
        self.source = f"/v1/rag/sources/{made['id']}"

    async def share(self) -> None:
        """Let everybody see the knowledge base."""
        await self._call("PATCH", f"/v1/rag/knowledge-bases/{self.base}", json={"visibility": "shared"})

    async def add_guarded(self, url: str) -> None:
        body = {"kind": "intranet", "name": "Intranet", "settings": {"url": url}}
        made = await self._call("POST", f"/v1/rag/knowledge-bases/{self.base}/sources", json=body)
        self.source = f"/v1/rag/sources/{made['id']}"

    async def begin(self) -> None:
        """Begin a run, or find the one under way; tried until it is acknowledged."""
        await self._persistently("POST", f"{self.source}/run", json={})

    async def end(self, seconds: float = 180) -> dict[str, Any]:
        """The run once it has ended."""
        async with asyncio.timeout(seconds):
            while True:
                listed = await self._persistently("GET", f"{self.source}/runs")
                [run, *_] = listed["items"]
                if run["state"] not in ("queued", "running", "waiting"):
                    return dict(run)
                await asyncio.sleep(0.1)

    async def digests(self) -> dict[str, str]:
        """Of each item that has a document, that document's digest, once all are read."""
        async with asyncio.timeout(180):
            while any(one["status"] == "processing" for one in await self.documents()):  # noqa: ASYNC110
                await asyncio.sleep(0.1)  # until then, a changed one is listed with its earlier version
        documents = {one["document_id"]: one["sha256"] for one in await self.documents()}
        found: dict[str, str] = {}
        for offset in range(0, 2 * DOCUMENTS, 500):
            page = await self._call("GET", f"{self.source}/items?limit=500&offset={offset}")
            for item in page["items"]:
                assert item["state"] == "stored", item
                found[item["path"]] = str(documents.pop(item["document_id"]))
        assert documents == {}, "documents that no item has"
        return found

    async def _persistently(self, method: str, path: str, **options: object) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while True:
                with suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
                    return await self._call(method, path, **options)
                await asyncio.sleep(0.1)


@pytest.mark.parametrize("seed", [1])
async def test_a_day_of_changes_and_kills(platform_home: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = Folder(tmp_path / "folder", chance)
    server = Server(
        platform_home,
        None,
        plugins=("rag", "sources", "source_folder"),
        PLATFORM_SOURCE_FOLDERS=str(folder.root),
        **paced(tmp_path / "packages"),
    )
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            keeper = Keeper(server, session)
            await keeper.sign_up()
            await keeper.add_source(folder.root)
            for step in range(STEPS):
                await _kill_at_times(server, chance, step)
                ended = await keeper.end()
                assert ended["state"] == "done", ended
                assert await keeper.digests() == folder.digests(), f"after step {step}"
                for _ in range(CHANGES):
                    folder.change()
                await keeper.begin()
            await keeper.end()
            await keeper.begin()
            still = await keeper.end()
            changes = ("added", "changed", "moved", "gone", "failed")
            assert (still["fetched_bytes"], sum(still[name] for name in changes)) == (0, 0)
            assert await keeper.digests() == folder.digests()
    finally:
        await server.stop()


async def _kill_at_times(server: Server, chance: random.Random, step: int) -> None:
    for kill in range(2):
        await asyncio.sleep(chance.uniform(0.0, 1.0))  # the random moment itself
        server.kill_worker()
        if step % 3 == 2 and kill:
            await server.kill_api()
            await server.start()
