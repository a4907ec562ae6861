"""A platform with scripted sources on each database, and a shelf of each test's own."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from builtin_plugins.sources.services.runs import TICK
from kernel.sdk import NoPayload
from kernel.testing import Actor, Running, somebody
from tests.builtin_plugins.rag.rag_support import make_base
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.kept import Kept
from tests.fakes.scripted_source import ScriptedSources, Shelf


@pytest.fixture(scope="session")
def scripted() -> ScriptedSources:
    return ScriptedSources()


@pytest.fixture(scope="session")
def open_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the operator allows."""
    return tmp_path_factory.mktemp("allowed")


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(
    request: pytest.FixtureRequest, kept: Kept, scripted: ScriptedSources, open_folder: Path
) -> AsyncIterator[Running]:
    yield await kept.platform(
        "sources",
        request.param,
        HashEmbeddings(),
        "sources",
        "source_folder",
        scripted,
        env={"PLATFORM_SOURCE_FOLDERS": str(open_folder)},
    )


@pytest_asyncio.fixture(loop_scope="session")
async def ann(running: Running) -> Actor:
    return await somebody(running)


@pytest_asyncio.fixture(loop_scope="session")
async def desk(running: Running, ann: Actor, scripted: ScriptedSources) -> AsyncIterator[Desk]:
    """A knowledge base of hers and a shelf."""
    name = secrets.token_hex(8)
    scripted.shelves[name] = Shelf()
    yield Desk(running, ann, await make_base(ann), scripted.shelves[name], name)
    await running.run_jobs()


class Desk:
    """What a test does with one source."""

    def __init__(self, running: Running, ann: Actor, base: str, shelf: Shelf, name: str) -> None:
        self.running, self.ann, self.base, self.shelf = running, ann, base, shelf
        self.settings = {"shelf": name}
        self.source = ""

    async def add(self, **fields: Any) -> dict[str, Any]:
        """Add the source, and let its first run end."""
        body = {"kind": "scripted", "name": "Shelf", "settings": self.settings, **fields}
        answer = await self.ann.post(f"/v1/rag/knowledge-bases/{self.base}/sources", json=body)
        assert answer.status == 201, answer.body
        self.source = answer.json()["id"]
        await self.running.run_jobs()
        return await self.last_run()

    async def run(self, **body: Any) -> dict[str, Any]:
        """Run it to its end."""
        answer = await self.ann.post(self.path("/run"), json=body)
        assert answer.status == 202, answer.body
        await self.running.run_jobs()
        return await self.last_run()

    async def discard(self) -> None:
        """Put the knowledge base into the trash."""
        body = {"knowledge_base_id": self.base}
        assert (await self.ann.post("/v1/rag/knowledge-bases/trash", json=body)).status == 200

    async def take_back(self) -> None:
        """Take it out again."""
        assert (await self.ann.post(f"/v1/rag/knowledge-bases/trash/{self.base}/restore")).status == 200

    async def tick(self) -> None:
        """Let the clock begin what is due, and that end."""
        await self.running.platform.database.write(lambda unit: unit.enqueue(TICK, NoPayload()))
        await self.running.run_jobs()

    async def last_run(self) -> dict[str, Any]:
        answer = await self.ann.get(self.path("/runs"))
        assert answer.status == 200, answer.body
        return dict(answer.json()["items"][0])

    async def documents(self) -> dict[str, str]:
        """The text of each completed document by its file name."""
        listed = (await self.ann.get(f"/v1/rag/knowledge-bases/{self.base}/documents")).json()["items"]
        found = {}
        for one in listed:
            assert one["status"] == "completed", one
            path = f"/v1/rag/knowledge-bases/{self.base}/documents/{one['document_id']}/content"
            found[one["filename"]] = (await self.ann.get(path)).body.decode()
        assert len(found) == len(listed)
        return found

    async def items(self) -> dict[str, tuple[str, str | None]]:
        """State and reason of each item by its path."""
        answer = await self.ann.get(self.path("/items?limit=500"))
        return {one["path"]: (one["state"], one["reason"]) for one in answer.json()["items"]}

    def path(self, rest: str = "") -> str:
        return f"/v1/rag/sources/{self.source}{rest}"
