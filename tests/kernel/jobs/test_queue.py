"""Jobs that take turns with others of their kind: owners, shares, kinds, and many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from pydantic import BaseModel
from sqlalchemy import insert, select, update

from kernel.db.base import utc_now
from kernel.db.tables import JobRecord, WorkerRecord
from kernel.jobs import queue
from kernel.jobs.attempts import JobRunner
from kernel.sdk import Job, Platform, Plugin, Unit, hookimpl
from kernel.sdk.jobs import Gather, JobMoved, Lane, Together, others_wait
from kernel.testing import Running, Start
from kernel.testing.draining import run_job
from tests.fakes.rows import execute


class Word(BaseModel):
    """What a test job gets."""

    word: str


class TurnsPlugin(Plugin):
    """Writes down what ran, and in whose company."""

    name = "turns_under_test"

    def __init__(self) -> None:
        self.alone: list[str] = []
        self.together: list[list[str]] = []
        self.broken = False
        self.tried = 0
        self.begun = asyncio.Event()
        self.note = Job("test.note", Word, self._alone, first_pause=0.0, together=self._together)

    @hookimpl
    def register_jobs(self) -> list[Job[Word]]:
        return [self.note]

    async def _alone(self, platform: Platform, payload: Word) -> None:
        self.alone.append(payload.word)
        if payload.word == "heavy":
            raise JobMoved("large", Word(word="heavy, moved"))
        if payload.word == "unbegun":
            raise JobMoved("large", Word(word="begun"), first_turn=True)
        if payload.word == "endless":
            self.begun.set()
            await asyncio.Event().wait()

    async def _together(self, platform: Platform, jobs: Together[Word]) -> None:
        self.tried += 1
        if self.broken:
            raise RuntimeError("not together")
        self.together.append([payload.word for payload in jobs.payloads.values()])
        for job_id, payload in jobs.payloads.items():
            if not payload.word.startswith("odd"):
                jobs.done(job_id)


class Stage:
    """A platform with the plugin."""

    def __init__(self, running: Running, plugin: TurnsPlugin) -> None:
        self.running = running
        self.plugin = plugin
        self.write = running.platform.database.write

    async def wait(
        self,
        *words: str,
        owner: int | None = None,
        share: str | None = None,
        weight: int = 1,
        lane: Lane = "quick",
    ) -> list[str]:
        """Let a job for each word wait; answers their ids."""

        def enqueue(unit: Unit, word: str) -> str:
            gather = Gather(share, weight)
            return unit.enqueue(self.plugin.note, Word(word=word), lane=lane, owner_id=owner, gather=gather)

        return [await self.write(enqueue, word) for word in words]

    async def states(self) -> dict[str, str]:
        """The jobs' states."""
        query = select(JobRecord.id, JobRecord.status).where(JobRecord.name == "test.note")
        rows = await self.running.platform.database.read(lambda session: session.execute(query).all())
        return {row.id: row.status for row in rows}

    async def elsewhere(self, *job_ids: str) -> None:
        """Let another worker have these jobs, each in a place of its own."""
        for number, job_id in enumerate(job_ids):
            values = {"worker": "another", "status": "running", "attempts": 1}
            values["started_at"] = utc_now() + timedelta(seconds=number)
            change = update(JobRecord).where(JobRecord.id == job_id).values(**values)
            await execute(self.running.platform.database, change)


@pytest_asyncio.fixture
async def stage(start_platform: Start, database_url: str | None) -> AsyncIterator[Stage]:
    plugin = TurnsPlugin()
    running = await start_platform(plugin, env={"DATABASE_URL": database_url})
    yield Stage(running, plugin)


async def test_many_at_once(stage: Stage) -> None:
    """One place takes what waits, up to a weight of 64; what it leaves is run by itself."""
    ids = await stage.wait("a", "b", "odd one", "c")
    await stage.wait("half", "other half", "rest", weight=32)
    await stage.running.run_jobs()
    assert stage.plugin.together == [["a", "b", "odd one", "c", "half"], ["other half", "rest"]]
    assert stage.plugin.alone == ["odd one"]
    states = await stage.states()
    assert len(states) == 7 and set(states.values()) == {"done"} and set(ids) <= set(states)
    attempts = select(JobRecord.attempts).where(JobRecord.name == "test.note")
    read = stage.running.platform.database.read
    assert await read(lambda session: list(session.scalars(attempts))) == [1] * 7


async def test_one_lot_after_another(stage: Stage) -> None:
    """What doesn't fit into one lot is in the next."""
    await stage.wait(*(f"word {number}" for number in range(10)), weight=32)
    assert await stage.running.run_jobs() == 5
    assert [len(words) for words in stage.plugin.together] == [2] * 5


async def test_an_error_concerns_nobody_else(stage: Stage) -> None:
    """If jobs can't be handled together, each is run by itself, and none of that counts as an attempt."""
    stage.plugin.broken = True
    words = [f"word {number}" for number in range(10)]
    await stage.wait(*words, weight=32)
    await stage.running.run_jobs()
    assert sorted(stage.plugin.alone) == words
    assert stage.plugin.tried == 5
    assert set((await stage.states()).values()) == {"done"}
    attempts = select(JobRecord.attempts).where(JobRecord.name == "test.note")
    read = stage.running.platform.database.read
    assert await read(lambda session: list(session.scalars(attempts))) == [1] * 10


async def test_turns(stage: Stage) -> None:
    """An owner with many jobs does not hold up the single one of another, nor one share another."""
    first, *_ = [
        *(await stage.wait(*(f"ann {n}" for n in range(6)), owner=1, share="big", lane="standard")),
        *(await stage.wait("ann, elsewhere", owner=1, share="small", lane="standard")),
        *(await stage.wait("bob", owner=2, share="his", lane="standard")),
    ]
    await stage.elsewhere(first)
    await stage.running.run_jobs()
    assert stage.plugin.alone[:2] == ["bob", "ann, elsewhere"]
    assert stage.plugin.alone[2:] == [f"ann {number}" for number in range(1, 6)]


async def test_turns_in_one_place(stage: Stage) -> None:
    """Where nothing else runs, who was served last waits: an owner, a share, and jobs that take no turns."""
    await stage.wait(*(f"ann {number}" for number in range(4)), owner=1, share="big", lane="standard")
    await stage.wait("ann, elsewhere", owner=1, share="small", lane="standard")
    await stage.wait("bob", owner=2, share="his", lane="standard")
    plain = [Word(word="plain 0"), Word(word="plain 1")]
    await stage.write(lambda unit: [unit.enqueue(stage.plugin.note, one, lane="standard") for one in plain])
    await stage.running.run_jobs()
    expected = ["ann 0", "plain 0", "bob", "plain 1", "ann, elsewhere", "ann 1", "ann 2", "ann 3"]
    assert stage.plugin.alone == expected


async def test_no_turn_is_lost(stage: Stage) -> None:
    """An owner who has had all turns that they need takes no further ones from those who wait."""
    await stage.wait("bob", owner=2, share="his")
    await stage.wait(*(f"ann {number}" for number in range(45)), owner=1, share="big")
    await stage.running.run_jobs()
    assert [len(words) for words in stage.plugin.together] == [46]


async def test_tried_before(stage: Stage) -> None:
    """A job that failed waits for its time, and is then run by itself; the others go together."""
    first, later, *_ = await stage.wait("due again", "not yet", "a", "b")
    for job_id, seconds in ((first, -60), (later, 60)):
        moment = utc_now() + timedelta(seconds=seconds)
        await execute(
            stage.running.platform.database,
            update(JobRecord).where(JobRecord.id == job_id).values(attempts=1, failures=1, not_before=moment),
        )
    await stage.elsewhere(later)
    await stage.running.run_jobs()
    assert (stage.plugin.alone, stage.plugin.together) == (["due again"], [["a", "b"]])
    states = await stage.states()
    assert states.pop(later) == "running" and set(states.values()) == {"done"}


@pytest.mark.parametrize(
    ("lane", "workers", "places"), [("standard", 1, 1), ("standard", 2, 3), ("large", 3, 2)]
)
async def test_a_place_is_left(stage: Stage, lane: Lane, workers: int, places: int) -> None:
    """A share with a job that failed holds all places of the workers but one: the last is for others."""
    platform = stage.running.platform
    assert platform.settings.worker_concurrency == 2
    rows = [{"id": str(number), "seen_at": utc_now()} for number in range(workers)]
    await execute(platform.database, insert(WorkerRecord).values(rows))
    tried, _ = await stage.wait("tried", "as new", share="away", lane=lane)
    await stage.wait("new", share="here", lane=lane)
    held = await stage.wait(*(f"held {number}" for number in range(places)), share="away", lane=lane)
    await stage.elsewhere(*held)
    past = utc_now() - timedelta(seconds=60)
    failed = update(JobRecord).where(JobRecord.id == tried).values(not_before=past, error="away")
    await execute(platform.database, failed)
    await stage.running.run_jobs()
    assert stage.plugin.alone == ["new"]
    ended = update(JobRecord).where(JobRecord.id == held[0]).values(status="done", worker=None)
    await execute(platform.database, ended)
    await stage.wait("newer", share="here", lane=lane)
    await stage.running.run_jobs()
    assert sorted(stage.plugin.alone) == ["as new", "new", "newer", "tried"]


async def test_left_to_its_worker(stage: Stage) -> None:
    """What another worker has makes no second run, and what it has lost is not changed by it any more."""
    (job_id,) = await stage.wait("endless")
    runner = JobRunner(stage.running.platform, "a worker")
    run = asyncio.create_task(run_job(runner, job_id))
    await stage.plugin.begun.wait()
    assert not await run_job(JobRunner(stage.running.platform, "another"), job_id)
    await stage.elsewhere(job_id)
    runner.cancel(job_id)
    await run
    assert await stage.states() == {job_id: "running"}


async def test_a_worker_that_died(stage: Stage) -> None:
    """What it handled together when it was killed is run, each job by itself, and counts as started."""
    ids = await stage.wait("a", "b")
    await stage.elsewhere(*ids)
    await stage.write(queue.release, ["another"])
    await stage.running.run_jobs()
    assert (stage.plugin.alone, stage.plugin.together) == (["a", "b"], [])
    assert set((await stage.states()).values()) == {"done"}
    attempts = select(JobRecord.attempts).where(JobRecord.name == "test.note")
    read = stage.running.platform.database.read
    assert await read(lambda session: list(session.scalars(attempts))) == [2, 2]


async def test_a_worker_without_a_heartbeat(stage: Stage) -> None:
    """What it has had for a minute waits again, though nobody knows the worker; what is newer is left."""
    (old, new) = await stage.wait("old", "new")
    await stage.elsewhere(old, new)
    a_while_ago = (
        update(JobRecord).where(JobRecord.id == old).values(started_at=utc_now() - timedelta(hours=1))
    )
    await execute(stage.running.platform.database, a_while_ago)
    assert await stage.write(queue.release_abandoned) == 1
    assert await stage.states() == {old: "queued", new: "running"}


@pytest.mark.parametrize(("word", "waits"), [("heavy", False), ("unbegun", True)])
async def test_a_moved_job_may_wait_for_its_first_turn(stage: Stage, word: str, waits: bool) -> None:
    """Then its owner's other jobs give way to it, too; others' do in any case."""
    (job_id,) = await stage.wait(word, owner=1, lane="standard")
    assert await run_job(JobRunner(stage.running.platform), job_id)
    read = stage.running.platform.database.read
    assert [await read(others_wait, "large", owner) for owner in (1, 2)] == [waits, True]
    await stage.running.run_jobs()
    assert len(stage.plugin.alone) == 2


async def test_moved(stage: Stage) -> None:
    """A job that turns out to be heavy waits in another lane, with another payload, and is still one job."""
    await stage.wait("heavy", "light", lane="standard")
    await stage.running.run_jobs()
    assert sorted(stage.plugin.alone) == ["heavy", "heavy, moved", "light"]
    query = select(JobRecord.lane, JobRecord.attempts).where(JobRecord.name == "test.note")
    query = query.order_by(JobRecord.lane)
    rows = await stage.running.platform.database.read(lambda session: session.execute(query).all())
    assert [tuple(row) for row in rows] == [("large", 1), ("standard", 1)]
