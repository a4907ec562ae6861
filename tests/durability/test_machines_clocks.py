"""Machines with different clocks on one PostgreSQL: its clock decides what is over, old or alive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from sqlalchemy import select

from builtin_plugins.access_tokens.models import AccessToken
from builtin_plugins.rag.models import Document
from kernel.process.housekeeping import HOUSEKEEP
from kernel.sdk import JobFailed, LongJob, Platform, Plugin, Progress, Unit, hookimpl
from kernel.testing import Actor, Running, Start, eventually
from tests.builtin_plugins.rag.rag_support import make_base, upload
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.own_clock import OwnClock
from tests.fakes.processes import served_platform, without_plugins

pytestmark = pytest.mark.long

DAY = 24 * 3600.0
WRONG = 600.0  # less than a session lasts, which goes by each machine's clock


class Nothing(BaseModel):
    """An empty payload."""


class Failing(Plugin):
    """Has a job that fails at once."""

    name = "failing"
    version = "1.0"

    @hookimpl
    def register_jobs(self) -> list[LongJob[Nothing]]:
        return [FAIL]


async def _fail(platform: Platform, payload: Nothing, progress: Progress) -> str | None:
    raise JobFailed("as it should")


FAIL = LongJob("failing.fail", Nothing, _fail, title="Fail", retries=0)


async def test_a_job_that_ended_on_a_machine_months_behind(
    start_platform: Start, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has ended just now: nobody forgets it before its time."""
    running = await start_platform(Failing, env={"DATABASE_URL": postgres_url})
    ana, clock = await running.user(), OwnClock(monkeypatch)

    def ask(unit: Unit) -> str:
        return unit.enqueue(FAIL, Nothing(), owner_id=ana.user["id"])

    job_id = await running.platform.database.write(ask)
    clock.by(-100 * DAY)
    await running.run_jobs()
    clock.by(0)
    await running.platform.database.write(lambda unit: unit.enqueue(HOUSEKEEP, HOUSEKEEP.payload()))
    await running.run_jobs()
    answer = await ana.get(f"/v1/jobs/{job_id}")
    assert (answer.status, answer.json()["status"]) == (200, "failed")
    ended = datetime.fromisoformat(answer.json()["finished_at"])
    assert abs(ended - datetime.now(UTC)) < timedelta(hours=1)


async def test_a_worker_whose_clock_is_behind_is_counted(
    platform_home: Path, postgres_url: str, start_platform: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its signs of life are as recent as those of others."""
    observer = await start_platform(env={"DATABASE_URL": postgres_url})
    OwnClock(monkeypatch).by(3600)
    env = {**without_plugins(), "DATABASE_URL": postgres_url}
    async with served_platform(platform_home.parent / "other", env=env):
        await eventually(partial(_counts_one, observer), 30)


async def _counts_one(observer: Running) -> bool:
    told = (await observer.anonymous.get("/metrics")).body.decode()
    return "\njob_workers 1.0" in told


@pytest.mark.parametrize("difference", [-WRONG, WRONG])
async def test_an_access_token_ends(
    start_platform: Start, postgres_url: str, monkeypatch: pytest.MonkeyPatch, difference: float
) -> None:
    """At the moment that was asked for, on every machine."""
    running = await start_platform("access_tokens", env={"DATABASE_URL": postgres_url})
    ana = await running.user()
    programs = []
    for name, minutes in (("lasting", 5), ("ended", 1)):
        end = datetime.now(UTC) + timedelta(minutes=minutes)
        body = {"name": name, "expires_at": end.isoformat()}
        answer = await ana.post("/v1/auth/tokens", json=body)
        assert answer.status == 201, answer.body
        programs.append(Actor(running, answer.json()["token"], answer.json()))

    def end(unit: Unit) -> None:
        row = unit.session.get_one(AccessToken, programs[1].user["id"])
        row.expires_at = unit.now() - timedelta(minutes=1)

    await running.platform.database.write(end)
    OwnClock(monkeypatch).by(difference)
    assert [(await one.get("/v1/jobs")).status for one in programs] == [200, 401]


async def test_retrying_what_failed_on_a_machine_ahead(
    start_platform: Start, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that failed before the request is retried, even if the worker's clock is ahead."""
    env = {"DATABASE_URL": postgres_url}
    running = await start_platform("models", "rag", "extractive_answers", HashEmbeddings, env=env)
    ana, clock = await running.user(), OwnClock(monkeypatch)
    base = await make_base(ana)
    assert (await upload(ana, base, "broken.pdf", b"%PDF-1.4 not really")).status == 202
    clock.by(WRONG)
    await running.run_jobs()
    clock.by(0)
    assert await statuses(ana, base) == ["failed"]
    assert (await ana.post(f"/v1/rag/knowledge-bases/{base}/ingestion/retry")).status == 200
    assert await statuses(ana, base) == ["processing"]


async def test_rebuilding_trees_of_a_machine_ahead(
    start_platform: Start, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees that a worker with a clock ahead has built before the request are built again, too."""
    env = {"DATABASE_URL": postgres_url}
    running = await start_platform("models", "rag", "extractive_answers", HashEmbeddings, env=env)
    ana, clock = await running.user(), OwnClock(monkeypatch)
    base = await make_base(ana, chunk_size=100, chunk_overlap=0)
    lines = [
        f"The {name} is painted every year, in spring, by the crew." for name in ("hull", "mast", "deck")
    ]
    assert (await upload(ana, base, "ship.txt", "\n\n".join(lines * 4))).status == 202
    await running.run_jobs()
    clock.by(WRONG)
    await build_trees(ana, base)
    clock.by(0)
    before = await built_at(running)
    await build_trees(ana, base, rebuild=True)
    assert before is not None and await built_at(running) != before


async def build_trees(actor: Actor, base: str, **body: object) -> None:
    assert (await actor.post(f"/v1/rag/knowledge-bases/{base}/trees", json=body)).status == 202
    await actor.running.run_jobs()


async def built_at(running: Running) -> datetime | None:
    return await running.platform.database.read(
        lambda session: session.scalar(select(Document.tree_built_at))
    )


async def statuses(actor: Actor, base: str) -> list[Any]:
    listed = await actor.get(f"/v1/rag/knowledge-bases/{base}/documents")
    return [one["status"] for one in listed.json()["items"]]
