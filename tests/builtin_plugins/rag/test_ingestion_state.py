"""The ingestion of a knowledge base as a whole: how far it is, cancelling all of it, trying again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from kernel.sdk import Embedded, hookimpl
from kernel.testing import Start, eventually
from tests.builtin_plugins.rag import documents
from tests.builtin_plugins.rag.rag_support import HANDBOOK, ask, make_base, make_pipeline, somebody, upload
from tests.fakes.hash_embeddings import HashEmbeddings


async def test_counts_cancel_and_retry(start_platform: Start, database_url: str | None) -> None:
    """What waits is counted and has a place; cancelled documents are failed ones, and can be tried again."""
    running = await start_platform("rag", HashEmbeddings(), env={"DATABASE_URL": database_url})
    ann, bob = await somebody(running), await somebody(running)
    base, other = await make_base(ann), await make_base(bob)
    path = f"/v1/rag/knowledge-bases/{base}/ingestion"
    assert (await ann.get(path)).json()["queue_position"] is None
    await upload(bob, other, "theirs.txt", "Another text.")
    for number in range(3):
        await upload(ann, base, f"{number}.md", f"{HANDBOOK}\nRoom {number}.")
    waiting = (await ann.get(path)).json()
    assert (waiting["processing"], waiting["queue_position"], waiting["eta_seconds"]) == (3, 2, None)
    assert (await ann.post(f"{path}/cancel")).json() == {"documents": 3}
    await running.run_jobs()
    cancelled = (await ann.get(path)).json()
    assert (cancelled["processing"], cancelled["completed"], cancelled["failed"]) == (0, 0, 3)
    assert (await ann.post(f"{path}/retry")).json() == {"documents": 3}
    assert (await ann.post(f"{path}/retry")).json() == {"documents": 0}
    await running.run_jobs()
    done = (await ann.get(path)).json()
    assert (done["processing"], done["completed"], done["failed"]) == (0, 3, 0)
    assert done["documents_per_minute"] > 0 and done["passages_per_second"] > 0
    assert (await ask(ann, await make_pipeline(ann, base), "What may a hotel cost?"))["sources"]
    for action in ("", "/cancel", "/retry"):
        answer = await (bob.post(path + action) if action else bob.get(path))
        assert answer.status == 404


async def test_small_documents_together(start_platform: Start) -> None:
    """Texts of two knowledge bases in one batch; one without text fails alone, a deleted one is gone."""
    running = await start_platform("rag", HashEmbeddings())
    ann = await somebody(running)
    first, second = await make_base(ann), await make_base(ann, chunk_size=100, chunk_overlap=0)
    for number in range(20):
        await upload(
            ann, first if number % 2 else second, f"{number}.txt", f"Text {number} of several. " * 20
        )
    await upload(ann, first, "blank.txt", " \n\t" * 50)
    gone = (await upload(ann, first, "gone.txt", "Soon deleted.")).json()["document_id"]
    assert (await ann.delete(f"/v1/rag/knowledge-bases/{first}/documents/{gone}")).status == 200
    await running.run_jobs()
    for base, count in ((first, 11), (second, 10)):
        listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
        assert len(listed) == count
        for one in listed:
            wanted = "failed" if one["filename"] == "blank.txt" else "completed"
            assert (one["status"], one["chunk_count"] > 0) == (wanted, wanted == "completed")


async def test_parsers_that_are_killed(start_platform: Start) -> None:
    """Whoever kills parser processes in the middle of a batch loses nothing, and nothing is there twice."""
    running = await start_platform("rag", HashEmbeddings())
    ann = await somebody(running)
    base = await make_base(ann)
    before = set(psutil.Process().children(recursive=True))
    for number in range(40):
        await upload(ann, base, f"{number}.txt", f"Text {number} of several. " * 20)
    working, killed = asyncio.create_task(running.run_jobs()), 0
    while not working.done():
        for child in set(psutil.Process().children(recursive=True)) - before if killed < 4 else ():
            child.kill()
            killed += 1
        await asyncio.sleep(0.005)
    await working
    assert killed >= 4
    listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    assert [(one["status"], one["chunk_count"]) for one in listed] == [("completed", 1)] * 40


class Gate(HashEmbeddings):
    """Lets two batches through, and the others when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        if self.calls >= 150:
            await self.go.wait()
        return await super().embed_texts(model, texts)


async def test_a_thousand_pages_show_how_far_they_are(start_platform: Start, tmp_path: Path) -> None:
    """The page that is read, then the pages that are embedded, of how many."""
    gate = Gate()
    running = await start_platform("rag", gate)
    ann = await somebody(running)
    base = await make_base(ann)
    file = documents.pdf(tmp_path / "book", [documents.prose(40, 40 * page) for page in range(1_000)])
    document = (await upload(ann, base, "book.pdf", file.read_bytes())).json()["document_id"]

    async def job() -> dict[str, Any]:
        return dict((await ann.get(f"/v1/jobs?subject={document}")).json()["items"][0])

    async def reads_pages() -> bool:
        return str((await job())["message"]).startswith("Reading page ")

    async def embeds_pages() -> bool:
        found = (await job())["progress"]
        return (found["unit"], found["total"]) == ("pages", 1_000) and 0 < found["done"] < 1_000

    working = asyncio.create_task(running.run_jobs())
    await eventually(reads_pages)
    await eventually(embeds_pages)
    gate.go.set()
    await working
    listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    assert [(one["status"], one["page_count"]) for one in listed] == [("completed", 1_000)]
