"""Jobs that wait with others of their kind: turns between owners and shares, and many at once."""

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
from kernel.jobs.runner import JobRunner
from kernel.jobs.silence import GONE
from kernel.sdk import Gather, Job, JobMoved, Lane, Platform, Plugin, Together, Unit, hookimpl
from kernel.testing import Running, Start
from tests.fakes.rows import execute


class Word(BaseModel):
    """What a test job gets."""

    word: str


class GatheredPlugin(Plugin):
    """Writes down what ran, and in whose company."""

    name = "gathered_under_test"

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

    def __init__(self, running: Running, plugin: GatheredPlugin) -> None:
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

    async def carriers_waiting(self) -> list[str]:
        """The ids of those that will take jobs up."""
        query = select(JobRecord.id).where(JobRecord.name == "kernel.carry", JobRecord.status == "queued")
        return await self.running.platform.database.read(lambda session: list(session.scalars(query)))

    async def carry(self) -> None:
        """Run the carriers that wait, and those that they call."""
        runner = JobRunner(self.running.platform)
        while waiting := await self.carriers_waiting():
            for carrier in waiting:
                await runner.run(carrier)

    async def carriers(self) -> list[str]:
        """The states of those that took them up."""
        query = select(JobRecord.status).where(JobRecord.name == "kernel.carry")
        return await self.running.platform.database.read(lambda session: list(session.scalars(query)))


@pytest_asyncio.fixture
async def stage(start_platform: Start, database_url: str | None) -> AsyncIterator[Stage]:
    plugin = GatheredPlugin()
    running = await start_platform(plugin, env={"DATABASE_URL": database_url})
    yield Stage(running, plugin)


async def test_many_at_once(stage: Stage) -> None:
    """One carrier takes what waits, up to a weight of 64; what it leaves is run by itself."""
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


async def test_one_carrier_after_another_lot(stage: Stage) -> None:
    """A carrier takes the next lot itself: only the one that it called for company is there beside it."""
    await stage.wait(*(f"word {number}" for number in range(10)), weight=32)
    await stage.running.run_jobs()
    assert [len(words) for words in stage.plugin.together] == [2] * 5
    assert await stage.carriers() == ["done"] * 2


async def test_an_error_concerns_nobody_else(stage: Stage) -> None:
    """If jobs can't be handled together, each is run by itself, and the carrier takes no further lot."""
    stage.plugin.broken = True
    words = [f"word {number}" for number in range(10)]
    await stage.wait(*words, weight=32)
    await stage.running.run_jobs()
    assert sorted(stage.plugin.alone) == words
    carriers = await stage.carriers()
    assert len(carriers) >= stage.plugin.tried == 5 and set(carriers) == {"done"}
    assert set((await stage.states()).values()) == {"done"}


async def test_turns(stage: Stage) -> None:
    """An owner with many jobs does not hold up the single one of another, nor one share another."""
    for number in range(6):
        await stage.wait(f"ann {number}", owner=1, share="big", lane="standard")
    await stage.wait("ann, elsewhere", owner=1, share="small", lane="standard")
    await stage.wait("bob", owner=2, share="his", lane="standard")
    busy = update(JobRecord).where(JobRecord.payload["word"].as_string() == "ann 0")
    taken = busy.values(gathered="taken:another carrier", status="running")
    await stage.write(lambda unit: unit.session.execute(taken) and None)
    await stage.running.run_jobs()
    assert stage.plugin.alone[:2] == ["bob", "ann, elsewhere"]
    assert stage.plugin.alone[2:] == [f"ann {number}" for number in range(1, 6)]


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
    (carrier,) = await stage.carriers_waiting()
    await JobRunner(stage.running.platform).run(carrier)
    assert (stage.plugin.alone, stage.plugin.together) == (["due again"], [["a", "b"]])
    states = await stage.states()
    assert states.pop(later) == "queued" and set(states.values()) == {"done"}


@pytest.mark.parametrize(
    ("lane", "workers", "places"), [("standard", 1, 1), ("standard", 2, 3), ("large", 3, 2)]
)
async def test_a_place_is_left(stage: Stage, lane: Lane, workers: int, places: int) -> None:
    """A share with a job that failed holds all places of the workers but one: the last is for others."""
    platform = stage.running.platform
    assert platform.settings.worker_concurrency == 2
    seen = [utc_now()] * workers + [GONE]
    rows = [{"id": str(number), "seen_at": moment} for number, moment in enumerate(seen)]
    await execute(platform.database, insert(WorkerRecord).values(rows))
    tried, _ = await stage.wait("tried", "as new", share="away", lane=lane)
    await stage.wait("new", share="here", lane=lane)
    held = await stage.wait(*(f"held {number}" for number in range(places)), share="away", lane=lane)
    for number, job_id in enumerate(held):
        elsewhere = update(JobRecord).where(JobRecord.id == job_id)
        await execute(platform.database, elsewhere.values(gathered=f"taken:{number}", status="running"))
    past = utc_now() - timedelta(seconds=60)
    failed = update(JobRecord).where(JobRecord.id == tried).values(not_before=past, error="away")
    await execute(platform.database, failed)
    await stage.carry()
    assert stage.plugin.alone == ["new"]
    await JobRunner(platform).run(held[0], "0")
    await stage.wait("newer", share="here", lane=lane)
    await stage.carry()
    assert sorted(stage.plugin.alone) == ["as new", "held 0", "new", "newer", "tried"]


async def test_left_to_its_carrier(stage: Stage) -> None:
    """Once a job waits for a carrier, or has one, its own place in the queue makes no second run of it."""
    job_id, *_ = await stage.wait("a")
    runner = JobRunner(stage.running.platform)
    assert await runner.run(job_id) is None
    taken = update(JobRecord).where(JobRecord.id == job_id)
    taken = taken.values(gathered="taken:a carrier", status="running", attempts=1)
    await execute(stage.running.platform.database, taken)
    assert await runner.run(job_id) is None
    assert await runner.run(job_id, "a carrier") is not None
    assert stage.plugin.alone == ["a"]


async def test_cancelled_while_its_own_place_is_taken_up(stage: Stage) -> None:
    """A job that its carrier runs can be cancelled, also after its own place came up in the same worker."""
    (job_id,) = await stage.wait("endless")
    taken = update(JobRecord).where(JobRecord.id == job_id)
    await execute(stage.running.platform.database, taken.values(gathered="taken:a carrier"))
    runner = JobRunner(stage.running.platform)
    run = asyncio.create_task(runner.run(job_id, "a carrier"))
    await stage.plugin.begun.wait()
    assert await runner.run(job_id) is None
    runner.cancel(job_id)
    await run
    assert await stage.states() == {job_id: "cancelled"}


async def test_a_carrier_that_died(stage: Stage) -> None:
    """What a carrier had when its worker was killed is run, each job by itself, and counts as started."""
    ids = await stage.wait("a", "b")
    carrier = select(JobRecord.id).where(JobRecord.name == "kernel.carry")
    known = await stage.running.platform.database.read(lambda session: session.scalar(carrier))
    died = update(JobRecord).where(JobRecord.id.in_(ids))
    died = died.values(gathered=f"taken:{known}", status="running", attempts=1)
    await stage.write(lambda unit: unit.session.execute(died) and None)
    await stage.running.run_jobs()
    assert (stage.plugin.alone, stage.plugin.together) == (["a", "b"], [])
    assert set((await stage.states()).values()) == {"done"}


async def test_moved(stage: Stage) -> None:
    """A job that turns out to be heavy waits in another lane, with another payload, and is still one job."""
    await stage.wait("heavy", "light", lane="standard")
    await stage.running.run_jobs()
    assert sorted(stage.plugin.alone) == ["heavy", "heavy, moved", "light"]
    query = select(JobRecord.lane, JobRecord.attempts).where(JobRecord.name == "test.note")
    query = query.order_by(JobRecord.lane)
    rows = await stage.running.platform.database.read(lambda session: session.execute(query).all())
    assert [tuple(row) for row in rows] == [("large", 1), ("standard", 1)]
