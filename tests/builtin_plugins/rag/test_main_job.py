"""The main job: drop documents in, ask, get a cited answer."""

from __future__ import annotations

import pytest

from kernel.testing import Actor, Running, Start

HANDBOOK = """# Travel handbook

Employees book trains in second class. The daily allowance for meals is 42 EUR.

## Hotels

A hotel may cost up to 130 EUR a night. Breakfast is paid by the company.
"""


@pytest.fixture
async def running(start_platform: Start, database_url: str | None) -> Running:
    """A platform with the plugins of the main job."""
    return await start_platform("embeddings", "models", "rag", env={"DATABASE_URL": database_url})


async def make_base(actor: Actor, **fields: object) -> str:
    """A knowledge base; answers its id."""
    answer = await actor.post("/v1/rag/knowledge-bases", json={"name": "Handbook", **fields})
    assert answer.status == 200, answer.body
    return str(answer.json()["id"])


async def make_pipeline(actor: Actor, *bases: str) -> str:
    """A pipeline; answers its id."""
    answer = await actor.post("/v1/rag/pipeline", json={"name": "Ask", "knowledge_base_ids": list(bases)})
    assert answer.status == 200, answer.body
    return str(answer.json()["pipeline_id"])


async def test_question_is_answered_with_citations(running: Running) -> None:
    """Upload, ingest, ask: the answer quotes the passage and cites it; nothing relevant is told so."""
    ann = await running.user()
    base = await make_base(ann)
    upload = await ann.upload(f"/v1/rag/knowledge-bases/{base}/upload", "handbook.md", HANDBOOK.encode())
    assert upload.status == 202, upload.body
    document = upload.json()
    assert document["status"] == "processing"
    await running.run_jobs()
    path = f"/v1/rag/knowledge-bases/{base}/documents/{document['document_id']}"
    record = (await ann.get(path)).json()
    assert record["status"] == "completed", record
    assert record["chunk_count"] == record["vector_count"] > 0
    pipeline = await make_pipeline(ann, base)
    for hybrid in (False, True):
        question = {"question": "How much may a hotel cost per night?", "hybrid": hybrid}
        answer = await ann.post(f"/v1/rag/pipeline/{pipeline}/query", json=question)
        assert answer.status == 200, answer.body
        body = answer.json()
        assert "130 EUR" in body["answer"]
        assert "[1]" in body["answer"]
        assert body["model_used"] == "extractive"
        source = body["sources"][0]
        assert source["source"] == "handbook.md"
        assert source["text"] == HANDBOOK[source["char_start"] : source["char_end"]]
    nothing = await ann.post(
        f"/v1/rag/pipeline/{pipeline}/query", json={"question": "Who won the chess olympiad of 1972?"}
    )
    assert nothing.json()["sources"] == []
    assert "do not contain" in nothing.json()["answer"]


async def test_deleted_document_no_longer_answers(running: Running) -> None:
    """After the answer to the deletion no row, passage, vector or file of the document is left."""
    ann = await running.user()
    base = await make_base(ann)
    upload = await ann.upload(f"/v1/rag/knowledge-bases/{base}/upload", "handbook.md", HANDBOOK.encode())
    document = upload.json()
    await running.run_jobs()
    pipeline = await make_pipeline(ann, base)
    path = f"/v1/rag/knowledge-bases/{base}/documents/{document['document_id']}"
    question = {"question": "How much may a hotel cost per night?", "hybrid": True}
    assert (await ann.post(f"/v1/rag/pipeline/{pipeline}/query", json=question)).json()["sources"]
    deleted = await ann.delete(path)
    assert deleted.status == 200
    assert (await ann.get(path)).status == 404
    after = (await ann.post(f"/v1/rag/pipeline/{pipeline}/query", json=question)).json()
    assert after["sources"] == []
    assert not running.platform.blobs.path(document["sha256"]).exists()
    assert await running.platform.vectors.count(f"rag:{base}") == 0
