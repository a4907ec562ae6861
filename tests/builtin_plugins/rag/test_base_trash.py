"""Knowledge bases in the trash: gone for everybody, until they are taken back or go for good."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from builtin_plugins.rag.models import Document, TrashedBase
from builtin_plugins.rag.services.base_trash import EMPTY_BASES
from kernel.sdk import NoPayload, Unit, utc_now
from kernel.testing import Actor, Running, audited
from tests.builtin_plugins.rag.rag_support import ask, ask_raw, ingest, make_base, make_pipeline, somebody
from tests.fakes.deleting import delete_account

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"
TRASH = f"{BASES}/trash"
TEXT = "The lighthouse keeper earns 4,100 crowns."
QUESTION = "What does the lighthouse keeper earn?"


async def shelf(running: Running, ann: Actor) -> tuple[str, str, str]:
    base = await make_base(ann, visibility="shared", description="Wages", date_field="uploaded_at")
    document = (await ingest(running, ann, base, "keeper.md", TEXT))["document_id"]
    return base, document, await make_pipeline(ann, base)


async def discard(actor: Actor, base: str) -> int:
    return (await actor.post(TRASH, json={"knowledge_base_id": base})).status


async def trashed(actor: Actor) -> list[str]:
    found = (await actor.get(TRASH, params={"limit": 500})).json()
    assert found["days"] == 30
    return [one["id"] for one in found["items"]]


async def test_put_there_and_taken_back(running: Running, ann: Actor) -> None:
    """Nobody sees it meanwhile; it comes back private, with its documents, and its pipelines answer again."""
    base, document, pipeline = await shelf(running, ann)
    admin, eve = await somebody(running, role="admin"), await somebody(running)
    before = (await ann.get(f"{BASES}/{base}")).json()
    used = (await ann.get("/v1/rag/usage")).json()["storage_bytes"]["used"]
    assert await discard(eve, base) == 403
    assert await discard(ann, base) == 200
    [entry] = await audited(running, "rag.knowledge_base.trashed", base)
    assert entry.before_state == {"name": before["name"]}
    for actor in (ann, eve, admin):
        for path in (base, f"{base}/documents", f"{base}/documents/{document}/content"):
            assert (await actor.get(f"{BASES}/{path}")).status == 404
        listed = (await actor.get(BASES, params={"limit": 500})).json()["items"]
        assert base not in [one["id"] for one in listed]
    assert (await ask_raw(ann, pipeline, QUESTION)).status == 409
    assert (await ann.get("/v1/rag/usage")).json()["storage_bytes"]["used"] == used
    assert (base in await trashed(ann), base in await trashed(admin), await trashed(eve)) == (True, True, [])
    assert (await eve.post(f"{TRASH}/{base}/restore")).status == 404
    back = (await ann.post(f"{TRASH}/{base}/restore")).json()
    private: dict[str, Any] = {**before, "visibility": "private"}
    assert {name: back[name] for name in private} == private
    assert "4,100 crowns" in (await ask(ann, pipeline, QUESTION))["answer"]
    assert ((await eve.get(f"{BASES}/{base}")).status, await trashed(ann)) == (404, [])
    assert (await ann.post(f"{TRASH}/{base}/restore")).status == 404


async def test_for_good(running: Running, ann: Actor) -> None:
    """What is deleted for good has a receipt that lists its documents, which are gone after the job."""
    base, document, _ = await shelf(running, ann)
    assert await discard(ann, base) == 200
    gone = await ann.delete(f"{TRASH}/{base}")
    assert gone.status == 200
    assert [one["document_id"] for one in gone.json()["receipt"]["documents"]] == [document]
    await running.run_jobs()
    assert (await ann.delete(f"{TRASH}/{base}")).status == 404
    assert base not in await trashed(ann)


async def test_its_time_is_over(running: Running, ann: Actor) -> None:
    """The nightly run deletes what has been there for longer than the setting says, and nothing else."""
    old, late = await make_base(ann), await make_base(ann)
    assert [await discard(ann, one) for one in (old, late)] == [200, 200]

    def run(unit: Unit) -> None:
        mine = update(TrashedBase).where(TrashedBase.id == old)
        unit.session.execute(mine.values(trashed_at=utc_now() - timedelta(days=30, minutes=1)))
        unit.enqueue(EMPTY_BASES, NoPayload())

    await running.platform.database.write(run)
    await running.run_jobs()
    found = await trashed(ann)
    assert (old in found, late in found) == (False, True)


async def test_of_a_deleted_account(running: Running) -> None:
    """What is in the trash of an account goes with it, documents and all."""
    ann, admin = await somebody(running), await somebody(running, role="admin")
    base, document, _ = await shelf(running, ann)
    assert await discard(ann, base) == 200
    await delete_account(running, ann)
    assert base not in await trashed(admin)
    rows = select(Document.id).where(Document.id == document)
    assert await running.platform.database.read(lambda session: session.scalars(rows).all()) == []
