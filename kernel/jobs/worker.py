"""A worker process: takes jobs from the queue, shows signs of life, takes over from dead workers."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from kernel.db.engine import Unit
from kernel.db.tables import WorkerRecord
from kernel.jobs.kinds import CANCEL, QUEUED, Lane
from kernel.jobs.lanes import Lanes
from kernel.jobs.resting import Resting
from kernel.jobs.runner import JOB_RUNNER
from kernel.jobs.schedules import Scheduler
from kernel.jobs.silence import GONE, Watched
from kernel.lasting import lasting
from kernel.slots import take_slot

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.worker")

_BEAT = 10.0
_CLEARING_UP = 2.0  # seconds for interrupted jobs to clean up at a stop
_MOST_WORKERS = 256
_LEFT = "kernel.jobs.worker_left"


class Worker:
    """Runs jobs until it is told to stop. Only one per process, because DBOS is a singleton."""

    def __init__(self, platform: Platform, slot: str) -> None:
        self._platform = platform
        self._slot = slot
        # A new name at each start: what the queue holds under an earlier one has no owner any more.
        self._executor = executor = f"{slot}:{secrets.token_hex(4)}"
        self._runner = platform.resource(JOB_RUNNER)
        settings = platform.settings
        slots = settings.worker_concurrency
        self._loop = asyncio.get_running_loop()
        self._lanes = Lanes(settings.sqlalchemy_url, executor, slots, self._workflow, self._loop)
        self._running: set[asyncio.Task[Lane | None]] = set()
        self._left = asyncio.Event()
        self._stopping = False
        self._watched = Watched()
        self._outage = platform.database.outage(log, "no heartbeat can be saved")

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; jobs still running then are handed back to the queue."""
        await self._platform.database.write(_bury, self._slot)
        await self._beat()
        listen = self._platform.notices.listen
        listen(QUEUED, lambda lane: self._lanes.ring((lane,)))
        listen(CANCEL, self._runner.cancel)
        listen(_LEFT, lambda _: self._left.set())
        try:
            if await self._launched(stop):
                log.info("worker %s is ready for jobs", self._executor)
                await self._guarded_beat()
                beside = [
                    lasting("schedules", Scheduler(self._platform).run),
                    lasting("resting jobs", Resting(self._platform).run),
                ]
                await self._watch(stop)
                for task in beside:
                    task.cancel()
        finally:
            await self._hand_back()

    async def _launched(self, stop: asyncio.Event) -> bool:
        """Launch the queue. False if the stop came first: on a busy SQLite, a launch takes long."""
        launch = asyncio.create_task(asyncio.to_thread(self._lanes.open))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({launch, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if launch.done():
            launch.result()
        return launch.done()

    def _workflow(self, job_id: str) -> None:
        """Run a job: called in a thread of DBOS, while the job itself runs in the platform's event loop.

        Returning or raising would end the job for the queue: an interrupted job stays here until the process
        ends, and one whose bookkeeping fails (an outage of the database) is tried again.
        """
        while not self._run_once(job_id):
            time.sleep(_BEAT)

    def _run_once(self, job_id: str) -> bool:
        try:
            lane = asyncio.run_coroutine_threadsafe(self._run_job(job_id), self._loop).result()
        except CancelledError:
            threading.Event().wait()
        except Exception:  # boundary: the runner's own bookkeeping failed
            log.exception("could not save the outcome of job %s; it will run again", job_id)
            return False
        if lane is not None:
            self._lanes.left(lane)
        return True

    async def _run_job(self, job_id: str) -> Lane | None:
        if self._stopping:
            raise asyncio.CancelledError  # taken just before the stop: released with the others
        running = asyncio.create_task(self._runner.run(job_id))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await running

    async def _watch(self, stop: asyncio.Event) -> None:
        """Show life now and then; take over others' jobs, at once if another worker reports that it stops."""
        stopped = asyncio.create_task(stop.wait())
        while not stop.is_set():
            left = asyncio.create_task(self._left.wait())
            await asyncio.wait({stopped, left}, timeout=_BEAT, return_when=asyncio.FIRST_COMPLETED)
            left.cancel()
            self._left.clear()
            if not stop.is_set():
                await self._guarded_beat()

    async def _guarded_beat(self) -> None:
        with self._outage.tolerated():
            await self._beat()
            await self._take_over()

    async def _beat(self) -> None:
        await self._platform.database.write(_show_life, self._executor)

    async def _take_over(self) -> None:
        """Put the jobs of silent workers back into the queue."""
        beats = await self._platform.database.read(_last_beats, self._executor)
        dead = self._watched.silent(beats, time.monotonic())
        if not dead:
            return
        if silent := [name for name in dead if beats[name] != GONE]:
            log.warning("taking over the jobs of unresponsive workers: %s", ", ".join(silent))
        await asyncio.to_thread(self._lanes.requeue, dead)
        await self._platform.database.write(_forget_workers, dead)

    async def _hand_back(self) -> None:
        """Stop taking jobs, cancel running ones, let them clean up, and release them to other workers.

        No job may be taken after that: with this worker's record gone, nobody would ever release it.
        """
        self._stopping = True
        await asyncio.to_thread(self._lanes.close)
        running = list(self._running)
        for job in running:
            job.cancel()
        if running:
            await asyncio.wait(running, timeout=_CLEARING_UP)
        await self._platform.database.write(_leave, self._executor)


def _bury(unit: Unit, slot: str) -> None:
    """Mark the earlier holder of this slot as dead, however recently it was seen."""
    known = unit.session.scalars(select(WorkerRecord.id))
    dead = [executor for executor in known if executor == slot or executor.startswith(f"{slot}:")]
    change = update(WorkerRecord).where(WorkerRecord.id.in_(dead)).values(seen_at=GONE)
    unit.session.execute(change)


def _show_life(unit: Unit, executor: str) -> None:
    known = update(WorkerRecord).where(WorkerRecord.id == executor).values(seen_at=unit.now())
    if unit.session.scalar(known.returning(WorkerRecord.id)) is None:
        unit.session.add(WorkerRecord(id=executor, seen_at=unit.now()))


def _last_beats(session: Session, but: str) -> dict[str, datetime]:
    beats = select(WorkerRecord.id, WorkerRecord.seen_at).where(WorkerRecord.id != but)
    return {row.id: row.seen_at for row in session.execute(beats)}


def _forget_workers(unit: Unit, executors: list[str]) -> None:
    unit.session.execute(delete(WorkerRecord).where(WorkerRecord.id.in_(executors)))


def _leave(unit: Unit, executor: str) -> None:
    left = update(WorkerRecord).where(WorkerRecord.id == executor).values(seen_at=GONE)
    unit.session.execute(left)
    unit.notify(_LEFT, executor)


@asynccontextmanager
async def executor_slot(platform: Platform) -> AsyncIterator[str]:
    """A name that is unique while this worker lives and the same after a restart.

    It is the first free slot of this home on this host, held by a file lock.
    """
    folder = platform.settings.home / "run"
    slot, handle = await asyncio.to_thread(take_slot, folder, _MOST_WORKERS, "worker-")
    try:
        yield f"{socket.gethostname()}:{folder.stat().st_ino}:{slot}"
    finally:
        handle.close()
