"""Durable jobs: what is enqueued, how often it runs, when it is given up."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest
from pydantic import BaseModel
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from kernel.db.tables import JobRecord
from kernel.jobs.attempts import JobRunner
from kernel.sdk import Event, Job, JobFailed, Platform, Plugin, Unavailable, Unit, hookimpl
from kernel.sdk.jobs import Lane
from kernel.testing import Running, Start
from kernel.testing.draining import run_job
from tests.fakes.rows import execute


class Payload(BaseModel):
    """What a test job gets."""

    word: str


class Happened(Event):
    """A durable event."""

    event_name = "jobs_under_test.happened"
    durable = True

    word: str


class JobsPlugin(Plugin):
    """Jobs that work, fail, and hang; everything that happened is written down."""

    name = "jobs_under_test"
    version = "1"

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.given_up: list[str] = []
        self.events: list[str] = []
        self.failures = 0
        self.faults: list[BaseException] = []
        self.give_up_fails = False
        self.started = asyncio.Event()
        self.work: Job[Payload] = Job(
            "test.work", Payload, self._work, self._give_up, retries=2, crashes=3, first_pause=0.0
        )
        self.hang: Job[Payload] = Job("test.hang", Payload, self._hang)
        self.rest: Job[Payload] = Job("test.rest", Payload, self._refuse, retries=1, first_pause=0.0)
        self.errors: list[str | None] = []

    async def _work(self, platform: Platform, payload: Payload) -> None:
        self.ran.append(payload.word)
        if payload.word == "hopeless":
            raise JobFailed("it can't be done")
        if payload.word == "exit":
            raise SystemExit(2)
        if payload.word == "away":
            raise Unavailable("The thing is away; call it back")
        if self.faults:
            raise self.faults.pop()
        if self.failures:
            self.failures -= 1
            raise RuntimeError("not this time")

    async def _refuse(self, platform: Platform, payload: Payload) -> None:
        before = select(JobRecord.error).where(JobRecord.name == self.rest.name)
        self.errors.append(await platform.database.read(Session.scalar, before))
        raise RuntimeError(f"no answer from postgresql://ann:{payload.word}@db.example/papers")

    async def _hang(self, platform: Platform, payload: Payload) -> None:
        self.started.set()
        await asyncio.Event().wait()

    async def _give_up(self, platform: Platform, payload: Payload, reason: str) -> None:
        self.given_up.append(reason)
        if self.give_up_fails:
            raise RuntimeError("the failure can't be recorded")

    @hookimpl
    def register_jobs(self) -> list[Job[Any]]:
        return [self.work, self.hang, self.rest]

    @hookimpl
    def register_events(self) -> list[type[Event]]:
        return [Happened]

    @hookimpl
    async def on_event(self, event: Event) -> None:
        if isinstance(event, Happened):
            self.events.append(event.word)


@pytest.fixture
def plugin() -> JobsPlugin:
    """The plugin of a test."""
    return JobsPlugin()


@pytest.fixture
async def running(start_platform: Start, plugin: JobsPlugin, database_url: str | None) -> Running:
    """A platform with it, on each database."""
    return await start_platform(plugin, env={"DATABASE_URL": database_url})


async def enqueue(
    running: Running, job: Job[Payload], word: str, job_id: str | None = None, lane: Lane | None = None
) -> str:
    """Enqueue in its own unit."""
    return await running.platform.database.write(
        lambda unit: unit.enqueue(job, Payload(word=word), job_id=job_id, lane=lane)
    )


async def record(running: Running, job_id: str) -> JobRecord:
    """The job as people see it."""
    return await running.platform.database.read(lambda session: session.get_one(JobRecord, job_id))


async def test_a_job_runs_once(running: Running, plugin: JobsPlugin) -> None:
    """It runs, ends `done`, and running its id again does nothing."""
    job_id = await enqueue(running, plugin.work, "hello")
    assert await running.run_jobs() == 1
    await run_job(JobRunner(running.platform), job_id)
    assert plugin.ran == ["hello"]
    found = await record(running, job_id)
    assert (found.status, found.attempts, found.error) == ("done", 1, None)
    assert found.payload == {}, "what it was about may have to be forgotten"


async def test_the_same_id_is_one_job(running: Running, plugin: JobsPlugin) -> None:
    """A caller that is not sure may enqueue again."""
    for _ in range(2):
        await enqueue(running, plugin.work, "once", "fixed-id")
    assert await running.run_jobs() == 1


async def test_a_rollback_leaves_no_job(running: Running, plugin: JobsPlugin) -> None:
    """Record and place in the queue are written in the caller's transaction."""

    def fail(unit: Unit) -> None:
        unit.enqueue(plugin.work, Payload(word="never"))
        raise RuntimeError("rolled back")

    with pytest.raises(RuntimeError):
        await running.platform.database.write(fail)
    assert await running.platform.database.read(Session.scalar, select(func.count(JobRecord.id))) == 0
    assert await running.run_jobs() == 0


async def test_errors_are_retried_then_given_up(running: Running, plugin: JobsPlugin) -> None:
    """Two failures are retried; with a third the job is given up and says why."""
    plugin.failures = 2
    first = await enqueue(running, plugin.work, "third time lucky")
    await running.run_jobs()
    assert (await record(running, first)).status == "done"
    plugin.failures = 99
    second = await enqueue(running, plugin.work, "never")
    await running.run_jobs()
    found = await record(running, second)
    assert (found.status, len(plugin.given_up)) == ("failed", 1)
    assert "RuntimeError" in (found.error or "")


async def test_no_secret_in_the_error_of_an_attempt(running: Running, plugin: JobsPlugin) -> None:
    """Operators read it while the job waits for the next attempt."""
    await enqueue(running, plugin.rest, "swordfish")
    await running.run_jobs()
    _, error = plugin.errors
    assert error is not None and "db.example" in error and "swordfish" not in error


@pytest.mark.parametrize("lane", ["quick", "large"])
async def test_others_go_first_after_a_failure(running: Running, plugin: JobsPlugin, lane: Lane) -> None:
    """A lane has few places: what fails again and again takes turns with what waits there."""
    plugin.failures = 3
    jobs = [await enqueue(running, plugin.work, word, lane=lane) for word in ("a", "b", "c")]
    await running.run_jobs()
    assert plugin.ran == ["a", "b", "c", "a", "b", "c"]
    for job_id in jobs:
        found = await record(running, job_id)
        assert (found.status, found.attempts, found.failures, found.worker) == ("done", 2, 1, None)


async def test_the_public_text_of_an_error_is_the_reason(running: Running, plugin: JobsPlugin) -> None:
    """The recorded reason is what a client would read, not the name of a class."""
    await enqueue(running, plugin.work, "away")
    await running.run_jobs()
    [reason] = plugin.given_up
    assert reason.startswith("The thing is away; ") and " 3 attempts" in reason


async def test_a_permanent_failure_is_not_retried(running: Running, plugin: JobsPlugin) -> None:
    """JobFailed ends the job at once, with its text."""
    job_id = await enqueue(running, plugin.work, "hopeless")
    await running.run_jobs()
    assert plugin.ran == ["hopeless"]
    assert plugin.given_up == ["it can't be done"]
    assert (await record(running, job_id)).error == "it can't be done"


async def test_a_job_that_exits(running: Running, plugin: JobsPlugin) -> None:
    """`sys.exit` in a job is a failure like any other, and not the end of the worker."""
    job_id = await enqueue(running, plugin.work, "exit")
    await running.run_jobs()
    found = await record(running, job_id)
    assert (found.status, len(plugin.ran)) == ("failed", plugin.work.retries + 1)


async def test_an_interrupted_job_runs_again(running: Running, plugin: JobsPlugin) -> None:
    """A worker that stops in the middle leaves the job to be run again."""
    job_id = await enqueue(running, plugin.hang, "stuck")
    task = asyncio.create_task(run_job(JobRunner(running.platform), job_id))
    await plugin.started.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (await record(running, job_id)).status == "running"


async def test_a_job_that_kills_its_worker_is_given_up(running: Running, plugin: JobsPlugin) -> None:
    """After as many deaths as the job allows, it is given up instead of killing the next worker."""
    job_id = await enqueue(running, plugin.work, "deadly")
    died = update(JobRecord).where(JobRecord.id == job_id).values(attempts=plugin.work.crashes)
    await execute(running.platform.database, died)
    await running.run_jobs()
    assert plugin.ran == []
    assert (await record(running, job_id)).status == "failed"
    assert "died" in plugin.given_up[0]


async def test_a_job_of_a_plugin_that_left(running: Running, plugin: JobsPlugin) -> None:
    stranger = Job("test.unknown", Payload, plugin.work.handler)
    job_id = await enqueue(running, stranger, "whose?")
    await running.run_jobs()
    assert "no plugin" in ((await record(running, job_id)).error or "")


async def test_hook_on_event_durable(running: Running, plugin: JobsPlugin) -> None:
    """A durable event is delivered by a job, once its unit is committed, and not when it is rolled back."""

    def fail(unit: Unit) -> None:
        unit.emit(Happened(word="rolled back"))
        raise RuntimeError("rolled back")

    with pytest.raises(RuntimeError):
        await running.platform.database.write(fail)
    await running.platform.database.write(lambda unit: unit.emit(Happened(word="committed")))
    assert plugin.events == []
    await running.run_jobs()
    assert plugin.events == ["committed"]


async def test_a_payload_that_no_longer_fits_fails_the_job(running: Running, plugin: JobsPlugin) -> None:
    """After an upgrade a payload may lack a field: the job ends with the field's name, and not its values."""
    job_id = await enqueue(running, plugin.work, "hello")
    unfit = update(JobRecord).where(JobRecord.id == job_id).values(payload={"word": ["s3cret"]})
    await execute(running.platform.database, unfit)
    async with asyncio.timeout(20):
        await running.run_jobs()
    found = await record(running, job_id)
    assert (found.status, plugin.ran) == ("failed", [])
    assert "word" in (found.error or "") and "s3cret" not in (found.error or "")


async def test_a_give_up_that_fails_ends_the_job(running: Running, plugin: JobsPlugin) -> None:
    """What records the failure may fail itself, again and again: the job ends all the same."""
    plugin.give_up_fails = True
    job_id = await enqueue(running, plugin.work, "hopeless")
    async with asyncio.timeout(20):
        await running.run_jobs()
    found = await record(running, job_id)
    assert (found.status, found.error) == ("failed", "it can't be done")
    assert len(plugin.given_up) == plugin.work.retries + 1


async def test_a_fault_of_the_machine_is_not_the_jobs(running: Running, plugin: JobsPlugin) -> None:
    """No space, no memory, no handles: tried again more often than failures are, and done in the end."""
    faults = [OSError(errno.ENOSPC, "full"), MemoryError(), OSError(errno.EMFILE, "handles")]
    plugin.faults = [*faults, *faults]
    job_id = await enqueue(running, plugin.work, "patient")
    async with asyncio.timeout(20):
        await running.run_jobs()
    found = await record(running, job_id)
    assert (found.status, found.failures, found.faults, found.error) == ("done", 0, 6, None)
    assert plugin.given_up == []
