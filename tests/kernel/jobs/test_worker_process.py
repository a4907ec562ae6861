"""Workers as real processes: killed, stopped, side by side. Every job runs to its end."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import socket
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from kernel.db.base import utc_now
from kernel.db.tables import JobRecord, WorkerRecord
from kernel.jobs import heartbeats
from kernel.sdk import Unit
from kernel.sdk.jobs import Gather, Lane, place_jobs_again
from kernel.testing import Running, Start, environment
from tests.fakes.processes import Process, running_process
from tests.fakes.rows import execute
from tests.fakes.waiting import eventually
from tests.fakes.worker_process import STEP, STUMBLE, Step, StepsPlugin

pytestmark = pytest.mark.durability

AT_ONCE = 4  # jobs of a worker
SOON = 5.0  # seconds after a job in which the next one starts, also on a busy machine


class Floor:
    """A platform that enqueues, and workers that work."""

    def __init__(self, running: Running, env: dict[str, str], folder: Path, stack: AsyncExitStack) -> None:
        self.running = running
        self.folder = folder
        self._env = env
        self._stack = stack

    async def worker(self, at_once: int = AT_ONCE) -> Process:
        """Start a worker process."""
        log = self.folder / "worker.log"
        command = ("-m", "tests.fakes.worker_process")
        env = {**self._env, "PLATFORM_WORKER_CONCURRENCY": str(at_once)}
        return await self._stack.enter_async_context(running_process(*command, env=env, log=log))

    async def enqueue(
        self, numbers: range, seconds: float, lane: Lane = "standard", together: int = 0
    ) -> None:
        """One job for each number; they go on only when so many are under way `together`."""
        for number in numbers:
            step = self.step(number, seconds=seconds, together=together)
            await self.running.platform.database.write(Unit.enqueue, STEP, step, lane=lane)

    def step(self, number: int, **how: Any) -> Step:
        """What a job of this test gets."""
        return Step(number=number, folder=str(self.folder), **how)

    async def until_running(self, lane: Lane) -> None:
        """Wait until a job runs there."""
        there = select(JobRecord.id).where(JobRecord.name == STEP.name, JobRecord.lane == lane)
        query = there.where(JobRecord.status == "running")
        read = self.running.platform.database.read

        async def found() -> bool:
            return await read(lambda session: session.scalar(query)) is not None

        await eventually(found, 60)

    def written(self, kind: str) -> int:
        """How many jobs wrote down that they started, or that they are done."""
        return len(list(self.folder.glob(f"*.{kind}")))

    async def done(self) -> int:
        """How many jobs are recorded as done."""
        mine = JobRecord.name.in_((STEP.name, STUMBLE.name))
        query = select(func.count()).select_from(JobRecord).where(mine, JobRecord.status == "done")
        return await self.running.platform.database.read(lambda session: int(session.scalar(query) or 0))

    async def until_done(self, count: int, seconds: float = 90) -> None:
        """Wait until that many are."""

        async def all_done() -> bool:
            return await self.done() == count

        await eventually(all_done, seconds)
        assert self.written("done") == count


@pytest.fixture
async def floor(start_platform: Start, platform_home: Path, database_url: str | None, tmp_path: Path):  # type: ignore[no-untyped-def]
    """Each database."""
    extra = {"DATABASE_URL": database_url}
    running = await start_platform(StepsPlugin, env=extra)
    folder = tmp_path / "steps"
    folder.mkdir()
    async with AsyncExitStack() as stack:
        yield Floor(running, environment(platform_home, extra), folder, stack)


@pytest.mark.long
async def test_killed_again_and_again(floor: Floor) -> None:
    """A worker killed in the middle of its jobs, three times, loses none of them."""
    random.seed(11)
    await floor.enqueue(range(24), seconds=0.15)
    for _ in range(3):
        worker = await floor.worker()
        before = floor.written("started")
        await eventually(lambda before=before: floor.written("started") > before, 60)
        await asyncio.sleep(random.random() * 0.4)
        await worker.kill()
    assert await floor.done() < 24
    await floor.worker()
    await floor.until_done(24)


@pytest.mark.either_database
async def test_who_is_dead_at_a_start(floor: Floor, platform_home: Path) -> None:
    """Whoever had a worker's slot before is dead, however lately it was seen; no other worker is."""
    folder = platform_home / "run"
    folder.mkdir(exist_ok=True)
    slot = f"{socket.gethostname()}:{folder.stat().st_ino}:0"
    earlier, older, other = f"{slot}:1a2b", slot, f"{slot}0:3c4d"
    never_silent = utc_now() + timedelta(days=1)
    rows = [WorkerRecord(id=name, seen_at=never_silent) for name in (earlier, older, other)]
    database = floor.running.platform.database
    await database.write(lambda unit: unit.session.add_all(rows))
    await floor.worker()

    async def forgotten() -> bool:
        names = await database.read(lambda session: set(session.scalars(select(WorkerRecord.id))))
        return other in names and not {earlier, older} & names

    await eventually(forgotten)


async def test_stopped_in_the_middle(floor: Floor) -> None:
    """A worker that is asked to stop hands its jobs back; another one, already there, takes them over.

    It was told: nobody is called unresponsive.
    """
    first, everybody = await floor.worker(), 3 * AT_ONCE
    await floor.enqueue(range(AT_ONCE), seconds=0, together=everybody + 1)
    await eventually(lambda: floor.written("started") == AT_ONCE, 60)
    second = await floor.worker()
    # More than the first takes at a time: once they are done, the second is there.
    await floor.enqueue(range(AT_ONCE, everybody), seconds=0, lane="quick", together=everybody)
    await eventually(lambda: floor.written("done") == everybody - AT_ONCE, 60)
    first.signal(signal.SIGTERM)
    assert await first.wait(20) == 0
    (floor.folder / "go.started").touch()
    await floor.until_done(everybody, 20)
    assert "unresponsive" not in second.output()


async def test_killed_before_and_after_a_move(floor: Floor) -> None:
    """A job whose worker dies runs by itself; moved to another lane, it also survives the next death."""
    step = floor.step(0, seconds=0, together=2, heavy=True)
    enqueue = floor.running.platform.database.write
    await enqueue(lambda unit: unit.enqueue(STEP, step, lane="standard", gather=Gather(None, 1)))
    first = await floor.worker()
    await floor.until_running("standard")
    await first.kill()
    (floor.folder / "go.started").touch()
    second = await floor.worker()
    await floor.until_running("large")
    await second.kill()
    (floor.folder / "on.started").touch()
    await floor.worker()
    await eventually(lambda: floor.written("done") == 1, 60)


@pytest.mark.either_database
async def test_a_worker_that_stops_takes_nothing_more(floor: Floor) -> None:
    """What is enqueued while a worker shuts down waits for another one: nobody would release it again."""
    (floor.folder / "hold").touch()
    await floor.enqueue(range(1), seconds=600)
    worker = await floor.worker()
    await eventually(lambda: floor.written("started") == 1, 60)
    worker.signal(signal.SIGTERM)
    await eventually(lambda: floor.written("clearing") == 1, 60)
    await floor.enqueue(range(1, 2), seconds=0)
    assert await worker.wait(20) == 0
    assert (floor.written("started"), floor.written("done")) == (1, 0)
    await floor.worker()
    await eventually(lambda: (floor.folder / "1.done").exists(), 60)


@pytest.mark.either_database
async def test_back_after_others_took_over(floor: Floor) -> None:
    """A worker that was frozen for so long that others have its jobs stops running them."""
    await floor.worker()
    await floor.enqueue(range(1), seconds=600)
    await eventually(lambda: floor.written("started") == 1, 60)
    database = floor.running.platform.database
    names = await database.read(lambda session: list(session.scalars(select(WorkerRecord.id))))
    await database.write(heartbeats.end, names)
    await eventually(lambda: floor.written("cleared") == 1, 30)
    assert await floor.done() == 0


@pytest.mark.either_database
async def test_an_interrupted_job_clears_up(floor: Floor) -> None:
    """Before a stopped worker is gone, the jobs that it interrupts have come to their own end."""
    worker = await floor.worker()
    await floor.enqueue(range(2), seconds=600)
    await eventually(lambda: floor.written("started") == 2, 60)
    (floor.folder / "hold").touch()
    worker.signal(signal.SIGTERM)
    await eventually(lambda: floor.written("clearing") == 2, 60)
    (floor.folder / "hold").unlink()
    assert await worker.wait(20) == 0
    assert (floor.written("cleared"), floor.written("done")) == (2, 0)


async def test_side_by_side(floor: Floor) -> None:
    """Two workers share the queue, and no job runs twice."""
    await asyncio.gather(floor.worker(), floor.worker())
    # More than one worker takes at a time, so that it takes both to begin, however late one of them is.
    await floor.enqueue(range(2 * AT_ONCE), seconds=0, together=2 * AT_ONCE)
    await floor.enqueue(range(2 * AT_ONCE, 20), seconds=0.1)
    await floor.until_done(20)
    most = select(func.max(JobRecord.attempts))
    attempts = await floor.running.platform.database.read(lambda session: session.scalar(most))
    workers = {path.read_text() for path in floor.folder.glob("*.done")}
    assert (attempts, len(workers)) == (1, 2)


@pytest.mark.either_database
async def test_lanes(floor: Floor) -> None:
    """What fills one lane holds up no other: small work passes huge work, mail passes both.

    Whenever a job ends, the next one follows at once, not when the lane looks by itself. Huge jobs have one
    place less.
    """
    waves = 5
    await floor.enqueue(range(8), seconds=600, lane="large")
    await floor.enqueue(range(8, 16), seconds=600, lane="standard")
    await floor.enqueue(range(16, 16 + waves * AT_ONCE), seconds=0.1, lane="quick")
    await floor.worker()
    await floor.until_done(waves * AT_ONCE)
    times = [path.stat().st_mtime for path in floor.folder.glob("*.done")]
    assert max(times) - min(times) < (waves - 1) * SOON

    def under_way() -> tuple[int, int]:
        numbers = [int(path.name.partition(".")[0]) for path in floor.folder.glob("*.started")]
        return sum(number < 8 for number in numbers), sum(8 <= number < 16 for number in numbers)

    await eventually(lambda: under_way() == (AT_ONCE - 1, AT_ONCE))


@pytest.mark.either_database
async def test_one_job_at_a_time(floor: Floor) -> None:
    """A worker of one place has it in each lane, also in that of huge jobs."""
    await floor.enqueue(range(2), seconds=0, lane="large")
    await floor.worker(at_once=1)
    await floor.until_done(2, 30)


async def test_a_rest_holds_no_place_and_outlives_its_worker(floor: Floor) -> None:
    """Between two attempts others run in a job's lane; after a kill another worker makes the next one."""
    database = floor.running.platform.database
    await database.write(Unit.enqueue, STUMBLE, floor.step(0, seconds=0))
    worker = await floor.worker(at_once=1)
    await eventually(lambda: floor.written("failed") == 1, 60)
    await floor.enqueue(range(1, 3), seconds=0)
    await floor.until_done(2, 30)
    rests = (JobRecord.name == STUMBLE.name) & (JobRecord.status == "queued")
    message = await database.read(lambda session: session.scalar(select(JobRecord.message).where(rests)))
    assert re.findall(r"\d+", message or "") == ["1", "60"]
    await worker.kill()
    await execute(database, update(JobRecord).where(rests).values(not_before=utc_now()))
    await floor.worker(at_once=1)
    await floor.until_done(3)


@pytest.mark.either_database
async def test_handed_back_to_their_lane(floor: Floor) -> None:
    """Interrupted jobs go on in the lane they came from."""
    await floor.enqueue(range(2), seconds=1.0, lane="large")
    first = await floor.worker()
    await eventually(lambda: floor.written("started") >= 1, 60)
    first.signal(signal.SIGTERM)
    assert await first.wait(20) == 0
    await floor.worker()
    await floor.until_done(2)


@pytest.mark.either_database
async def test_placed_again_after_a_restore(floor: Floor) -> None:
    """A job that is under way by restored rows runs, whoever had it when they were archived."""
    database = floor.running.platform.database
    await floor.enqueue(range(1), seconds=0)
    before = await database.read(lambda session: dict(session.scalars(select(JobRecord.payload)).one()))
    await floor.worker()
    await floor.until_done(1)
    (floor.folder / "0.done").unlink()

    def restore(unit: Unit) -> None:
        unit.session.execute(update(JobRecord).values(status="running", worker="gone", payload=before))

    await database.write(restore)
    assert await database.write(lambda unit: place_jobs_again(unit.session)) == 1
    await floor.until_done(1)
