"""Receipts of deletions: what they say, that they are genuine, and that looking again finds what is left."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.services.receipts import Signer
from builtin_plugins.vectors.api import VECTORS, Point, Query, SqlVectorStore
from kernel.sdk import Unit, utc_now
from kernel.testing import Actor, Running, Start, audited
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    ingest,
    make_base,
    make_pipeline,
    path_of,
    somebody,
    upload,
)
from tests.cli.conftest import Cli
from tests.cli.conftest import bare_cli as bare_cli
from tests.cli.conftest import cli as cli
from tests.fakes.hash_embeddings import HashEmbeddings

BASES = "/v1/rag/knowledge-bases"


@pytest.fixture
async def running(start_platform: Start) -> Running:
    return await start_platform("rag", "extractive_answers", "graph_rag", "conversations", HashEmbeddings())


@pytest.fixture
async def ann(running: Running) -> Actor:
    return await somebody(running)


@pytest.fixture
async def base(ann: Actor) -> str:
    return await make_base(ann, embedding_model="all-minilm")


async def delete(actor: Actor, path: str) -> dict[str, Any]:
    answer = await actor.delete(path)
    assert answer.status == 200, answer.body
    return dict(answer.json()["receipt"])


def places(receipt: dict[str, Any]) -> dict[str, tuple[int, bool]]:
    return {one["place"]: (one["count"], one["pending"]) for one in receipt["removed"]}


async def verify(cli: Cli, tmp_path: Path, receipt: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt))
    done = await asyncio.to_thread(cli, "rag", "verify-deleted", str(file), "--json")
    assert done.stdout, done.stderr
    return done.exit_code, json.loads(done.stdout)


async def test_of_a_document(running: Running, ann: Actor, cli: Cli, tmp_path: Path) -> None:
    """It counts every place, also the graph and an answer that cites it; afterwards all are empty."""
    base = await make_base(ann, embedding_model="all-minilm", graph=True)
    record = await ingest(running, ann, base)
    pipeline = await make_pipeline(ann, base)
    await ask(ann, pipeline, "What is the daily allowance for meals?", conversation_id="talk")
    receipt = await delete(ann, path_of(base, record["document_id"]))
    chunks = record["chunk_count"]
    assert receipt["digest"] == hashlib.sha256(HANDBOOK.encode()).hexdigest() == record["sha256"]
    found = places(receipt)
    own = {"rows": 1, "vectors": chunks, "texts": chunks, "files": 1, "graphs": 1}
    assert {name: found[name][0] for name in own} == own
    assert found["conversation_citations"] == (1, False)
    assert "handbook" not in json.dumps(receipt)
    code, answer = await verify(cli, tmp_path, receipt)
    assert (code, answer["genuine"], set(answer["left"].values())) == (0, True, {0}), answer
    assert set(answer["left"]) >= set(found)
    [entry] = await audited(running, "rag.document.receipt", record["document_id"])
    assert entry.after_state == {"receipt": receipt}


def test_names_of_keys() -> None:
    """A key has the same sixteen digits in every release, so that those of older receipts are found again."""
    assert Signer("a key of the second release").key_id == "fc515a1c93d22684"
    assert Signer("another key").key_id != Signer("a key of the second release").key_id


async def test_of_nothing(running: Running, ann: Actor, base: str) -> None:
    """A knowledge base without documents had no passages; the receipt is kept under its id."""
    found = places(receipt := await delete(ann, f"{BASES}/{base}"))
    assert {name: found[name] for name in ("rows", "vectors", "texts", "files")} == {
        "rows": (0, False),
        "vectors": (0, False),
        "texts": (0, False),
        "files": (0, False),
    }
    [entry] = await audited(running, "rag.knowledge_base.receipt", base)
    assert entry.after_state == {"receipt": receipt}


async def test_of_a_knowledge_base(running: Running, ann: Actor, cli: Cli, tmp_path: Path) -> None:
    """It lists the digests of all documents; until the job has run, looking again finds rows and files."""
    base = await make_base(ann, embedding_model="all-minilm", graph=True)
    first = await ingest(running, ann, base)
    await upload(ann, base, "late.md", "# Late\n\nNobody has read this yet.")
    receipt = await delete(ann, f"{BASES}/{base}")
    digests = sorted(one["sha256"] for one in receipt["documents"])
    assert len(digests) == 2 and first["sha256"] in digests
    lines = "".join(f"{one}\n" for one in digests).encode()
    assert receipt["digest"] == hashlib.sha256(lines).hexdigest()
    assert places(receipt)["graphs"] == (1, True)
    code, answer = await verify(cli, tmp_path, receipt)
    assert code == 1 and (answer["left"]["rows"], answer["left"]["vectors"]) == (2, 0), answer
    await running.run_jobs()
    code, answer = await verify(cli, tmp_path, receipt)
    assert (code, set(answer["left"].values())) == (0, {0}), answer


async def test_what_came_back_is_found(
    running: Running, ann: Actor, base: str, cli: Cli, tmp_path: Path
) -> None:
    record = await ingest(running, ann, base)
    receipt = await delete(ann, path_of(base, record["document_id"]))
    file = await running.platform.blobs.local(record["sha256"])
    assert not file.exists()
    file.write_bytes(HANDBOOK.encode())
    code, answer = await verify(cli, tmp_path, receipt)
    assert (code, answer["left"]["files"]) == (1, 1)
    file.unlink()

    def restore(unit: Unit) -> None:
        unit.session.add(
            Document(
                id=record["document_id"],
                knowledge_base_id=base,
                filename="handbook.md",
                content_type="text/markdown",
                size_bytes=1,
                sha256="0" * 64,
                uploaded_at=utc_now(),
            )
        )

    await running.platform.database.write(restore)
    code, answer = await verify(cli, tmp_path, receipt)
    assert (code, answer["left"]["rows"], answer["left"]["files"]) == (1, 1, 0)


async def test_a_change_of_the_embedding_model_is_looked_into(
    running: Running, ann: Actor, base: str, cli: Cli, tmp_path: Path
) -> None:
    """Vectors that a change collects belong to the document; a copy that came back is found."""
    record = await ingest(running, ann, base)
    started = await ann.post(f"{BASES}/{base}/reembed", json={"embedding_model": "multilingual-e5-small"})
    assert started.status == 202, started.body
    receipt = await delete(ann, path_of(base, record["document_id"]))
    assert (await verify(cli, tmp_path, receipt))[0] == 0

    def put_back(unit: Unit) -> None:
        row = unit.session.get(KnowledgeBase, base)
        assert row is not None and row.coming_collection is not None
        vector = np.ones(4, dtype=np.float32)
        point = Point("p", record["document_id"], 0, "text", vector, {"char_start": 0, "char_end": 4})
        vectors = running.platform.resource(VECTORS)
        vectors.ensure(unit, row.coming_collection, 4, "engine")
        vectors.stage(unit, row.coming_collection, [point])

    await running.platform.database.write(put_back)
    code, answer = await verify(cli, tmp_path, receipt)
    assert (code, answer["left"]["vectors"], answer["left"]["texts"]) == (1, 1, 1), answer


async def test_words_in_saved_indexes_are_pending_until_they_are_gone(
    running: Running, ann: Actor, base: str, cli: Cli, tmp_path: Path
) -> None:
    record = await ingest(running, ann, base)
    vectors = running.platform.resource(VECTORS)
    assert isinstance(vectors, SqlVectorStore)
    collection = f"rag:{base}"
    stored = await vectors.vectors(collection, record["document_id"], 1, 0)
    assert stored is not None
    place = {"char_start": 0, "char_end": 4}
    points = [Point(f"p{at}", "more", at, "text", stored.vectors[0], place) for at in range(2000)]

    def publish(unit: Unit) -> None:
        vectors.stage(unit, collection, points)
        vectors.publish(unit, collection, "more")

    await running.platform.database.write(publish)
    await vectors.search(collection, Query(stored.vectors[0], 5, text="meals"))
    await vectors.settled()
    receipt = await delete(ann, path_of(base, record["document_id"]))
    count, pending = places(receipt)["index_files"]
    assert count >= 1 and pending
    code, answer = await verify(cli, tmp_path, receipt)
    assert (code, answer["left"]["index_files"]) == (1, count)
    for kind in vectors.kinds:
        await vectors.renew(collection, kind)
    gc.collect()  # the files of a former index go with it
    code, answer = await verify(cli, tmp_path, receipt)
    assert (code, {name: left for name, left in answer["left"].items() if left}) == (0, {})


async def test_a_missing_key_is_refused(
    running: Running, ann: Actor, base: str, cli: Cli, tmp_path: Path
) -> None:
    record = await ingest(running, ann, base)
    receipt = await delete(ann, path_of(base, record["document_id"]))
    key = running.platform.settings.home / "secrets" / "deletion-receipts"
    key.unlink()
    (tmp_path / "receipt.json").write_text(json.dumps(receipt))
    done = await asyncio.to_thread(cli, "rag", "verify-deleted", str(tmp_path / "receipt.json"))
    assert done.exit_code == 1 and "key" in done.stderr and "deletion-receipts" in done.stderr, done.stderr
    assert not key.exists()


async def test_a_changed_receipt_is_refused(
    running: Running, ann: Actor, base: str, cli: Cli, tmp_path: Path
) -> None:
    record = await ingest(running, ann, base)
    receipt = await delete(ann, path_of(base, record["document_id"]))
    changed: list[dict[str, Any]] = [
        {"digest": "0" * 64},
        {"deleted_by": "somebody else"},
        {"deleted_at": "2020-01-01T00:00:00Z"},
        {"removed": []},
        {"signature": "0" * 64},
    ]
    for change in changed:
        code, answer = await verify(cli, tmp_path, receipt | change)
        assert (code, answer["genuine"]) == (1, False), change
    (tmp_path / "other.json").write_text("[1]")
    done = await asyncio.to_thread(cli, "rag", "verify-deleted", str(tmp_path / "other.json"))
    assert done.exit_code == 1 and "other.json" in done.stderr


async def test_shared_content_stays(running: Running, ann: Actor, cli: Cli, tmp_path: Path) -> None:
    """A file that another document has as well is no remainder of this one."""
    bases = [await make_base(ann, embedding_model="all-minilm") for _ in range(2)]
    first, _second = [await ingest(running, ann, base) for base in bases]
    receipt = await delete(ann, path_of(bases[0], first["document_id"]))
    code, answer = await verify(cli, tmp_path, receipt)
    assert (code, answer["left"]["files"]) == (0, 0)
