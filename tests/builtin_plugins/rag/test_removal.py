"""Deleting a knowledge base: gone from every answer at once, whatever is in it; from the disk soon after."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.vectors.api import VECTORS
from builtin_plugins.vectors.models import CollectionRecord, PointRecord
from kernel.db.tables import BlobRecord, BlobReference
from kernel.testing import Actor, Reply, Running, Start, audited, environment
from tests.builtin_plugins.rag.rag_support import ask_raw, ingest, make_base, make_pipeline, somebody, upload
from tests.builtin_plugins.rag.removal_worker import DeletionsPlugin
from tests.builtin_plugins.rag.test_reembedding import TwoModels, long_shelf, reembed
from tests.fakes.deleting import delete_account
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.processes import running_process
from tests.fakes.statements import statements
from tests.fakes.waiting import eventually

BASES = "/v1/rag/knowledge-bases"
MANY = 120  # documents of more than two transactions


def left(session: Session) -> list[int]:
    """Knowledge bases, documents, collections, points, blobs and their references in the database."""
    tables = (KnowledgeBase, Document, CollectionRecord, PointRecord, BlobRecord, BlobReference)
    return [session.scalar(select(func.count()).select_from(table)) or 0 for table in tables]


def files(running: Running) -> int:
    """How many blobs lie in the folder."""
    return sum(path.is_file() for path in (running.platform.settings.home / "blobs").rglob("*"))


async def boot(
    start_platform: Start, url: str | None, *more: object, env: dict[str, str] | None = None
) -> Running:
    return await start_platform(
        "rag", "extractive_answers", HashEmbeddings(), *more, env={"DATABASE_URL": url, **(env or {})}
    )


async def fill(ann: Actor, base: str, count: int) -> list[str]:
    """So many documents of their own, not ingested yet; answers their ids."""
    few = asyncio.Semaphore(4)  # more at once than an account may have would be refused on a slow machine

    async def sent(n: int) -> Reply:
        async with few:
            return await upload(ann, base, f"{n}.md", f"# Text {n}\n\nOf {base}")

    answers = await asyncio.gather(*(sent(n) for n in range(count)))
    assert {answer.status for answer in answers} == {202}
    return [answer.json()["document_id"] for answer in answers]


async def test_gone_at_once(start_platform: Start, database_url: str | None) -> None:
    """Before any job has run, no route and no pipeline shows anything of it."""
    running = await boot(start_platform, database_url)
    ann = await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm")
    other = await make_base(ann, embedding_model="all-minilm")
    document = (await ingest(running, ann, base, "own.md", "# Own\n\nThe lighthouse keeper is called Ylva."))[
        "document_id"
    ]
    await ingest(running, ann, other, "other.md", "# Other\n\nBread is baked on Mondays.")
    only, both = await make_pipeline(ann, base), await make_pipeline(ann, base, other, name="Both")
    confirmed = {"confirm_delete_pipeline_ids": [only, both]}
    admin = await somebody(running, role="admin")
    theirs = await make_pipeline(admin, base, other)
    assert (await ann.delete(f"{BASES}/{base}", json=confirmed)).status == 200
    for actor in (ann, admin):
        listed = (await actor.get(BASES)).json()
        assert base not in [item["id"] for item in listed["items"]]
        for path in ("", "/documents", f"/documents/{document}", f"/documents/{document}/content"):
            assert (await actor.get(f"{BASES}/{base}{path}")).status == 404, path
        assert (await actor.get(f"{BASES}/{base}/documents/{document}/chunks")).status == 404
        assert (await actor.delete(f"{BASES}/{base}/documents/{document}")).status == 404
        assert (await upload(actor, base, "late.md", "# Late")).status == 404
    answer = await ask_raw(admin, theirs, "What is the lighthouse keeper called?")
    assert b"Ylva" not in answer.body and document.encode() not in answer.body


async def test_cost_of_the_answer(start_platform: Start, database_url: str | None) -> None:
    """The request sends the same statements for two documents and for a hundred."""
    running = await boot(start_platform, database_url)
    ann, sent = await somebody(running), []
    for count in (2, 100):
        base = await make_base(ann, embedding_model="all-minilm")
        await fill(ann, base, count)
        with statements() as seen:
            assert (await ann.delete(f"{BASES}/{base}")).status == 200
            sent.append(len([line for line in seen if "kernel_job" not in line]))
        await running.run_jobs()
    assert abs(sent[0] - sent[1]) <= 3, sent  # what the platform does by itself at the time


async def test_removed(start_platform: Start, database_url: str | None) -> None:
    """The job removes rows and files, and each document's deletion is told once."""
    heard = DeletionsPlugin()
    running = await boot(start_platform, database_url, heard)
    ann = await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm")
    await ingest(running, ann, base)
    ids = await fill(ann, base, MANY)
    assert (await ann.delete(f"{BASES}/{base}")).status == 200
    await running.run_jobs()
    await running.platform.resource(VECTORS).settled()  # type: ignore[attr-defined]
    assert await running.platform.database.read(left) == [0] * 6
    assert files(running) == 0
    assert len(heard.heard) == MANY + 1 and set(ids) < set(heard.heard)


async def test_bytes_of_others_stay(start_platform: Start, database_url: str | None) -> None:
    """Neither another knowledge base nor a file that it shares is touched."""
    heard = DeletionsPlugin()
    running = await boot(start_platform, database_url, heard)
    ann = await somebody(running)
    first, second = [await make_base(ann, embedding_model="all-minilm") for _ in range(2)]
    await ingest(running, ann, first)
    kept = await ingest(running, ann, second)
    assert (await ann.delete(f"{BASES}/{first}")).status == 200
    await running.run_jobs()
    content = await ann.get(f"{BASES}/{second}/documents/{kept['document_id']}/content")
    assert content.status == 200 and len(heard.heard) == 1
    assert (await ann.get(f"{BASES}/{second}")).json()["document_count"] == 1


async def test_ingestion_under_way(start_platform: Start, database_url: str | None) -> None:
    """A document that is being embedded while its knowledge base is deleted leaves nothing behind."""
    embeddings = HashEmbeddings()
    running = await start_platform(
        "rag", "extractive_answers", embeddings, env={"DATABASE_URL": database_url}
    )
    ann = await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm")
    await upload(ann, base)
    deleted: list[asyncio.Task[object]] = []
    embeddings.before = lambda: (
        deleted or deleted.append(asyncio.ensure_future(ann.delete(f"{BASES}/{base}")))
    )
    await running.run_jobs()
    assert (await deleted[0]).status == 200  # type: ignore[attr-defined]
    await running.run_jobs()
    await running.platform.resource(VECTORS).settled()  # type: ignore[attr-defined]
    assert await running.platform.database.read(left) == [0] * 6


async def test_change_of_the_model_under_way(start_platform: Start, database_url: str | None) -> None:
    """Vectors by the model that was to come go with the knowledge base, and the change ends by itself."""
    models = TwoModels()
    running = await start_platform("rag", "extractive_answers", models, env={"DATABASE_URL": database_url})
    ann = await somebody(running)
    base, _ = await long_shelf(ann)
    models.go.clear()
    models.passing = 1
    await reembed(ann, base)
    working = asyncio.create_task(running.run_jobs())
    async with asyncio.timeout(60):
        await models.arrived.wait()
        assert (await running.platform.database.read(left))[2] == 2
        assert (await ann.delete(f"{BASES}/{base}")).status == 200
        models.go.set()
        await working
    await running.run_jobs()
    await running.platform.resource(VECTORS).settled()  # type: ignore[attr-defined]
    assert await running.platform.database.read(left) == [0] * 6


@pytest.mark.long
@pytest.mark.durability
async def test_killed_in_the_middle(
    start_platform: Start, platform_home: Path, database_url: str | None, tmp_path: Path
) -> None:
    """A worker killed between two documents: the next one removes the rest, and no deletion goes untold."""
    folder = tmp_path / "deletions"
    folder.mkdir()
    running = await boot(start_platform, database_url, DeletionsPlugin())
    ann = await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm")
    ids = await fill(ann, base, MANY)
    assert (await ann.delete(f"{BASES}/{base}")).status == 200

    async def removed() -> bool:
        return not any(await running.platform.database.read(left))

    env = environment(platform_home, {"DATABASE_URL": database_url, "DELETIONS": str(folder)})
    command: Sequence[str] = ("-m", "tests.builtin_plugins.rag.removal_worker")
    dies = {**env, "DELETIONS_DIE": "1"}
    async with running_process(*command, env=dies, log=tmp_path / "first.log") as worker:
        assert await worker.wait(60) == -signal.SIGKILL
    assert len(list(folder.iterdir())) == 1
    async with running_process(*command, env=env, log=tmp_path / "second.log"):
        await eventually(lambda: {path.name for path in folder.iterdir()} == set(ids), 120)
        await eventually(removed, 30)
    assert files(running) == 0


async def test_with_its_owner(start_platform: Start, database_url: str | None) -> None:
    """A deleted account's knowledge bases and pipelines go as if each had been deleted; others' stay, even
    the bytes of the same file.
    """
    heard = DeletionsPlugin()
    running = await boot(start_platform, database_url, heard)
    ann, bob = await somebody(running), await somebody(running)
    bases = [await make_base(ann, embedding_model="all-minilm") for _ in range(2)]
    for base in bases:
        await ingest(running, ann, base)
        await make_pipeline(ann, base)
    theirs = await make_base(bob, embedding_model="all-minilm")
    await ingest(running, bob, theirs)
    pipeline = await make_pipeline(bob, theirs)
    await delete_account(running, ann)
    await running.platform.resource(VECTORS).settled()  # type: ignore[attr-defined]
    assert (await running.platform.database.read(left))[:3] == [1, 1, 1] and files(running) == 1
    assert len(heard.heard) == 2
    assert b"130 EUR" in (await ask_raw(bob, pipeline, "How much may a hotel cost?")).body
    assert [item["id"] for item in (await bob.get("/v1/rag/pipeline")).json()["items"]] == [pipeline]
    receipts = await audited(running, "rag.knowledge_base.receipt")
    assert {entry.target_id for entry in receipts} == set(bases)


async def test_owner_deleted_during_an_upload(start_platform: Start, database_url: str | None) -> None:
    running = await boot(start_platform, database_url)
    ann = await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n# Text\n'
        begun.set()
        await go_on.wait()
        yield b"and the rest\r\n--x--\r\n"

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    sending = asyncio.create_task(ann.post(f"{BASES}/{base}/upload", data=slowly(), headers=headers))
    async with asyncio.timeout(60):
        await begun.wait()
        await delete_account(running, ann)
        go_on.set()
        answer = await sending
    assert answer.status in (401, 404), answer.body
    await running.run_jobs()
    await running.platform.resource(VECTORS).settled()  # type: ignore[attr-defined]
    assert await running.platform.database.read(left) == [0] * 6 and files(running) == 0
