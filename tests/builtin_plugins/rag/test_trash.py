"""Documents that are deleted into the trash: gone for everybody, until they are taken back or go for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
import pytest_asyncio
from sqlalchemy import update

from builtin_plugins.rag.models import TrashedDocument
from builtin_plugins.rag.services.documents import EMPTY_TRASH
from kernel.sdk import NoPayload, Unit, utc_now
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ingest, make_base, path_of, somebody, upload

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"
TEXT = "The lighthouse keeper earns 4,100 crowns."
QUESTION = "What does the lighthouse keeper earn?"


@dataclass
class Shelf:
    """A shared knowledge base of Ann's with one document."""

    running: Running
    ann: Actor
    base: str
    document: str

    @property
    def path(self) -> str:
        return f"{BASES}/{self.base}"

    async def discard(self) -> None:
        answer = await self.ann.delete(path_of(self.base, self.document, "?trash=true"))
        assert (answer.status, answer.json()["trashed"], answer.json()["receipt"]) == (200, True, None)

    async def seen(self, actor: Actor) -> set[int]:
        """How many documents each way to them shows."""
        listed = (await actor.get(f"{self.path}/documents")).json()
        filtered = await actor.get(f"{self.path}/documents", params={"filter": '{"filename": "keeper.md"}'})
        hits = (await actor.post(f"{self.path}/search", json={"question": QUESTION})).json()["items"]
        facets = (await actor.post(f"{self.path}/facets", json={"fields": ["filename"]})).json()
        return {
            listed["total"],
            len(listed["items"]),
            filtered.json()["total"],
            len({one["document_id"] for one in hits}),
            (await actor.get(self.path)).json()["document_count"],
            facets["total"],
        }

    async def trashed(self) -> list[str]:
        found = (await self.ann.get(f"{self.path}/trash")).json()
        assert (found["total"], found["days"]) == (len(found["items"]), 30)
        return [one["document_id"] for one in found["items"]]


@pytest_asyncio.fixture(loop_scope="session")
async def shelf(running: Running, ann: Actor) -> Shelf:
    base = await make_base(ann, visibility="shared")
    document = await ingest(running, ann, base, "keeper.md", TEXT)
    return Shelf(running, ann, base, document["document_id"])


async def test_put_there_and_taken_back(shelf: Shelf) -> None:
    """Nobody sees it meanwhile, the server's own programs included; all of it is back at once."""
    admin, eve = await somebody(shelf.running, role="admin"), await somebody(shelf.running)
    service = Actor(shelf.running, shelf.running.platform.resource(TOKENS).mint_service("helper", 1))
    everybody = (shelf.ann, eve, admin, service)
    assert [await shelf.seen(one) for one in everybody] == [{1}] * 4
    await shelf.discard()
    assert [await shelf.seen(one) for one in everybody] == [{0}] * 4
    for actor in everybody:
        for rest in ("", "/content", "/chunks", "/versions"):
            assert (await actor.get(path_of(shelf.base, shelf.document, rest))).status == 404
    assert (await shelf.ann.get(f"{shelf.path}/export")).status == 200
    back = f"{shelf.path}/trash/{shelf.document}/restore"
    assert [(await eve.get(f"{shelf.path}/trash")).status, (await eve.post(back)).status] == [403, 403]
    assert await shelf.trashed() == [shelf.document]
    restored = await shelf.ann.post(back)
    assert (restored.status, restored.json()["document_id"]) == (200, shelf.document)
    assert [await shelf.seen(one) for one in everybody] == [{1}] * 4
    assert (await shelf.trashed(), (await shelf.ann.post(back)).status) == ([], 404)


async def test_for_good(shelf: Shelf) -> None:
    """What is deleted for good has a receipt, and is no longer in the trash."""
    await shelf.discard()
    gone = await shelf.ann.delete(f"{shelf.path}/trash/{shelf.document}")
    assert (gone.status, gone.json()["receipt"]["document_id"]) == (200, shelf.document)
    assert await shelf.trashed() == []
    assert (await shelf.ann.delete(f"{shelf.path}/trash/{shelf.document}")).status == 404


async def test_uploaded_again(shelf: Shelf) -> None:
    """The same file brings back the document that it was."""
    await shelf.discard()
    again = await upload(shelf.ann, shelf.base, "keeper.md", TEXT)
    assert again.json()["document_id"] == shelf.document
    assert (await shelf.trashed(), await shelf.seen(shelf.ann)) == ([], {1})


async def test_its_time_is_over(shelf: Shelf) -> None:
    """The nightly run deletes what has been there for longer than the setting says, and nothing else."""
    late = await ingest(shelf.running, shelf.ann, shelf.base, "late.md", "A later file.")
    await shelf.discard()
    await shelf.ann.delete(path_of(shelf.base, late["document_id"], "?trash=true"))

    def run(unit: Unit) -> None:
        old = update(TrashedDocument).where(TrashedDocument.document_id == shelf.document)
        unit.session.execute(old.values(trashed_at=utc_now() - timedelta(days=30, minutes=1)))
        unit.enqueue(EMPTY_TRASH, NoPayload())

    await shelf.running.platform.database.write(run)
    await shelf.running.run_jobs()
    assert await shelf.trashed() == [late["document_id"]]
