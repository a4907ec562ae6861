"""A platform that searches with Milvus: receipts, `doctor`, `/health` and the change of store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from builtin_plugins.milvus.engine import MilvusEngine
from builtin_plugins.milvus.identity import identity_of
from builtin_plugins.milvus.store import MilvusStore
from builtin_plugins.vectors.api import VECTORS, Query
from kernel.testing import Running, Start
from tests.builtin_plugins.milvus.milvus_server import MilvusLite
from tests.builtin_plugins.rag.rag_support import ingest, make_base, path_of, somebody
from tests.cli.conftest import Cli
from tests.cli.conftest import bare_cli as bare_cli
from tests.cli.conftest import cli as cli
from tests.fakes.hash_embeddings import HashEmbeddings


def settings(server: MilvusLite, store: str) -> dict[str, str]:
    return {"PLATFORM_VECTOR_STORE": store, "PLATFORM_MILVUS_URI": server.settings.uri}


async def started(start: Start, server: MilvusLite, store: str) -> Running:
    return await start("rag", "milvus", HashEmbeddings(), env=settings(server, store))


async def findings(cli: Cli) -> list[dict[str, Any]]:
    done = await asyncio.to_thread(cli, "doctor", "--json")
    return [one for one in json.loads(done.stdout) if one["check"] == "milvus"]


async def verified(cli: Cli, file: Path) -> tuple[int, int]:
    done = await asyncio.to_thread(cli, "rag", "verify-deleted", str(file), "--json")
    return done.exit_code, json.loads(done.stdout)["left"]["search_engine"]


@pytest.mark.long
async def test_a_receipt_is_pending_until_the_engine_has_followed(
    start_platform: Start, server: MilvusLite, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verification asks the engine itself; `doctor` compares the counts."""
    for name, value in settings(server, "milvus").items():
        monkeypatch.setenv(name, value)
    running = await started(start_platform, server, "milvus")
    ann = await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm")
    record = await ingest(running, ann, base)
    store = running.platform.resource(VECTORS)
    assert isinstance(store, MilvusStore)
    await store.following.fill()
    engine = store.following.engine
    assert await asyncio.to_thread(engine.count, "label >= 0") == await store.following.total() > 0
    assert [one["status"] for one in await findings(cli)] == ["ok"]
    answer = await ann.delete(path_of(base, record["document_id"]))
    receipt = answer.json()["receipt"]
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt))
    (part,) = [one for one in receipt["removed"] if one["place"] == "search_engine"]
    assert part["pending"]
    await store.following.fill()
    assert await verified(cli, file) == (0, 0)
    stray = {"label": 10**6, "collection": 1, "owner": record["document_id"], "sample": 0}
    row = {**stray, "weights": {0: 1.0}, "vector": [1.0] + [0.0] * 383}
    await asyncio.to_thread(engine.put, 384, [row])
    assert await verified(cli, file) == (1, 1)
    assert [one["status"] for one in await findings(cli)] == ["warning"]
    done = await asyncio.to_thread(cli, "milvus", "fill", "--again")
    assert done.exit_code == 0, done.stderr
    assert await verified(cli, file) == (0, 0)
    monkeypatch.setenv("PLATFORM_MILVUS_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("PLATFORM_MILVUS_TIMEOUT_SECONDS", "1")
    done = await asyncio.to_thread(cli, "rag", "verify-deleted", str(file), "--json")
    assert done.exit_code != 0 and "127.0.0.1:9" not in done.stdout
    assert [one["status"] for one in await findings(cli)] == ["failed"]


@pytest.mark.long
async def test_the_change_to_milvus_and_back(
    start_platform: Start, server: MilvusLite, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is filled while FAISS serves, and finds the same; `clear` leaves nothing in it."""
    for name, value in settings(server, "faiss").items():
        monkeypatch.setenv(name, value)
    running = await started(start_platform, server, "faiss")
    ann = await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm")
    record = await ingest(running, ann, base)
    done = await asyncio.to_thread(cli, "milvus", "fill")
    assert done.exit_code == 0, done.stderr
    database = running.platform.database
    engine = MilvusEngine(server.settings, await identity_of(database))
    store = MilvusStore(database, engine)
    assert await asyncio.to_thread(engine.count, "label >= 0") == await store.following.total() > 0
    collection = f"rag:{base}"
    stored = await store.vectors(collection, record["document_id"], 1, 0)
    assert stored is not None
    query = Query(stored.vectors[0], 3, text="meals")
    milvus, faiss = [
        await one.search(collection, query) for one in (store, running.platform.resource(VECTORS))
    ]
    assert [hit.point.id for hit in milvus] == [hit.point.id for hit in faiss] != []
    done = await asyncio.to_thread(cli, "milvus", "clear", "--yes")
    assert done.exit_code == 0, done.stderr
    assert await asyncio.to_thread(engine.count, "label >= 0") == 0
    assert await findings(cli) == []
    await store.close()
