"""A deleted document does not come back out of an archive or a message that is taken in again."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Awaitable, Callable, Mapping
from email.message import EmailMessage
from typing import Any

from sqlalchemy import delete as remove_rows
from sqlalchemy import func, select, text

from builtin_plugins.rag.models import Deletion
from kernel.testing import Actor, Running, Start, eventually
from tests.builtin_plugins.rag.rag_support import Meanwhile, ingest, make_base, path_of, somebody, upload

BASES = "/v1/rag/knowledge-bases"


def archive(files: Mapping[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    return made.getvalue()


def words(name: str) -> str:
    """The text of a file."""
    return f"The words of {name} alone."


async def documents(actor: Actor, base: str) -> dict[str, dict[str, Any]]:
    listed = (await actor.get(f"{BASES}/{base}/documents")).json()["items"]
    found = {one["filename"]: one for one in listed}
    assert len(found) == len(listed)
    return found


async def delete(actor: Actor, base: str, filename: str) -> None:
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
    assert box["notice"].startswith("1 of 3 ") and " a.txt (" in box["notice"]
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
    assert " a.txt (" in found["plan.eml"]["notice"]
    assert " a.txt (" in found["other.zip"]["notice"]
    assert found["box.zip"]["notice"] is None
    assert await remembered(running) == 0


async def test_a_retry_brings_it(start_platform: Start, database_url: str | None) -> None:
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
