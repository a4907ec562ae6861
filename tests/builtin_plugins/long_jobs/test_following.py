"""Long jobs as people see them: who sees which, progress as it happens, cancel while queued and running."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel
from sqlalchemy import select

from kernel.auth.models import AuditEntry
from kernel.auth.ownership import Scope
from kernel.db.tables import JobRecord
from kernel.jobs.attempts import JobRunner
from kernel.jobs.kinds import CANCEL, CHANGED
from kernel.sdk import Account, Job, JobFailed, JobRef, LongJob, Platform, Plugin, Progress, hookimpl
from kernel.testing import Actor, Running, Start, eventually
from kernel.testing.draining import run_job


class Dig(BaseModel):
    """How deep to dig."""

    depth: int


class Diggers(Plugin):
    """A long job that digs until it is told to stop, and its simple cousin."""

    name = "diggers"

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.seen_from: list[int] = []
        self.begun = asyncio.Event()
        self.deeper = asyncio.Event()
        self.dig: LongJob[Dig] = LongJob(
            "diggers.dig",
            Dig,
            self._dig,
            title="Dig a hole",
            on_give_up=self._given_up,
            on_cancel=self._cancelled,
            visible=self._readable,
            retries=0,
        )
        self.plain: Job[Dig] = Job("diggers.plain", Dig, self._plain)

    async def _dig(self, platform: Platform, payload: Dig, progress: Progress) -> str | None:
        self.seen_from.append(progress.done)
        progress.report(progress.done or 1, total=payload.depth, unit="metres", message="Digging")
        if payload.depth < 0:
            raise JobFailed("Holes go down.")
        self.begun.set()
        try:
            await self.deeper.wait()
        except asyncio.CancelledError:
            self.notes.append("stopped")
            raise
        progress.report(payload.depth, message="Dug")
        return f"/holes/{payload.depth}"

    async def _plain(self, platform: Platform, payload: Dig) -> None:
        return None

    async def _given_up(self, platform: Platform, payload: Dig, reason: str) -> None:
        self.notes.append(f"given up: {reason}")

    async def _cancelled(self, platform: Platform, payload: Dig) -> None:
        self.notes.append(f"cancelled at {payload.depth}")

    def _readable(self, scope: Scope) -> Any:
        """A hole is seen by the account whose name it bears."""
        return select(Account.username).where(Account.id == scope.account_id)

    @hookimpl
    def register_jobs(self) -> list[JobRef]:
        return [self.dig, self.plain]


@pytest.fixture
def diggers() -> Diggers:
    """The plugin of a test."""
    return Diggers()


@pytest.fixture
async def running(start_platform: Start, diggers: Diggers, database_url: str | None) -> Running:
    """A platform with it, on each database."""
    return await start_platform(diggers, env={"DATABASE_URL": database_url})


async def enqueue(running: Running, job: JobRef, owner: Actor, subject: str = "", depth: int = 10) -> str:
    """A job of somebody."""
    return str(
        await running.platform.database.write(
            lambda unit: unit.enqueue(job, Dig(depth=depth), owner_id=owner.user["id"], subject=subject)
        )
    )


async def begin(running: Running, diggers: Diggers, job_id: str) -> tuple[JobRunner, asyncio.Task[Any]]:
    """Run the job, as a worker would, until it waits."""
    runner = JobRunner(running.platform)
    running.platform.notices.listen(CANCEL, runner.cancel)
    task = asyncio.create_task(run_job(runner, job_id))
    async with asyncio.timeout(30):
        await diggers.begun.wait()
    return runner, task


async def test_a_job_from_its_queue_to_its_end(running: Running, diggers: Diggers) -> None:
    """What it is, how far it is, where its result is."""
    ada = await running.user()
    job_id = await enqueue(running, diggers.dig, ada, "hole")
    queued = (await ada.get(f"/v1/jobs/{job_id}")).json()
    assert queued["status"] == "queued"
    assert (queued["kind"], queued["title"]) == ("diggers.dig", "Dig a hole")
    assert (queued["subject"], queued["owner_id"]) == ("hole", ada.user["id"])
    diggers.deeper.set()
    await running.run_jobs()
    done = (await ada.get(f"/v1/jobs/{job_id}")).json()
    assert (done["status"], done["result"], done["error"]) == ("done", "/holes/10", None)
    assert done["progress"] == {"done": 10, "total": 10, "unit": "metres"}
    assert (done["message"], done["eta_seconds"]) == ("Dug", None)


async def test_a_job_that_fails_says_why(running: Running, diggers: Diggers) -> None:
    ada = await running.user()
    job_id = await enqueue(running, diggers.dig, ada, depth=-1)
    await running.run_jobs()
    failed = (await ada.get(f"/v1/jobs/{job_id}")).json()
    assert (failed["status"], failed["error"]) == ("failed", "Holes go down.")
    assert diggers.notes == ["given up: Holes go down."]


async def test_who_sees_a_job(running: Running, diggers: Diggers) -> None:
    """Its owner, whoever sees what it works on, administrators; nobody else hears that it is there."""
    ada, bob, eve = await running.user("ada"), await running.user("bob"), await running.user("eve")
    admin = await running.user("root", role="admin")
    job_id = await enqueue(running, diggers.dig, ada, "bob")
    for actor, sees in ((ada, True), (bob, True), (admin, True), (eve, False)):
        listed = (await actor.get("/v1/jobs")).json()
        assert [item["id"] for item in listed["items"]] == ([job_id] if sees else [])
        assert listed["total"] == int(sees)
        assert (await actor.get(f"/v1/jobs/{job_id}")).status == (200 if sees else 404)
        if not sees:
            assert (await actor.get(f"/v1/jobs/{job_id}/events")).status == 404


async def test_a_job_that_nobody_follows_is_not_shown(running: Running, diggers: Diggers) -> None:
    """Deliveries, mails and the like are the platform's own business, for administrators too."""
    admin = await running.user("root", role="admin")
    job_id = await enqueue(running, diggers.plain, admin)
    assert (await admin.get("/v1/jobs")).json()["items"] == []
    assert (await admin.get(f"/v1/jobs/{job_id}")).status == 404
    assert (await admin.post(f"/v1/jobs/{job_id}/cancel")).status == 404


async def test_only_what_people_follow_is_told(running: Running, diggers: Diggers) -> None:
    """Each change of a long job wakes its followers; other jobs wake nobody."""
    ada, heard = await running.user(), list[str]()
    running.platform.notices.listen(CHANGED, heard.append)
    plain = await enqueue(running, diggers.plain, ada)
    await running.run_jobs()
    diggers.deeper.set()
    dug = await enqueue(running, diggers.dig, ada)
    await running.run_jobs()
    await eventually(lambda: heard.count(dug) >= 2)
    assert plain not in heard


async def test_filters(running: Running, diggers: Diggers) -> None:
    """By state, kind and subject, newest first."""
    ada = await running.user()
    first = await enqueue(running, diggers.dig, ada, "first", depth=-1)
    await running.run_jobs()
    second = await enqueue(running, diggers.dig, ada, "second")
    for query, expected in (
        ("", [second, first]),
        ("?status=failed", [first]),
        ("?subject=second", [second]),
        ("?kind=diggers.dig&status=queued", [second]),
        ("?kind=other", []),
        ("?limit=1&offset=1", [first]),
    ):
        found = (await ada.get(f"/v1/jobs{query}")).json()
        assert [item["id"] for item in found["items"]] == expected, query
    assert (await ada.get("/v1/jobs?status=lost")).status == 422


async def test_cancel_while_it_waits(running: Running, diggers: Diggers) -> None:
    """It ends at once, never runs, and its plugin hears of it; the log names who did it."""
    ada = await running.user()
    job_id = await enqueue(running, diggers.dig, ada)
    answer = await ada.post(f"/v1/jobs/{job_id}/cancel")
    assert (answer.status, answer.json()["status"]) == (202, "cancelled")
    await running.run_jobs()
    assert diggers.notes == ["cancelled at 10"]
    assert (await ada.post(f"/v1/jobs/{job_id}/cancel")).json()["status"] == "cancelled"
    assert (await ada.get(f"/v1/jobs/{job_id}")).json()["status"] == "cancelled"
    query = select(AuditEntry.actor_id).where(AuditEntry.action == "job.cancelled")
    assert await running.platform.database.read(lambda session: list(session.scalars(query))) == [
        ada.user["id"]
    ]


async def test_cancel_while_it_runs(running: Running, diggers: Diggers) -> None:
    """The handler is stopped at its next await and may clean up; then its plugin hears of it."""
    ada = await running.user()
    job_id = await enqueue(running, diggers.dig, ada)
    _, task = await begin(running, diggers, job_id)
    assert (await ada.post(f"/v1/jobs/{job_id}/cancel")).json()["cancel_requested"] is True
    async with asyncio.timeout(30):
        await task
    cancelled = (await ada.get(f"/v1/jobs/{job_id}")).json()
    assert (cancelled["status"], cancelled["progress"]["done"]) == ("cancelled", 1)
    await running.run_jobs()
    assert diggers.notes == ["stopped", "cancelled at 10"]


async def test_cancel_while_no_worker_runs(running: Running, diggers: Diggers) -> None:
    """The request outlives the worker that had the job: the next one ends it without running it."""
    ada = await running.user()
    job_id = await enqueue(running, diggers.dig, ada)
    _, task = await begin(running, diggers, job_id)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (await ada.post(f"/v1/jobs/{job_id}/cancel")).json()["status"] == "running"
    await running.run_jobs()
    assert (await ada.get(f"/v1/jobs/{job_id}")).json()["status"] == "cancelled"
    assert diggers.notes == ["stopped", "cancelled at 10"]


async def test_who_may_cancel(running: Running, diggers: Diggers) -> None:
    """Its owner and administrators; who only sees it may not, who does not see it finds nothing."""
    ada, bob, eve = await running.user("ada"), await running.user("bob"), await running.user("eve")
    admin = await running.user("root", role="admin")
    job_id = await enqueue(running, diggers.dig, ada, "bob")
    for actor, status in ((bob, 403), (eve, 404), (admin, 202)):
        assert (await actor.post(f"/v1/jobs/{job_id}/cancel")).status == status


async def test_what_has_ended_cannot_be_cancelled(running: Running, diggers: Diggers) -> None:
    ada = await running.user()
    job_id = await enqueue(running, diggers.dig, ada, depth=-1)
    await running.run_jobs()
    answer = await ada.post(f"/v1/jobs/{job_id}/cancel")
    assert (answer.status, answer.json()["code"]) == (409, "job_finished")


async def test_progress_survives(running: Running, diggers: Diggers) -> None:
    """What was written before a kill is where the next run begins."""
    ada = await running.user()
    job_id = await enqueue(running, diggers.dig, ada)
    _, task = await begin(running, diggers, job_id)
    async with asyncio.timeout(30):
        async for event in events(ada, job_id):
            if event["progress"]["done"]:
                break
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    found = await running.platform.database.read(lambda session: session.get_one(JobRecord, job_id))
    assert (found.done, found.total, found.unit) == (1, 10, "metres")
    diggers.deeper.set()
    await running.run_jobs()
    assert diggers.seen_from == [0, 1]


async def test_following(running: Running, diggers: Diggers) -> None:
    """The stream has each change, and ends with the job."""
    ada = await running.user()
    job_id = await enqueue(running, diggers.dig, ada)
    seen = []
    async with asyncio.timeout(60):
        task = None
        async for event in events(ada, job_id):
            seen.append(event["status"])
            if task is None:
                _, task = await begin(running, diggers, job_id)
            elif event["progress"]["done"]:
                diggers.deeper.set()
        assert task is not None
        await task
    assert (seen[0], seen[-1]) == ("queued", "done")
    assert "running" in seen


async def test_following_what_has_ended(running: Running, diggers: Diggers) -> None:
    ada = await running.user()
    job_id = await enqueue(running, diggers.dig, ada, depth=-1)
    await running.run_jobs()
    assert [event["status"] async for event in events(ada, job_id)] == ["failed"]


async def events(actor: Actor, job_id: str) -> Any:
    """The job's events as they come."""
    url, headers = f"{actor.running.url}/v1/jobs/{job_id}/events", {"Authorization": f"Bearer {actor.token}"}
    async with actor.running.session.get(url, headers=headers) as answer:
        assert answer.status == 200
        async for line in answer.content:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
