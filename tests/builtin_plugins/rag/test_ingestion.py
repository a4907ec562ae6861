"""The way of a document under bad conditions: deleted in the middle, engines that change, parsers that go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from builtin_plugins.documents import api as documents
from builtin_plugins.inference.api import Embedded
from builtin_plugins.vectors.api import VECTORS
from builtin_plugins.vectors.models import PointRecord
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.db.tables import BlobRecord, BlobReference, JobRecord
from kernel.sdk import Plugin, Unavailable, hookimpl
from kernel.testing import Running, Start, eventually
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    path_of,
    record,
    somebody,
    upload,
)
from tests.fakes.gated_embeddings import GatedEmbeddings
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.rows import execute

LONG = "\n".join(
    f"Line {number} of a text that has many passages, all of them different." for number in range(400)
)


async def leftovers(running: Running) -> dict[str, int]:
    platform = running.platform
    assert isinstance(platform.resource(VECTORS), SqlVectorStore)
    await platform.resource(VECTORS).purge()  # what dropped collections held is removed in the background
    tables: dict[str, Any] = {"points": PointRecord, "blobs": BlobRecord, "holders": BlobReference}
    queries: dict[str, Any] = {name: select(func.count()).select_from(of) for name, of in tables.items()}
    queries["documents"] = text("SELECT count(*) FROM rag_document")
    queries["waiting jobs"] = select(func.count()).select_from(JobRecord).where(JobRecord.status != "done")

    def count(session: Session) -> dict[str, int]:
        return {name: int(session.scalar(query) or 0) for name, query in queries.items()}

    found = await platform.database.read(count)
    home = platform.settings.home
    found["files"] = sum(path.is_file() for folder in ("blobs", "tmp") for path in (home / folder).rglob("*"))
    return {name: count for name, count in found.items() if count}


@pytest.mark.parametrize("stop_before", [1, 3])
@pytest.mark.parametrize("whole_base", [False, True])
async def test_deleted_while_it_is_ingested(
    start_platform: Start, database_url: str | None, stop_before: int, whole_base: bool
) -> None:
    """The deletion does not wait for the ingestion, and the ingestion leaves nothing when it goes on."""
    gate = GatedEmbeddings(stop_before)
    running = await start_platform("rag", "extractive_answers", gate, env={"DATABASE_URL": database_url})
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=0)
    document = (await upload(ann, base, "long.txt", LONG)).json()["document_id"]
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(30):
        await gate.arrived.wait()
        path = f"/v1/rag/knowledge-bases/{base}" if whole_base else path_of(base, document)
        assert (await ann.delete(path)).status == 200
        assert (await ann.get(path_of(base, document))).status == 404
        gate.go.set()
        await working
    assert await leftovers(running) == {}


async def test_uploaded_again_while_the_deleted_one_is_still_ingested(
    start_platform: Start, database_url: str | None
) -> None:
    gate = GatedEmbeddings(2)
    running = await start_platform("rag", "extractive_answers", gate, env={"DATABASE_URL": database_url})
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=0)
    old = (await upload(ann, base, "long.txt", LONG)).json()["document_id"]
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(30):
        await gate.arrived.wait()
        assert (await ann.delete(path_of(base, old))).status == 200
        new = (await upload(ann, base, "long.txt", LONG)).json()["document_id"]
        assert new != old
        gate.go.set()
        await working
        await running.run_jobs()  # the old run may have noticed the deletion and ended before the upload
    found = await record(ann, base, new)
    assert found["status"] == "completed" and found["chunk_count"] > 200
    assert await running.platform.resource(VECTORS).count(f"rag:{base}") == found["chunk_count"]
    shown = (await ann.get(f"/v1/rag/knowledge-bases/{base}")).json()
    assert (shown["document_count"], shown["vector_count"]) == (1, found["chunk_count"])


async def test_cancelled_while_it_is_embedded(start_platform: Start) -> None:
    """Its job does not wait for the passages that are being embedded, and ends as cancelled."""
    gate = GatedEmbeddings(2, all_after=True)
    running = await start_platform("rag", "extractive_answers", gate)
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=0)
    document = (await upload(ann, base, "long.txt", LONG)).json()["document_id"]
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(30):
        await gate.arrived.wait()
        assert (await ann.post(f"/v1/rag/knowledge-bases/{base}/ingestion/cancel")).status == 200
        await working
    (job,) = (await ann.get(f"/v1/jobs?subject={document}")).json()["items"]
    assert (job["status"], job["error"]) == ("failed", (await record(ann, base, document))["error"])
    assert "was cancelled" in job["error"]


@pytest.mark.parametrize("again", ["retry", "upload"])
async def test_started_over_while_it_is_read(start_platform: Start, again: str) -> None:
    """Cancelled in the middle and started over at once: the old run adds nothing to the new one."""
    gate = GatedEmbeddings(3, all_after=True)
    running = await start_platform("rag", "extractive_answers", gate)
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=0)
    document = (await upload(ann, base, "long.txt", LONG)).json()["document_id"]
    ingestion = f"/v1/rag/knowledge-bases/{base}/ingestion"

    async def two_batches() -> bool:
        return bool((await record(ann, base, document))["chunk_count"] == 192)

    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(30):
        await gate.arrived.wait()
        await eventually(two_batches)
        assert (await ann.post(f"{ingestion}/cancel")).status == 200
        if again == "retry":
            assert (await ann.post(f"{ingestion}/retry")).status == 200
        else:
            await upload(ann, base, "long.txt", LONG)
        gate.go.set()
        await working
    await running.run_jobs()
    found = await record(ann, base, document)
    shown = (await ann.get(path_of(base, document, "/chunks?limit=1"))).json()
    assert found["status"] == "completed" and shown["total"] == found["chunk_count"] > 200
    assert shown["items"][0]["text"].startswith("Line 0 ")


async def test_a_job_that_can_no_longer_be_read(start_platform: Start) -> None:
    """After an upgrade what was stored for a job may not fit: its document says so, and waits for nothing."""
    running = await start_platform("rag", "extractive_answers", HashEmbeddings())
    ann = await somebody(running)
    base = await make_base(ann)
    document = (await upload(ann, base, "hand.txt", HANDBOOK)).json()["document_id"]
    unfit = update(JobRecord).where(JobRecord.subject == document).values(payload={"x": 1})
    await execute(running.platform.database, unfit)
    await running.run_jobs()
    found = await record(ann, base, document)
    assert found["status"] == "failed" and found["error"]


async def attempts(running: Running) -> list[int]:
    query = select(JobRecord.attempts).where(JobRecord.name == "rag.ingest_document")
    query = query.order_by(JobRecord.created_at)
    return list(await running.platform.database.read(lambda session: session.scalars(query).all()))


async def test_another_engine(start_platform: Start) -> None:
    """Vectors of two engines are never mixed: uploads fail at once, questions are 503; both say why."""
    engine = HashEmbeddings("first-engine")
    running = await start_platform("rag", "extractive_answers", engine)
    ann = await somebody(running)
    base = await make_base(ann)
    assert (await ingest(running, ann, base))["status"] == "completed"
    pipeline = await make_pipeline(ann, base)
    engine.engine = "second-engine"
    failed = await ingest(running, ann, base, "b.txt", "Another text.")
    refused = await ask_raw(ann, pipeline, "What may a hotel cost?")
    assert (failed["status"], refused.status) == ("failed", 503)
    assert refused.json()["code"] == "engine_changed"
    for said in (failed["error"], refused.detail):
        assert "first-engine" in said and "second-engine" in said and "reembed" in said
    assert await attempts(running) == [1, 1]
    engine.engine = "first-engine"
    assert (await ingest(running, ann, base, "b.txt", "Another text."))["status"] == "completed"
    assert (await ask(ann, pipeline, "What may a hotel cost?"))["sources"]


def detect_foo(head: bytes) -> str | None:
    """The media type of files that begin with `FOO`."""
    return "application/x-foo" if head.startswith(b"FOO") else None


class FooParser(Plugin):
    """Reads files that begin with `FOO`."""

    name = "foo_parser"
    after = ("rag",)

    def __init__(self, target: str = "builtin_plugins.documents.text.from_text:parse") -> None:
        self.target = target

    @hookimpl(optionalhook=True)
    def register_parsers(self) -> list[documents.DocumentParser]:
        return [documents.DocumentParser("foo", ["application/x-foo"], self.target, detect_foo)]


async def test_a_parser_that_is_gone(start_platform: Start, platform_home: Path) -> None:
    running = await start_platform("rag", "extractive_answers", HashEmbeddings(), FooParser())
    ann = await somebody(running)
    base = await make_base(ann)
    document = (await upload(ann, base, "a.foo", "FOO\nSome words.")).json()
    assert document["content_type"] == "application/x-foo"
    without = await start_platform("rag", "extractive_answers", HashEmbeddings(), home=platform_home)
    await without.run_jobs()
    found = await record(ann, base, document["document_id"])
    assert found["status"] == "failed" and await attempts(running) == [1]
    assert "application/x-foo" in found["error"]
    assert (await ingest(running, ann, base, "a.foo", "FOO\nSome words."))["status"] == "completed"


async def test_a_parser_that_cannot_be_started(start_platform: Start) -> None:
    """A plugin that names a module that is not there: the installation's fault, said so, no retries."""
    running = await start_platform(
        "rag", "extractive_answers", HashEmbeddings(), FooParser("no_such_module:parse")
    )
    ann = await somebody(running)
    found = await ingest(running, ann, await make_base(ann), "a.foo", "FOO\nSome words.")
    assert found["status"] == "failed" and "plugin" in found["error"]
    assert await attempts(running) == [1]


async def test_a_parser_that_fails(start_platform: Start, caplog: pytest.LogCaptureFixture) -> None:
    """The log has its name and last output: its author must see that the parser failed, not the document."""
    running = await start_platform(
        "rag", "extractive_answers", HashEmbeddings(), FooParser("tests.fakes.child_tasks:pid")
    )
    ann = await somebody(running)
    found = await ingest(running, ann, await make_base(ann), "a.foo", "FOO\nSome words.")
    assert found["status"] == "failed"
    assert "'foo' (tests.fakes.child_tasks:pid)" in caplog.text
    assert "TypeError" in caplog.text


@pytest.mark.parametrize("failure", [Unavailable("away"), RuntimeError("cuda error")])
async def test_an_engine_that_is_away_for_a_moment(start_platform: Start, failure: Exception) -> None:
    engine = HashEmbeddings()
    running = await start_platform("rag", "extractive_answers", engine)
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=0)
    failures = [failure]

    def sometimes() -> None:
        if failures and engine.calls > 100:
            raise failures.pop(0)

    engine.before = sometimes
    found = await ingest(running, ann, base, "long.txt", LONG)
    assert found["status"] == "completed" and await attempts(running) == [2]
    page = (await ann.get(path_of(base, found["document_id"], "/chunks?limit=500"))).json()
    assert [item["chunk_index"] for item in page["items"]] == list(range(found["chunk_count"]))
    assert len({item["chunk_id"] for item in page["items"]}) == found["chunk_count"] == page["total"]


async def test_an_engine_that_answers_nonsense(start_platform: Start) -> None:
    """Too few vectors for the texts is an error of the engine: 503 for a question, not an index error."""

    class Short(HashEmbeddings):
        @hookimpl(optionalhook=True)
        async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
            made = await super().embed_texts(model, texts)
            return made and Embedded(made.vectors[:0], made.engine)

    running = await start_platform("rag", "extractive_answers", Short())
    ann = await somebody(running)
    base = await make_base(ann)
    pipeline = await make_pipeline(ann, base)
    refused = await ask_raw(ann, pipeline, "What?")
    assert refused.status == 503 and "0 vectors" in refused.detail


async def test_an_engine_whose_numbers_are_none(start_platform: Start) -> None:
    """It would find nothing, or anything: the plugin is named instead, to the client and in `/health`."""

    class Broken(HashEmbeddings):
        @hookimpl(optionalhook=True)
        async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
            made = await super().embed_texts(model, texts)
            return made and Embedded(made.vectors * np.nan, made.engine)

    running = await start_platform("rag", "extractive_answers", Broken())
    ann = await somebody(running)
    refused = await ann.post("/v1/rag/knowledge-bases", json={"name": "Handbook"})
    assert (refused.json()["code"], "'hash_embeddings'" in refused.detail) == ("plugin_failed", True)
    health = (await running.anonymous.get("/health")).json()
    assert "embed_texts" in health["plugins"]["hash_embeddings"]["reason"]


async def test_too_many_passages(start_platform: Start) -> None:
    """A text that would make more passages than allowed fails, and none of them is left."""
    running = await start_platform(
        "rag", "extractive_answers", HashEmbeddings(), env={"PLATFORM_RAG_MAX_CHUNKS": "100"}
    )
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=100, chunk_overlap=0)
    found = await ingest(running, ann, base, "long.txt", LONG)
    assert found["status"] == "failed" and "Split it" in found["error"]
    assert await running.platform.resource(VECTORS).staged(f"rag:{base}", found["document_id"]) == 0
    assert (await ingest(running, ann, base, "short.md", HANDBOOK))["status"] == "completed"


async def test_a_large_document_gives_its_place_back(start_platform: Start, database_url: str | None) -> None:
    env = {"DATABASE_URL": database_url, "PLATFORM_RAG_LARGE_DOCUMENT_MB": "0.01"}
    running = await start_platform("rag", HashEmbeddings(), env=env)
    ann, ben = await running.user(), await running.user()
    words = "".join(f"Sentence number {number} tells of a station. " for number in range(5000))
    made = {}
    for actor, size in ((ann, len(words)), (ben, len(words) // 4)):
        base = await make_base(actor, chunk_size=60, chunk_overlap=0)
        answer = await upload(actor, base, "a.txt", words[:size])
        assert answer.status == 202
        made[actor.user["id"]] = path_of(base, answer.json()["document_id"])
    await running.run_jobs()
    long, short = [(await actor.get(made[actor.user["id"]])).json() for actor in (ann, ben)]
    assert (long["status"], short["status"]) == ("completed", "completed")
    assert long["chunk_count"] > 20 * 96 * 2 and short["chunk_count"] > 500
    assert short["completed_at"] < long["completed_at"]
