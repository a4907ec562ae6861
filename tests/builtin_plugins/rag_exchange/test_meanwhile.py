"""What happens during an import or an export: deletions, uploads, another embedding model, a second run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import update

from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag_exchange import exporting
from builtin_plugins.rag_exchange.importing import IMPORT, ImportPayload
from kernel.sdk import Caller, Plugin, Principal, hookimpl
from kernel.testing import Actor, Start, platforms
from tests.builtin_plugins.rag.rag_support import Meanwhile, ingest, make_base, somebody, upload
from tests.builtin_plugins.rag.test_deleted_meanwhile import delete, documents, once, remembered
from tests.builtin_plugins.rag.test_reembedding import (
    NEW,
    OLD,
    TOPICS,
    TwoModels,
    model_of,
    reembed,
    shelf,
    sources,
)
from tests.builtin_plugins.rag_exchange.test_exchange import BASES, exported, imported
from tests.fakes.hash_embeddings import HashEmbeddings

NAMES = ("first.md", "second.md", "third.md")


def harbour(name: str) -> str:
    """The text of a document that is imported."""
    return f"The {name} harbour was built for herring."


async def bundle(home: Path) -> bytes:
    """The file of a knowledge base with three documents."""
    async with platforms(home) as start:
        running = await start("rag_exchange", HashEmbeddings())
        ann = await somebody(running)
        base = await make_base(ann, embedding_model="all-minilm")
        for name in NAMES:
            await ingest(running, ann, base, name, harbour(name))
        return await exported(ann, base)


async def only_base(actor: Actor) -> str:
    """The knowledge base that is being imported."""
    (base,) = (await actor.get(BASES)).json()["items"]
    return str(base["id"])


@pytest.mark.long
async def test_out_of_an_import(start_platform: Start, tmp_path: Path, database_url: str | None) -> None:
    """What was imported and deleted stays away when the import runs again."""
    file = await bundle(tmp_path / "here")
    embeddings = Meanwhile("hash-2")  # not the one that made the file's vectors: passages are embedded
    running = await start_platform("rag_exchange", embeddings, env={"DATABASE_URL": database_url})
    bob = await somebody(running)

    async def act() -> None:
        await delete(bob, await only_base(bob), "first.md")

    embeddings.happens = once("second", act, fails=True)
    new, job = await imported(running, bob, file)
    assert job.json()["status"] == "done", job.body
    found = await documents(bob, new)
    assert {name: one["status"] for name, one in found.items()} == dict.fromkeys(NAMES[1:], "completed")
    assert await remembered(running) == 0
    assert (await upload(bob, new, "first.md", harbour("first.md"))).status == 202


@pytest.mark.long
async def test_uploads_during_an_import(
    start_platform: Start, tmp_path: Path, database_url: str | None
) -> None:
    """Who uploads a file that is still to be imported has it once, and keeps it; who deletes it then, too."""
    file = await bundle(tmp_path / "here")
    embeddings = Meanwhile("hash-2")
    running = await start_platform("rag_exchange", embeddings, env={"DATABASE_URL": database_url})
    bob = await somebody(running)
    own: list[str] = []

    async def act() -> None:
        base = await only_base(bob)
        for name in NAMES[1:]:
            answer = await upload(bob, base, f"own-{name}", harbour(name))
            assert answer.status == 202
            own.append(answer.json()["document_id"])
        await delete(bob, base, "own-third.md")

    embeddings.happens = once("first", act, fails=False)
    new, job = await imported(running, bob, file)
    assert job.json()["status"] == "done", job.body
    found = await documents(bob, new)
    assert set(found) == {"first.md", "own-second.md"}
    assert found["own-second.md"]["document_id"] == own[0]
    assert await remembered(running) == 0


@pytest.mark.long
async def test_an_import_that_was_complete(
    start_platform: Start, tmp_path: Path, database_url: str | None
) -> None:
    """Where a worker died before it had noted the end, the next run changes nothing, whether the file is gone
    or another import has it, too.
    """
    file = await bundle(tmp_path / "here")
    running = await start_platform("rag_exchange", HashEmbeddings(), env={"DATABASE_URL": database_url})
    bob = await somebody(running)
    new, _ = await imported(running, bob, file)
    await delete(bob, new, "first.md")
    payload = ImportPayload(knowledge_base_id=new, sha256=hashlib.sha256(file).hexdigest())
    await running.platform.database.write(lambda unit: unit.enqueue(IMPORT, payload))
    await running.run_jobs()
    assert set(await documents(bob, new)) == set(NAMES[1:])
    assert (await bob.upload(f"{BASES}/import", "harbour.kb.zip", file)).status == 202
    await running.platform.database.write(lambda unit: unit.enqueue(IMPORT, payload))
    await running.run_jobs()
    assert set(await documents(bob, new)) == set(NAMES[1:])


async def test_an_import_that_an_earlier_release_ended(
    start_platform: Start, tmp_path: Path, database_url: str | None
) -> None:
    """It let go of the file, but didn't note the end: nothing is kept in mind for it any more."""
    file = await bundle(tmp_path / "here")
    running = await start_platform("rag_exchange", HashEmbeddings(), env={"DATABASE_URL": database_url})
    bob = await somebody(running)
    new, _ = await imported(running, bob, file)
    left = update(KnowledgeBase).values(importing=True)
    await running.platform.database.write(lambda unit: unit.session.execute(left) and None)
    await delete(bob, new, "first.md")
    assert await remembered(running) == 0


class Derived(Plugin):
    """Takes over what it had of an imported knowledge base."""

    name = "derived"
    version = "1.0.0"
    description = "Takes over what it had."
    author = "tests"

    def __init__(self) -> None:
        self.renamed: Mapping[str, str] = {}

    @hookimpl
    def import_derived(self, renamed: Mapping[str, str]) -> None:
        self.renamed = renamed


async def test_what_plugins_had_of_an_uploaded_document(
    start_platform: Start, tmp_path: Path, database_url: str | None
) -> None:
    file = await bundle(tmp_path / "here")
    embeddings, derived = Meanwhile("hash-2"), Derived()
    running = await start_platform("rag_exchange", embeddings, derived, env={"DATABASE_URL": database_url})
    bob = await somebody(running)

    async def act() -> None:
        assert (await upload(bob, await only_base(bob), "own.md", harbour("second.md"))).status == 202

    embeddings.happens = once("first", act, fails=False)
    new, job = await imported(running, bob, file)
    assert job.json()["status"] == "done", job.body
    found = await documents(bob, new)
    assert set(found) == {"first.md", "own.md", "third.md"}
    assert {one["document_id"] for one in found.values()} <= set(derived.renamed.values())


async def test_an_export_that_began_before_the_switch(start_platform: Start) -> None:
    """The file has every document, with vectors of the model that it names, and can be imported."""
    running = await start_platform("rag_exchange", "extractive_answers", TwoModels())
    ann = await somebody(running)
    base = await shelf(ann)
    caller = Caller(running.platform, Principal("user", ann.user["username"], ann.user["id"]))
    whole = await exporting.find(caller, base)
    pieces = exporting.pieces(caller, whole, "1.0")
    file = await anext(pieces)
    await reembed(ann, base)
    await running.run_jobs()
    assert await model_of(ann, base) == NEW
    file += b"".join([piece async for piece in pieces])
    reply = await ann.upload(f"{BASES}/import", "shelf.kb.zip", file)
    assert reply.status == 202, reply.body
    await running.run_jobs()
    again = reply.json()["knowledge_base_id"]
    assert await model_of(ann, again) == OLD
    assert await sources(ann, again) == {f"{topic}.txt" for topic in TOPICS}
