"""An engine that accepts connections and does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from builtin_plugins.milvus.engine import EngineAway, MilvusEngine
from builtin_plugins.milvus.settings import MilvusSettings
from builtin_plugins.milvus.store import MilvusStore
from builtin_plugins.vectors.conformance import COLLECTION, thing
from kernel.db.engine import Database
from tests.builtin_plugins.milvus.conftest import IDENTITY
from tests.builtin_plugins.milvus.test_milvus_following import NEAR, write

SECONDS = 2.0


@pytest.fixture
async def silent(database: Database) -> AsyncIterator[MilvusStore]:
    """A store on an engine that says nothing."""

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        settings = MilvusSettings(uri=f"http://127.0.0.1:{port}", timeout_seconds=SECONDS)
        store = MilvusStore(database, MilvusEngine(settings, IDENTITY))
        yield store
        await store.close()


async def test_it_holds_up_nothing_else(database: Database, silent: MilvusStore) -> None:
    """Searches fail together after its time, and other threads' work goes on meanwhile."""
    import pymilvus  # noqa: F401 - so that the time is that of the engine

    await write(database, silent, thing(1))
    loop, slowest = asyncio.get_running_loop(), 0.0
    async with asyncio.timeout(10 * SECONDS):
        searches = asyncio.gather(
            *(silent.search(COLLECTION, NEAR) for _ in range(24)), return_exceptions=True
        )
        while not searches.done():
            begin = loop.time()
            await asyncio.to_thread(int)
            slowest = max(slowest, loop.time() - begin)
            await asyncio.sleep(0.01)
        assert {type(one) for one in await searches} == {EngineAway}
    assert slowest < SECONDS / 2
