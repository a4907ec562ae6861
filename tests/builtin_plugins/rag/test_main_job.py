"""The main job: drop documents in, ask, get a cited answer."""

from __future__ import annotations

import pytest

from builtin_plugins.vectors.api import VECTORS
from kernel.testing import Running
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    ingest,
    make_base,
    make_pipeline,
    path_of,
    somebody,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.each_database
async def test_question_is_answered_with_citations(running: Running) -> None:
    """Upload, ingest, ask: the answer quotes the passage and cites it; about nothing it says so."""
    ann = await somebody(running)
    base = await make_base(ann)
    document = await ingest(running, ann, base, "handbook.md", HANDBOOK)
    assert document["status"] == "completed"
    assert document["chunk_count"] == document["vector_count"] > 0
    pipeline = await make_pipeline(ann, base)
    for hybrid in (False, True):
        answer = await ask(ann, pipeline, "How much may a hotel cost per night?", hybrid=hybrid)
        assert "130 EUR" in answer["answer"] and "[1]" in answer["answer"]
        assert answer["model_used"] == "extractive"
        source = answer["sources"][0]
        assert source["source"] == "handbook.md"
        assert source["text"] == HANDBOOK[source["char_start"] : source["char_end"]]
    nothing = await ask(ann, pipeline, "Who won the chess olympiad of 1972?")
    assert nothing["sources"] == [] and "do not contain" in nothing["answer"]


@pytest.mark.each_database
async def test_deleted_document_no_longer_answers(running: Running) -> None:
    """After the answer to the deletion no row, passage, vector or file of the document is left."""
    ann = await somebody(running)
    base = await make_base(ann)
    document = await ingest(running, ann, base, "handbook.md", f"{HANDBOOK}\n{base}")
    pipeline = await make_pipeline(ann, base)
    question = "How much may a hotel cost per night?"
    assert (await ask(ann, pipeline, question, hybrid=True))["sources"]
    path = path_of(base, document["document_id"])
    assert (await ann.delete(path)).status == 200
    assert (await ann.get(path)).status == 404
    assert (await ask(ann, pipeline, question, hybrid=True))["sources"] == []
    assert not (await running.platform.blobs.local(document["sha256"])).exists()
    assert await running.platform.resource(VECTORS).count(f"rag:{base}") == 0
