"""Questions, refusals and ratings per day, for those who may change the knowledge bases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from builtin_plugins.rag.models import QuestionDay, StorageDay
from builtin_plugins.rag.services.question_counts import FORGET_FIGURES, count_rating
from builtin_plugins.rag.services.storage_days import RECORD_STORAGE
from kernel.sdk import NoPayload, Unit, utc_now
from kernel.testing import Actor, Running, eventually
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATH = "/v1/rag/figures"
TEXT = "The lighthouse keeper earns 4,100 crowns."
COUNTED = ("questions", "refused", "up", "down")


async def figures(actor: Actor, base: str | None = None) -> dict[str, Any]:
    answer = await actor.get(PATH, params={} if base is None else {"knowledge_base_id": base})
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def test_counted_for_whoever_may_change_it(running: Running, ann: Actor) -> None:
    """Everybody's questions count, for the owner and administrators; others are not told."""
    eve, admin = await somebody(running), await somebody(running, role="admin")
    base, other = await make_base(ann, visibility="shared"), await make_base(ann)
    await ingest(running, ann, base, "keeper.md", TEXT)
    pipeline = await make_pipeline(ann, base, visibility="shared")
    before = await figures(admin)
    await ask(ann, pipeline, "What does the lighthouse keeper earn?")
    await ask(eve, pipeline, "How many donkeys crossed the mountain pass yesterday?")

    async def counted() -> bool:
        return (await figures(ann, base))["questions"] == 2

    await eventually(counted)
    found = await figures(ann, base)
    assert [found[name] for name in COUNTED] == [2, 1, 0, 0]
    assert [found["items"][0][name] for name in ("day", *COUNTED)] == [
        utc_now().date().isoformat(),
        *(2, 1, 0, 0),
    ]
    assert (await figures(ann, other))["items"] == []
    assert (await figures(admin))["questions"] >= before["questions"] + 2
    assert (await figures(eve))["items"] == []
    for hidden, status in ((base, 403), (other, 404)):
        assert (await eve.get(PATH, params={"knowledge_base_id": hidden})).status == status


async def test_ratings(running: Running, ann: Actor) -> None:
    """A changed rating moves, one that is taken back goes; a deleted knowledge base keeps nothing."""
    base = await make_base(ann)
    pipeline = await make_pipeline(ann, base)
    database = running.platform.database
    for former, rating in ((None, "up"), ("up", "down"), ("down", "down"), (None, "down"), ("down", None)):
        await database.write(count_rating, pipeline, utc_now(), former, rating)
    found = await figures(ann, base)
    assert [found[name] for name in COUNTED] == [0, 0, 0, 1]
    body = {"confirm_delete_pipeline_ids": [pipeline]}
    assert (await ann.delete(f"/v1/rag/knowledge-bases/{base}", json=body)).status == 200
    await database.write(count_rating, pipeline, utc_now(), None, "up")
    rows = select(QuestionDay).where(QuestionDay.knowledge_base_id == base)
    assert (await database.read(lambda session: session.scalars(rows).all())) == []


async def test_forgotten(running: Running, ann: Actor) -> None:
    """Figures go after 400 days."""
    base = await make_base(ann)
    pipeline = await make_pipeline(ann, base)

    def run(unit: Unit) -> None:
        count_rating(unit, pipeline, utc_now(), None, "up")
        mine = update(QuestionDay).where(QuestionDay.knowledge_base_id == base)
        unit.session.execute(mine.values(day=utc_now().date() - timedelta(days=401)))
        count_rating(unit, pipeline, utc_now(), None, "down")
        unit.enqueue(FORGET_FIGURES, NoPayload())

    await running.platform.database.write(run)
    await running.run_jobs()
    rows = select(QuestionDay).where(QuestionDay.knowledge_base_id == base)
    (row,) = await running.platform.database.read(lambda session: session.scalars(rows).all())
    assert (row.up, row.down) == (0, 1)


async def record_storage(running: Running) -> None:
    await running.platform.database.write(lambda unit: unit.enqueue(RECORD_STORAGE, NoPayload()))
    await running.run_jobs()


async def move_record(running: Running, base: str, days: int) -> None:
    """Move what was recorded of a knowledge base into the past."""

    def write(unit: Unit) -> None:
        mine = update(StorageDay).where(StorageDay.knowledge_base_id == base)
        unit.session.execute(mine.values(day=utc_now().date() - timedelta(days=days)))

    await running.platform.database.write(write)


async def storage_days(running: Running, base: str) -> Sequence[StorageDay]:
    rows = select(StorageDay).where(StorageDay.knowledge_base_id == base).order_by(StorageDay.day)
    return await running.platform.database.read(lambda session: session.scalars(rows).all())


async def test_storage(running: Running, ann: Actor) -> None:
    """Today is what there is now, other days are as recorded; only for those who may change it."""
    eve = await somebody(running)
    base = await make_base(ann, visibility="shared")
    await ingest(running, ann, base, "keeper.md", TEXT)
    await record_storage(running)
    (row,) = await storage_days(running, base)
    assert (row.day, row.size_bytes, row.files) == (utc_now().date(), len(TEXT), 1)
    await move_record(running, base, 1)
    yesterday = utc_now().date() - timedelta(days=1)
    more = TEXT + " The harbour master earns less."
    await ingest(running, ann, base, "harbour.md", more)
    found = (await figures(ann, base))["storage"]
    assert [(one["day"], one["size_bytes"], one["files"]) for one in found] == [
        (utc_now().date().isoformat(), len(TEXT) + len(more), 2),
        (yesterday.isoformat(), len(TEXT), 1),
    ]
    assert [one["size_bytes"] for one in (await figures(eve))["storage"]] == [0]


async def test_storage_is_recorded_once_a_day(running: Running, ann: Actor) -> None:
    """An empty knowledge base has a record, too; old ones go, and all with the knowledge base."""
    base = await make_base(ann)
    await record_storage(running)
    await move_record(running, base, 401)
    await record_storage(running)
    await record_storage(running)
    (row,) = await storage_days(running, base)
    assert (row.day, row.size_bytes, row.files) == (utc_now().date(), 0, 0)
    assert (await ann.delete(f"/v1/rag/knowledge-bases/{base}")).status == 200
    assert await storage_days(running, base) == []
