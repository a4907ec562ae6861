"""Routes about the service itself (wire-facts 11.6), on the gateway and on its own port."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, somebody
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_capabilities(ann: Actor) -> None:
    """What is live, and nothing that is not."""
    answer = (await ann.get("/v1/rag/capabilities")).json()
    assert answer["methods"] == {
        "conversational": False,
        **dict.fromkeys(("standard", "hyde", "self_rag", "auto", "corrective", "raptor"), True),
    }
    assert {name: state["available"] for name, state in answer["retrievers"].items()} == {
        "dense": True,
        "hybrid": True,
        "parent_child": True,
        "metadata_filter": True,
    }
    assert answer["enhancers"] == {
        "rerank": {"available": False, "backend": None, "place": None},
        "compress": {"available": True, "backend": None, "place": None},
    }
    assert set(answer["optional_deps"]) == {"sentence_transformers", "rank_bm25"}


async def test_decision_stats(ann: Actor, base: str) -> None:
    """Decisions by rules are not counted: without a model there are none."""
    await ask(ann, await make_pipeline(ann, base), "What does a hotel cost?", method="auto")
    assert (await ann.get("/v1/rag/decision-stats")).json() == {
        "available": True,
        "total_decisions": 0,
        "strategy_distribution": {},
        "complexity_distribution": {},
        "avg_confidence": None,
    }


async def test_initialize(running: Running, ann: Actor) -> None:
    """The embedding engine is loaded; nobody without an account has it loaded."""
    answer = await ann.post("/v1/rag/initialize")
    assert (answer.status, set(answer.json())) == (200, {"message"})
    assert (await running.anonymous.post("/v1/rag/initialize")).status == 401


async def test_root(ann: Actor) -> None:
    """Name, version and state; no model runtime is configured here."""
    answer = (await ann.get("/v1/rag")).json()
    assert (answer["name"], answer["status"], answer["ollama_available"]) == (
        "rag-pipeline",
        "running",
        False,
    )


async def test_singular_paths(running: Running, ann: Actor) -> None:
    """Old clients write `knowledge-base`; they reach the same routes, which say that they are deprecated."""
    base = (await ann.post("/v1/rag/knowledge-base", json={"name": "Old"})).json()["id"]
    document = await ann.upload(f"/v1/rag/knowledge-base/{base}/upload", "a.txt", b"Some words.")
    assert document.status == 202
    await running.run_jobs()
    path = f"/v1/rag/knowledge-base/{base}"
    for rest in ("", "/documents", f"/documents/{document.json()['document_id']}/chunks"):
        assert (await ann.get(path + rest)).json() == (
            await ann.get(f"/v1/rag/knowledge-bases/{base}{rest}")
        ).json()
    assert (await ann.delete(path)).status == 200
    paths = (await running.anonymous.get("/openapi.json")).json()["paths"]
    old = {
        path: item
        for path, item in paths.items()
        if "/knowledge-base" in path and "/knowledge-bases" not in path
    }
    assert old and all(operation["deprecated"] for item in old.values() for operation in item.values())


@pytest.mark.asyncio(loop_scope="function")
async def test_the_service_by_itself(start_platform: Start) -> None:
    """On its own port the routes stand at the root and below /v1; /health tells its counts."""
    running = await start_platform("rag", "extractive_answers", HashEmbeddings(), only="rag-pipeline")
    ann = await somebody(running)
    made: list[Any] = []
    for prefix in ("", "/v1"):
        answer = await ann.post(f"{prefix}/knowledge-bases", json={"name": "n"})
        assert answer.status == 200
        made.append(answer.json()["id"])
        assert (await ann.get(f"{prefix}/knowledge-bases/{made[0]}")).status == 200
        assert (await ann.get(f"{prefix}/capabilities")).status == 200
    health = (await running.anonymous.get("/health")).json()
    assert (health["service"], health["status"]) == ("rag-pipeline", "healthy")
    assert (health["knowledge_bases"], health["rag_pipelines"]) == (2, 0)
    assert (health["ollama_available"], health["ollama_initialized"]) == (False, False)


@pytest.mark.asyncio(loop_scope="function")
async def test_processed_documents_are_counted(start_platform: Start) -> None:
    """Once each and by outcome, in the process that answers /metrics, whichever one ingested them."""
    api = await start_platform("rag", "extractive_answers", HashEmbeddings())
    worker = await start_platform("rag", "extractive_answers", HashEmbeddings(), role="worker")
    ann = await somebody(api)
    base = await make_base(ann)
    await ingest(worker, ann, base, "a.txt", "Some words.")
    await ingest(api, ann, base, "b.txt", "Some other words.")
    await ingest(worker, ann, base, "c.pdf", "%PDF-1.7 broken")
    expected = {("success", 2.0), ("failed", 1.0)}
    async with asyncio.timeout(10):
        while await outcomes(api) != expected:  # noqa: ASYNC110 - notices come when they come
            await asyncio.sleep(0.05)
    # A later document has passed all rounds that could count an earlier one again.
    await ingest(worker, ann, base, "d.txt", "And words again.")
    async with asyncio.timeout(10):
        while await outcomes(api) == expected:  # noqa: ASYNC110 - notices come when they come
            await asyncio.sleep(0.05)
    assert await outcomes(api) == {("success", 3.0), ("failed", 1.0)}


async def outcomes(running: Running) -> set[tuple[str, float]]:
    text = (await running.anonymous.get("/metrics")).body.decode()
    found = re.findall(r'documents_processed_total\{status="(\w+)"\} ([\d.]+)', text)
    return {(status, float(count)) for status, count in found}
