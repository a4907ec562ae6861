"""The ingestion of a knowledge base as a whole: how far it is, cancelling all of it, trying again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import update

from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.models import Document
from kernel.sdk import hookimpl, utc_now
from kernel.testing import Start
from tests.builtin_plugins.documents import sample_documents as documents
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    make_base,
    make_pipeline,
    settled,
    somebody,
    upload,
)
from tests.fakes.gated_embeddings import GatedEmbeddings
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.rows import execute


async def test_counts_cancel_and_retry(start_platform: Start) -> None:
    """What waits is counted and has a place; cancelled documents are failed ones, and can be tried again."""
    running = await start_platform("rag", "extractive_answers", HashEmbeddings())
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
    jobs = (await ann.get("/v1/jobs")).json()["items"]
    assert [job["status"] for job in jobs] == ["failed"] * 3 and "was cancelled" in jobs[0]["error"]
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


async def test_idle_time_does_not_count(start_platform: Start) -> None:
    """A document of four minutes ago says nothing about how long those that wait now will take."""
    running = await start_platform("rag", "extractive_answers", HashEmbeddings())
    ann = await somebody(running)
    base = await make_base(ann)
    path = f"/v1/rag/knowledge-bases/{base}/ingestion"
    for name, status, began, ended in (
        ("a", "completed", 240, 239),
        ("b", "completed", 21, 1),
        ("c", "processing", 20, None),
    ):
        document = (await upload(ann, base, f"{name}.txt", f"One text of the same length: {name}")).json()
        values = {
            "status": status,
            "chunk_count": 10,
            "uploaded_at": utc_now() - timedelta(seconds=began),
            "completed_at": None if ended is None else utc_now() - timedelta(seconds=ended),
        }
        changed = update(Document).where(Document.id == document["document_id"]).values(values)
        await execute(running.platform.database, changed)
    shown = (await ann.get(path)).json()
    assert 20 <= shown["eta_seconds"] <= 40
    assert shown["passages_per_second"] >= 0.5


async def test_small_documents_together(start_platform: Start) -> None:
    running = await start_platform("rag", "extractive_answers", HashEmbeddings())
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


class CountedCalls(HashEmbeddings):
    """How many texts each call was given."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        self.batches.append(len(texts))
        return await super().embed_texts(model, texts)


async def test_64_kilobytes_are_read_together(start_platform: Start) -> None:
    models = CountedCalls()
    running = await start_platform("rag", "extractive_answers", models)
    ann = await somebody(running)
    base = await make_base(ann, chunk_size=8000, chunk_overlap=0)
    models.batches.clear()  # one was to try the model
    for number in range(4):
        await upload(ann, base, f"{number}.txt", (f"Text {number} of several. " * 1000)[: 16 * 1024])
    await running.run_jobs()
    listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    assert {one["status"] for one in listed} == {"completed"}
    assert models.batches == [sum(one["chunk_count"] for one in listed)]


class SlowEndpoint(HashEmbeddings):
    """One of the models answers only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.told = asyncio.Event()

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        if model == "all-minilm":
            await self.told.wait()
        return await super().embed_texts(model, texts)


async def test_models_do_not_wait_for_each_other(start_platform: Start) -> None:
    """Of texts that are read together, those of a model that answers are stored before the others are."""
    models = SlowEndpoint()
    running = await start_platform("rag", "extractive_answers", models)
    ann = await somebody(running)
    models.told.set()
    slow, quick = await make_base(ann, embedding_model="all-minilm"), await make_base(ann)
    models.told.clear()
    for base in (slow, quick):
        await upload(ann, base, "a.txt", "A text.")
    working = asyncio.create_task(running.run_jobs())
    found = (await ann.get(f"/v1/rag/knowledge-bases/{quick}/documents")).json()["items"]
    assert (await settled(ann, quick, found[0]["document_id"]))["status"] == "completed"
    models.told.set()
    await working
    listed = (await ann.get(f"/v1/rag/knowledge-bases/{slow}/documents")).json()["items"]
    assert listed[0]["status"] == "completed"


class BrokenEndpoint(HashEmbeddings):
    """One of the models fails while the other computes; which texts that one was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []
        self.broken = False
        self.failed = asyncio.Event()

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        if self.broken and model == "all-minilm":
            self.failed.set()
            raise RuntimeError("the endpoint is down")
        if self.broken:
            self.given += texts
            await self.failed.wait()
            await asyncio.sleep(0)  # the failure has been heard of
        return await super().embed_texts(model, texts)


async def test_a_model_that_fails_stops_no_other(start_platform: Start) -> None:
    """Of texts that are read together, those of the other models are embedded once, and not again."""
    models = BrokenEndpoint()
    running = await start_platform("rag", "extractive_answers", models)
    ann = await somebody(running)
    down, good = await make_base(ann, embedding_model="all-minilm"), await make_base(ann)
    models.broken = True
    for base in (down, good):
        await upload(ann, base, "a.txt", "A text.")
    await running.run_jobs()
    assert models.given == ["A text."]
    for base, status in ((down, "failed"), (good, "completed")):
        listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
        assert listed[0]["status"] == status


class PausedEmbeddings(HashEmbeddings):
    """Says when it is asked for vectors of several texts, and gives them when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.told = asyncio.Event(), asyncio.Event()

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        if len(texts) > 1:
            self.asked.set()
            await self.told.wait()
        return await super().embed_texts(model, texts)


async def test_one_of_many_is_cancelled(start_platform: Start) -> None:
    """A text that is read together with others stays out when it is cancelled before they are stored."""
    paused = PausedEmbeddings()
    running = await start_platform("rag", "extractive_answers", paused)
    ann = await somebody(running)
    base = await make_base(ann)
    sent = [await upload(ann, base, f"{number}.txt", f"Text {number}.") for number in range(3)]
    ids = [one.json()["document_id"] for one in sent]
    working = asyncio.create_task(running.run_jobs())
    await paused.asked.wait()
    jobs = (await ann.get("/v1/jobs")).json()["items"]
    chosen = next(job for job in jobs if ids[1] in str(job))
    assert (await ann.post(f"/v1/jobs/{chosen['id']}/cancel")).status in (200, 202)
    paused.told.set()
    await working
    listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    assert {one["document_id"]: one["status"] for one in listed} == {
        ids[0]: "completed",
        ids[1]: "failed",
        ids[2]: "completed",
    }


@pytest.mark.long
async def test_parsers_that_are_killed(start_platform: Start) -> None:
    """Whoever kills parser processes at their work loses nothing, and nothing is there twice."""
    running = await start_platform("rag", "extractive_answers", HashEmbeddings())
    ann = await somebody(running)
    base = await make_base(ann)
    uploaded = 0

    async def killed_in_a_batch() -> bool:
        """Whether a process could be killed that came up to parse 20 more documents: the first to be seen."""
        nonlocal uploaded
        for number in range(uploaded, uploaded + 20):
            await upload(ann, base, f"{number}.txt", f"Text {number} of several. " * 20)
        uploaded += 20
        before, killed = _parser_processes(), False
        working = asyncio.create_task(running.run_jobs())
        while not working.done():
            found = set() if killed else _parser_processes() - before
            with suppress(psutil.NoSuchProcess):
                for process in found:
                    process.kill()
                    killed = True
                    break
            await asyncio.sleep(0.002)
        await working
        listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
        assert [(one["status"], one["chunk_count"]) for one in listed] == [("completed", 1)] * uploaded
        return killed

    assert await killed_in_a_batch()  # the process that others are forked from: the batch waits for it
    for _ in range(10):  # one of those others: it may be done before it is seen, and this in all ten rounds
        if await killed_in_a_batch():
            break


def _parser_processes() -> set[psutil.Process]:
    """The platform's prepared process for parsers, and those forked from it, that run."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "builtin_plugins.documents.child" in process.cmdline():  # empty once it has ended
                found.add(process)
    return found


@pytest.mark.long
async def test_a_thousand_pages_show_how_far_they_are(
    start_platform: Start, platform_home: Path, tmp_path: Path
) -> None:
    gate = GatedEmbeddings(151, all_after=True)
    running = await start_platform("rag", "extractive_answers", gate)
    ann = await somebody(running)
    base = await make_base(ann)
    file = documents.pdf(tmp_path / "book", [documents.prose(40, 40 * page) for page in range(1_000)])
    document = (await upload(ann, base, "book.pdf", file.read_bytes())).json()["document_id"]

    async def job() -> dict[str, Any]:
        return dict((await ann.get(f"/v1/jobs?subject={document}")).json()["items"][0])

    async def listen() -> set[str]:
        """What can be seen, by its first two words; lets the last batches through once they wait.

        The process that reads is held up until its page is told: it may be quicker than a look.
        """
        seen, held = set[str](), set[psutil.Process]()
        while not working.done():
            files = platform_home.glob("**/*.jsonl")  # noqa: ASYNC240 - a few
            if not held and any(file.stat().st_size for file in files):
                held = _parser_processes() - before
                for process in held:
                    process.suspend()
            found = await job()
            seen.add(" ".join(found["message"].split()[:2]))
            if found["message"].startswith("Reading page"):
                seen.add(found["message"].partition(" of ")[2])
                for process in held:
                    with suppress(psutil.NoSuchProcess):
                        process.resume()
            progress = found["progress"]
            if (progress["unit"], progress["total"]) == ("pages", 1_000) and 0 < progress["done"] < 1_000:
                seen.add("some of the pages")
                gate.go.set()
            await asyncio.sleep(0.02)
        return seen

    before = _parser_processes()
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(120):
        seen = await listen()
        await working
    assert {"Reading page", "1,000", "Embedding passage", "some of the pages"} <= seen
    listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    assert [(one["status"], one["page_count"]) for one in listed] == [("completed", 1_000)]
