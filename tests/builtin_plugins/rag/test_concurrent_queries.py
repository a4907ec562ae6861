"""Questions while documents come and go: never an error, never a passage of what was deleted before."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from builtin_plugins.vectors.api import VECTORS
from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.rag.rag_support import (
    ask_raw,
    make_base,
    make_pipeline,
    path_of,
    settled,
    somebody,
    upload,
)
from tests.fakes.hash_embeddings import HashEmbeddings

ROUNDS = 6


@pytest.fixture
async def running(start_platform: Start, database_url: str | None) -> Running:
    """A platform of its own, with an engine that is quick."""
    return await start_platform(
        "rag", "extractive_answers", HashEmbeddings(), env={"DATABASE_URL": database_url}
    )


async def test_documents_come_and_go_under_questions(running: Running) -> None:
    """Six askers, two writers: all answers are 200, show nothing deleted, and what stays is always found."""
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=120, chunk_overlap=0)
    pipeline = await make_pipeline(ann, base)
    kept = (await upload(ann, base, "kept.txt", "The harbour opens at six in the morning.")).json()[
        "document_id"
    ]
    await running.run_jobs()
    deleted: set[str] = set()
    asked, writing = 0, asyncio.Event()

    async def write(writer: int) -> None:
        for number in range(ROUNDS):
            text = f"The harbour master {secrets.token_hex(6)} writes rule {writer} {number}.\n" * 5
            document = (await upload(ann, base, f"{writer}-{number}.txt", text)).json()["document_id"]
            await settled(ann, base, document)
            assert (await ann.delete(path_of(base, document))).status == 200
            deleted.add(document)

    async def work() -> None:
        while not writing.is_set():
            await running.run_jobs()
            await asyncio.sleep(0.01)

    async def ask(hybrid: bool) -> None:
        nonlocal asked
        while not writing.is_set():
            gone = frozenset(deleted)
            answer = await ask_raw(ann, pipeline, "When does the harbour open?", hybrid=hybrid, top_k=50)
            assert answer.status == 200, answer.body
            found = {source["document_id"] for source in answer.json()["sources"]}
            assert kept in found
            assert not found & gone
            asked += 1

    async def write_all() -> None:
        try:
            await asyncio.gather(write(0), write(1))
        finally:
            writing.set()

    async with asyncio.timeout(100):
        await asyncio.gather(write_all(), work(), *(ask(number % 2 == 0) for number in range(6)))
    assert asked > 2 * ROUNDS and len(deleted) == 2 * ROUNDS
    assert await running.platform.resource(VECTORS).count(f"rag:{base}") == 1


async def test_a_knowledge_base_goes_under_questions(running: Running) -> None:
    ann = await somebody(running)
    for _ in range(3):
        base = await make_base(ann)
        await upload(ann, base, "kept.txt", f"The harbour opens at six. {base}")
        await running.run_jobs()
        pipeline, over = await make_pipeline(ann, base), asyncio.Event()
        asking = [asyncio.create_task(ask_until_gone(ann, pipeline, over)) for _ in range(4)]
        await asyncio.sleep(0.05)
        confirmed = {"confirm_delete_pipeline_ids": [pipeline]}
        assert (await ann.delete(f"/v1/rag/knowledge-bases/{base}", json=confirmed)).status == 200
        over.set()
        async with asyncio.timeout(20):
            await asyncio.gather(*asking)


async def ask_until_gone(actor: Actor, pipeline: str, over: asyncio.Event) -> None:
    """Ask until the pipeline is unknown, which it must be to every question from `over` on."""
    status = 200
    while status == 200:
        began_after = over.is_set()
        answer = await ask_raw(actor, pipeline, "When does the harbour open?", hybrid=True)
        status = answer.status
        assert status in (200, 404, 409), answer.body
        assert not (began_after and status == 200)
