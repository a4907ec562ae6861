"""Another embedding model: questions go on, nothing is lost; one that ends early leaves the old one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.errors import EngineChanged
from builtin_plugins.rag.filters.binding import bind
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.questions.retrieval import Sought, retrieve
from builtin_plugins.rag.rights.reading import VISITORS
from builtin_plugins.rag.services.language_detection import tell_languages
from builtin_plugins.vectors.api import VECTORS
from builtin_plugins.vectors.models import CollectionRecord
from kernel.sdk import NoPayload, hookimpl
from kernel.testing import Actor, Start, environment, platforms
from tests.builtin_plugins.rag.rag_support import ingest, make_base, path_of, record, somebody, upload
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.processes import running_process
from tests.fakes.waiting import eventually

BASES = "/v1/rag/knowledge-bases"
OLD, NEW = "all-minilm", "multilingual-e5-small"
GERMAN = "Die Katzen schlafen auf den Bänken vor der Stube, bis es im Herbst zu kalt wird."
_OF_THE_SIXTH_RELEASE = (
    """UPDATE vectors_point SET payload = '{"page": null, "char_start": 0, "char_end": 80}'""",
    "UPDATE rag_document SET language_told = false",
)
TOPICS = ("harbour", "lighthouse", "ferry", "anchor", "compass", "rudder")


class TwoModels(HashEmbeddings):
    """Two models with engines and lengths of their own; the new one waits at a gate with passages."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived, self.go = asyncio.Event(), asyncio.Event()
        self.go.set()
        self.passing = 0  # batches that don't wait

    @hookimpl
    async def embed_texts(
        self, model: str, texts: Sequence[str], purpose: inference.Purpose
    ) -> Embedded | None:
        found = await super().embed_texts(model, texts)
        if found is None or model == OLD:
            return found
        if purpose == "passage":
            self.passing -= 1
            if self.passing < 0:
                self.arrived.set()
                await self.go.wait()
        return Embedded(np.hstack([found.vectors, np.zeros_like(found.vectors)]), "hash-2")


async def shelf(ann: Actor) -> str:
    base = await make_base(ann, embedding_model=OLD)
    for topic in TOPICS:
        found = await ingest(ann.running, ann, base, f"{topic}.txt", f"All about the {topic} of Senja.")
        assert found["status"] == "completed", found
    return base


async def long_shelf(ann: Actor) -> tuple[str, int]:
    """A knowledge base with a document of one passage, then one of hundreds; and the number of passages."""
    base = await make_base(ann, embedding_model=OLD, chunk_size=100, chunk_overlap=0)
    small = await ingest(ann.running, ann, base, "small.txt", "All about the harbour of Senja.")
    lines = "\n\n".join(
        f"Lamp {number} stands at the harbour of Senja, on pier {number}." for number in range(250)
    )
    large = await ingest(ann.running, ann, base, "large.txt", lines)
    total = int(small["chunk_count"] + large["chunk_count"])
    assert total > 2 * 96
    return base, total


async def reembed(ann: Actor, base: str, model: str = NEW) -> str:
    answer = await ann.post(f"{BASES}/{base}/reembed", json={"embedding_model": model})
    assert answer.status == 202, answer.body
    return str(answer.json()["id"])


async def sources(ann: Actor, base: str, question: str = "Senja") -> set[str]:
    answer = await ann.post(f"{BASES}/{base}/search", json={"question": question, "top_k": 50})
    assert answer.status == 200, answer.body
    return {item["source"] for item in answer.json()["items"]}


async def model_of(ann: Actor, base: str) -> str:
    return str((await ann.get(f"{BASES}/{base}")).json()["embedding_model"])


def collections(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(CollectionRecord)) or 0


async def test_a_model_that_runs_on_another_engine(start_platform: Start) -> None:
    """The remedy of the refusal: the same model again gives all documents vectors of its new engine."""
    engine = HashEmbeddings()
    running = await start_platform("rag", "extractive_answers", engine)
    ann = await somebody(running)
    base = await shelf(ann)
    engine.engine = "hash-3"
    refused = await ann.post(f"{BASES}/{base}/search", json={"question": "Senja"})
    assert (refused.status, refused.json()["code"]) == (503, "engine_changed")
    await reembed(ann, base, OLD)
    await running.run_jobs()
    assert await sources(ann, base) == {f"{topic}.txt" for topic in TOPICS}


@pytest.mark.long
async def test_questions_uploads_and_deletions_meanwhile(
    start_platform: Start, database_url: str | None
) -> None:
    """Hundreds of questions see all of it, before, during and after the switch."""
    least = 300
    models = TwoModels()
    running = await start_platform("rag", "extractive_answers", models, env={"DATABASE_URL": database_url})
    ann = await somebody(running)
    base = await shelf(ann)
    models.go.clear()
    job = await reembed(ann, base)
    again = await ann.post(f"{BASES}/{base}/reembed", json={"embedding_model": NEW})
    assert (again.status, again.json()["code"]) == (409, "reembedding_under_way")
    everything = {f"{topic}.txt" for topic in TOPICS}
    asked, over = 0, False

    async def go_on_asking() -> None:
        nonlocal asked
        while not over or asked < least:
            assert await sources(ann, base) >= everything - {"anchor.txt"}
            asked += 1

    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(120):
        await models.arrived.wait()
        asking = [asyncio.create_task(go_on_asking()) for _ in range(3)]
        late = (await upload(ann, base, "late.txt", "All about the late buoy of Senja.")).json()[
            "document_id"
        ]
        rows = (await ann.get(f"{BASES}/{base}/documents")).json()["items"]
        anchor = next(row["document_id"] for row in rows if row["filename"] == "anchor.txt")
        assert (await ann.delete(path_of(base, anchor))).status == 200
        assert await model_of(ann, base) == OLD
        models.go.set()
        await working
        await running.run_jobs()
        over = True
        await asyncio.gather(*asking)
    assert asked >= least and await model_of(ann, base) == NEW
    assert (await record(ann, base, late))["status"] == "completed"
    assert await sources(ann, base) == (everything | {"late.txt"}) - {"anchor.txt"}
    done = (await ann.get(f"/v1/jobs/{job}")).json()
    assert (done["status"], done["result"]) == ("done", f"{BASES}/{base}")
    await running.platform.resource(VECTORS).settled()  # type: ignore[attr-defined]
    assert await running.platform.database.read(collections) == 1


async def test_progress_counts_passages(start_platform: Start) -> None:
    """Progress doesn't stand still during one large document: 96 passages are reported at a time."""
    models = TwoModels()
    running = await start_platform("rag", "extractive_answers", models)
    ann = await somebody(running)
    base, total = await long_shelf(ann)
    models.go.clear()
    models.passing = 2
    job = await reembed(ann, base)

    async def told() -> Any:
        return (await ann.get(f"/v1/jobs/{job}")).json()["progress"]

    async def halfway() -> bool:
        return bool(await told() == {"done": 192, "total": total, "unit": "passages"})

    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(60):
        await models.arrived.wait()
        await eventually(halfway, 30)
        models.go.set()
        await working
    assert await told() == {"done": total, "total": total, "unit": "passages"}


async def test_a_question_that_began_before_the_switch(start_platform: Start) -> None:
    """It is asked again by the new model; where nothing was switched, another engine is an error."""
    models = TwoModels()
    running = await start_platform("rag", "extractive_answers", models)
    platform, ann = running.platform, await somebody(running)
    kb_id = await shelf(ann)
    bases = await platform.database.read(lambda session: session.scalars(select(KnowledgeBase)).all())
    await reembed(ann, kb_id)
    await running.run_jobs()
    assert [base.embedding_model for base in bases] == [OLD]
    everything = await platform.database.read(bind, VISITORS, [kb_id], [])
    sought = Sought("Senja", 50, everything)
    found = await retrieve(platform, bases, sought)
    assert {one.source for one in found} == {f"{topic}.txt" for topic in TOPICS}
    assert [base.embedding_model for base in bases] == [NEW]
    bases[0].embedding_model = OLD
    with pytest.raises(EngineChanged):
        await retrieve(platform, bases, sought)


async def test_languages_that_are_told_meanwhile(start_platform: Start, database_url: str | None) -> None:
    models = TwoModels()
    running = await start_platform("rag", "extractive_answers", models, env={"DATABASE_URL": database_url})
    ann = await somebody(running)
    base = await make_base(ann, embedding_model=OLD)
    await ingest(running, ann, base, "cats.txt", GERMAN)
    platform = running.platform
    async with platform.database.schema_change() as connection:
        for statement in _OF_THE_SIXTH_RELEASE:
            await connection.execute(text(statement))
    models.go.clear()
    await reembed(ann, base)
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(60):
        await models.arrived.wait()
        await tell_languages(platform, NoPayload())
        models.go.set()
        await working
        await tell_languages(platform, NoPayload())
    assert await model_of(ann, base) == NEW
    found = await ann.post(f"{BASES}/{base}/search", json={"question": "Katze"})
    (passage,) = found.json()["items"]
    assert passage["scores"]["text"] > 0.0  # "Katzen", by its German stem


async def test_cancelled(start_platform: Start) -> None:
    """The old model answers as before, nothing of the change is left, and it can be started again."""
    models = TwoModels()
    running = await start_platform("rag", "extractive_answers", models)
    ann = await somebody(running)
    base = await shelf(ann)
    job = await reembed(ann, base)
    assert (await ann.post(f"/v1/jobs/{job}/cancel")).status in (200, 202)
    await running.run_jobs()
    assert await model_of(ann, base) == OLD and len(await sources(ann, base)) == len(TOPICS)
    await reembed(ann, base)
    await running.run_jobs()
    assert await model_of(ann, base) == NEW and len(await sources(ann, base)) == len(TOPICS)


@pytest.mark.long
async def test_killed_in_the_middle(tmp_path: Path) -> None:
    """A worker killed during its third batch leaves the old model; the next one finishes without repeating
    the first two.
    """
    async with platforms(tmp_path) as start:
        running = await start("rag", "extractive_answers", HashEmbeddings())
        vectors, ann = running.platform.resource(VECTORS), await somebody(running)
        base, total = await long_shelf(ann)
        job = await reembed(ann, base)
        env = environment(tmp_path, {"HANGS_AT": "3", "HANGING": str(tmp_path / "hanging")})
        command = ("-m", "tests.builtin_plugins.rag.tree_worker")
        async with running_process(*command, env=env, log=tmp_path / "first.log") as worker:
            await eventually(lambda: (tmp_path / "hanging").exists(), 60)
            await worker.kill()
        assert await model_of(ann, base) == OLD and await vectors.count(f"rag:{base}") == total
        async with running_process(*command, env={**env, "HANGS_AT": "2"}, log=tmp_path / "second.log"):

            async def done() -> bool:
                found: dict[str, Any] = (await ann.get(f"/v1/jobs/{job}")).json()
                return bool(found["status"] == "done")

            await eventually(done, 60)
        assert await model_of(ann, base) == NEW and await vectors.count(f"rag:{base}") == total
        assert await sources(ann, base, "All about the harbour of Senja.") == {"small.txt", "large.txt"}


async def test_many_small_documents(start_platform: Start, database_url: str | None) -> None:
    """They share a call of the model, which may be on another machine. One that is deleted during the call is
    left out, and the others are kept.
    """
    models = TwoModels()
    running = await start_platform("rag", "extractive_answers", models, env={"DATABASE_URL": database_url})
    ann = await somebody(running)
    base = await shelf(ann)
    anchor = next(
        row["document_id"]
        for row in (await ann.get(f"{BASES}/{base}/documents")).json()["items"]
        if row["filename"] == "anchor.txt"
    )
    calls: list[None] = []
    await reembed(ann, base)
    models.before = lambda: calls.append(None)
    models.go.clear()
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(60):
        await models.arrived.wait()
        assert (await ann.delete(path_of(base, anchor))).status == 200
        models.go.set()
        await working
    assert len(calls) == 1
    assert await model_of(ann, base) == NEW
    assert await sources(ann, base) == {f"{topic}.txt" for topic in TOPICS} - {"anchor.txt"}


async def test_a_model_that_is_away_for_long(start_platform: Start) -> None:
    """Where its server is down for many attempts in a row, what was embedded is kept until it is back."""
    models = TwoModels()
    running = await start_platform("rag", "extractive_answers", models)
    ann = await somebody(running)
    base, total = await long_shelf(ann)
    calls = 0

    def away() -> None:
        nonlocal calls
        calls += 1
        if 2 <= calls < 22:
            raise RuntimeError("the server of the model is down")

    await reembed(ann, base)
    models.before = away
    await running.run_jobs()
    assert await model_of(ann, base) == NEW
    assert calls == 20 + -(-total // 96)
