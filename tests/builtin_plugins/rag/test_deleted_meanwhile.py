"""A deleted document does not come back out of an archive, a message or an import that is taken in again."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
from collections.abc import Awaitable, Callable, Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete as remove_rows
from sqlalchemy import func, select, text, update

from builtin_plugins.rag.exchange.importing import IMPORT, ImportPayload
from builtin_plugins.rag.models import Deletion, KnowledgeBase
from kernel.sdk import Plugin, hookimpl
from kernel.testing import Actor, Running, Start, eventually, platforms
from tests.builtin_plugins.rag.rag_support import ingest, make_base, path_of, somebody, upload
from tests.builtin_plugins.rag.test_exchange import BASES, Meanwhile, exported, imported
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.each_database


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """An archive of these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    return made.getvalue()


def words(name: str) -> str:
    """The text of a file."""
    return f"The words of {name} alone."


async def documents(actor: Actor, base: str) -> dict[str, dict[str, Any]]:
    """The documents of a knowledge base by their names."""
    listed = (await actor.get(f"{BASES}/{base}/documents")).json()["items"]
    found = {one["filename"]: one for one in listed}
    assert len(found) == len(listed)
    return found


async def delete(actor: Actor, base: str, filename: str) -> None:
    """Delete a document by its name."""
    document = (await documents(actor, base))[filename]["document_id"]
    assert (await actor.delete(path_of(base, document))).status == 200


async def remembered(running: Running) -> int:
    """How many deletions are kept in mind."""
    count = select(func.count()).select_from(Deletion)
    return await running.platform.database.read(lambda session: session.scalar(count)) or 0


def once(when: str, act: Callable[[], Awaitable[object]], *, fails: bool) -> Callable[[str], Awaitable[None]]:
    """Act when a text with these words is embedded for the first time; with `fails`, that fails."""
    done: list[str] = []

    async def happens(text: str) -> None:
        if when in text and not done:
            done.append(text)
            await act()
            if fails:
                raise RuntimeError("the worker is gone")

    return happens


async def boot(start: Start, url: str | None) -> tuple[Running, Actor, str, Meanwhile]:
    """A platform whose embeddings can be interrupted, and somebody with a knowledge base."""
    embeddings = Meanwhile()
    running = await start("rag", embeddings, env={"DATABASE_URL": url})
    ann = await somebody(running)
    return running, ann, await make_base(ann), embeddings


async def test_out_of_an_archive(start_platform: Start, database_url: str | None) -> None:
    """A file deleted while its archive is read is left out by the second run, which says so; the user may
    upload it, and a later archive brings it.
    """
    running, ann, base, embeddings = await boot(start_platform, database_url)
    files = {name: words(name) for name in ("a.txt", "b.txt")}
    embeddings.happens = once("box", lambda: delete(ann, base, "a.txt"), fails=True)
    box = await ingest(running, ann, base, "box.zip", archive({**files, "box.md": "A list."}))
    await running.run_jobs()
    assert set(await documents(ann, base)) == {"box.zip", "b.txt", "box.md"}
    assert box["status"] == "completed"
    assert box["notice"] == "1 of 3 files inside was left out: a.txt (deleted in the meantime)."
    assert await remembered(running) == 0
    again = await ingest(running, ann, base, "a.txt", words("a.txt"))
    assert (again["status"], again["parent_id"]) == ("completed", None)
    await delete(ann, base, "a.txt")
    later = await ingest(running, ann, base, "later.zip", archive({**files, "c.txt": words("c.txt")}))
    await running.run_jobs()
    found = await documents(ann, base)
    assert found["a.txt"]["parent_id"] == later["document_id"] and later["notice"] is None
    assert found["b.txt"]["parent_id"] == box["document_id"]


async def test_out_of_a_message_in_an_archive(start_platform: Start, database_url: str | None) -> None:
    """What was deleted after the archive was uploaded does not come out of a message that is in it, though
    the message itself comes out later; nor out of another archive that waits.
    """
    running, ann, base, _ = await boot(start_platform, database_url)
    message = EmailMessage()
    message["From"], message["Subject"], message["Message-ID"] = "ada@example.org", "plan", "<1@example.org>"
    message.set_content("Dear Bob, here is the plan.")
    message.add_attachment(words("a.txt"), filename="a.txt")
    lines = message.as_bytes()
    attached = next(message.iter_attachments()).get_content().encode()
    own = await ingest(running, ann, base, "own.txt", attached)
    await upload(ann, base, "box.zip", archive({"plan.eml": lines}))
    await upload(ann, base, "other.zip", archive({"a.txt": attached, "b.txt": words("b.txt")}))
    assert (await ann.delete(path_of(base, own["document_id"]))).status == 200
    assert await remembered(running) == 1
    await running.run_jobs()
    found = await documents(ann, base)
    assert set(found) == {"box.zip", "other.zip", "plan.eml", "b.txt"}
    assert "a.txt (deleted in the meantime)" in found["plan.eml"]["notice"]
    assert "a.txt (deleted in the meantime)" in found["other.zip"]["notice"]
    assert found["box.zip"]["notice"] is None
    assert await remembered(running) == 0


async def test_a_retry_brings_it(start_platform: Start, database_url: str | None) -> None:
    """Who retries a cancelled archive asks for all that is in it."""
    running, ann, base, embeddings = await boot(start_platform, database_url)

    async def stop() -> None:
        await delete(ann, base, "a.txt")
        assert (await ann.post(f"{BASES}/{base}/ingestion/cancel")).status == 200

    embeddings.happens = once("b.txt", stop, fails=False)
    await upload(ann, base, "box.zip", archive({name: words(name) for name in ("a.txt", "b.txt")}))
    await running.run_jobs()
    assert "a.txt" not in await documents(ann, base) and await remembered(running) == 0
    assert (await ann.post(f"{BASES}/{base}/ingestion/retry")).status == 200
    await running.run_jobs()
    found = await documents(ann, base)
    assert {name: one["status"] for name, one in found.items()} == dict.fromkeys(
        ("box.zip", "a.txt", "b.txt"), "completed"
    )


async def test_nothing_is_kept_of_a_deleted_knowledge_base(
    start_platform: Start, database_url: str | None
) -> None:
    """Deletions are remembered while an archive waits, and no longer than the knowledge base."""
    running, ann, base, _ = await boot(start_platform, database_url)
    await ingest(running, ann, base, "a.txt", words("a.txt"))
    await ingest(running, ann, base, "b.txt", words("b.txt"))
    await delete(ann, base, "a.txt")
    assert await remembered(running) == 0
    await upload(ann, base, "box.zip", archive({"a.txt": words("a.txt")}))
    await delete(ann, base, "b.txt")
    assert await remembered(running) == 1
    assert (await ann.delete(f"{BASES}/{base}")).status == 200
    assert await remembered(running) == 0


async def test_deleted_as_an_archive_ends(start_platform: Start, postgres_url: str) -> None:
    """A deletion is recorded even if an earlier record of it is being removed at that moment."""
    running, ann, base, _ = await boot(start_platform, postgres_url)
    inside = {"a.txt": words("a.txt")}
    await ingest(running, ann, base, "a.txt", words("a.txt"))
    await upload(ann, base, "box.zip", archive(inside))
    await delete(ann, base, "a.txt")
    await upload(ann, base, "a.txt", words("a.txt"))
    await upload(ann, base, "later.zip", archive({**inside, "b.txt": words("b.txt")}))
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    async def it_waits() -> bool:
        return await running.platform.database.read(lambda session: bool(session.scalar(waiting)))

    async with running.platform.database.connection() as connection:
        await connection.execute(remove_rows(Deletion))
        deleting = asyncio.create_task(delete(ann, base, "a.txt"))
        await eventually(it_waits, 20)
    await deleting
    assert await remembered(running) == 1
    await running.run_jobs()
    assert set(await documents(ann, base)) == {"box.zip", "later.zip", "b.txt"}


NAMES = ("first.md", "second.md", "third.md")


def harbour(name: str) -> str:
    """The text of a document that is imported."""
    return f"The {name} harbour was built for herring."


async def bundle(home: Path) -> bytes:
    """The file of a knowledge base with three documents."""
    async with platforms(home) as start:
        running = await start("rag", HashEmbeddings())
        ann = await somebody(running)
        base = await make_base(ann, embedding_model="all-minilm")
        for name in NAMES:
            await ingest(running, ann, base, name, harbour(name))
        return await exported(ann, base)


async def only_base(actor: Actor) -> str:
    """The knowledge base that is being imported."""
    (base,) = (await actor.get(BASES)).json()["items"]
    return str(base["id"])


async def test_out_of_an_import(start_platform: Start, tmp_path: Path, database_url: str | None) -> None:
    """What was imported and deleted stays away when the import runs again."""
    file = await bundle(tmp_path / "here")
    embeddings = Meanwhile("hash-2")  # not the one that made the file's vectors: passages are embedded
    running = await start_platform("rag", embeddings, env={"DATABASE_URL": database_url})
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


async def test_uploads_during_an_import(
    start_platform: Start, tmp_path: Path, database_url: str | None
) -> None:
    """Who uploads a file that is still to be imported has it once, and keeps it; who deletes it then, too."""
    file = await bundle(tmp_path / "here")
    embeddings = Meanwhile("hash-2")
    running = await start_platform("rag", embeddings, env={"DATABASE_URL": database_url})
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


async def test_an_import_that_was_complete(
    start_platform: Start, tmp_path: Path, database_url: str | None
) -> None:
    """Where a worker died before it had noted the end, the next run changes nothing, whether the file is gone
    or another import has it, too.
    """
    file = await bundle(tmp_path / "here")
    running = await start_platform("rag", HashEmbeddings(), env={"DATABASE_URL": database_url})
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
    running = await start_platform("rag", HashEmbeddings(), env={"DATABASE_URL": database_url})
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
    """They are given the id of the upload that took the document's place."""
    file = await bundle(tmp_path / "here")
    embeddings, derived = Meanwhile("hash-2"), Derived()
    running = await start_platform("rag", embeddings, derived, env={"DATABASE_URL": database_url})
    bob = await somebody(running)

    async def act() -> None:
        assert (await upload(bob, await only_base(bob), "own.md", harbour("second.md"))).status == 202

    embeddings.happens = once("first", act, fails=False)
    new, job = await imported(running, bob, file)
    assert job.json()["status"] == "done", job.body
    found = await documents(bob, new)
    assert set(found) == {"first.md", "own.md", "third.md"}
    assert {one["document_id"] for one in found.values()} <= set(derived.renamed.values())
