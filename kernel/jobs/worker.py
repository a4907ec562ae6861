"""A worker process: takes jobs while it has places for them, shows life, takes over from dead workers."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from kernel.jobs import heartbeats, queue
from kernel.jobs.attempts import JobRunner, batching_kinds
from kernel.jobs.heartbeats import Watched
from kernel.jobs.kinds import CANCEL, LANES, QUEUED, Lane, places
from kernel.jobs.schedules import Scheduler
from kernel.jobs.turns import Batch, Taker
from kernel.libs.background import lasting, set_within
from kernel.libs.slots import take_slot

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.worker")

_BEAT = 10.0
# Seconds between looks into the queue without a notice, which may be lost, and after a failed one.
_LOOK = 30.0
_RETRY = 1.0
_CLEARING_UP = 2.0  # seconds for interrupted jobs to clean up at a stop
_MOST_WORKERS = 256


class Worker:
    """Runs jobs until it is told to stop."""

    def __init__(self, platform: Platform, slot: str) -> None:
        self._platform = platform
        self._slot = slot
        # A new name at each start: what an earlier one had is nobody's any more.
        self._name = f"{slot}:{secrets.token_hex(4)}"
        self._concurrency = platform.settings.worker_concurrency
        self._runner = JobRunner(platform, self._name)
        self._taker = Taker(self._name, batching_kinds(platform), self._concurrency)
        self._running: dict[asyncio.Task[None], Batch] = {}
        self._rung: set[Lane] = set(LANES)  # lanes that may have something
        self._bell = asyncio.Event()
        self._due = time.monotonic()  # when to look into all lanes
        self._in_doubt = False  # whether rows may name this worker for jobs that it doesn't run

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; jobs still running then are handed back to the queue."""
        notices = self._platform.notices
        await self._platform.database.write(heartbeats.begin, self._name, self._slot)
        with notices.listening(QUEUED, self._ring), notices.listening(CANCEL, self._runner.cancel):
            tasks = [
                lasting("jobs", self._take_jobs),
                lasting("heartbeats", self._show_life),
                lasting("schedules", Scheduler(self._platform).run),
            ]
            log.info("worker %s is ready for jobs", self._name)
            try:
                await stop.wait()
            finally:
                await self._stop(tasks)

    def _ring(self, lane: str) -> None:
        """Look for jobs in this lane now."""
        self._rung.add(cast(Lane, lane))
        self._bell.set()

    async def _take_jobs(self) -> None:
        """Fill the free places of each lane whenever something was enqueued, ended, or is due again."""
        outage = self._platform.database.outage(log, "no jobs can be taken")
        while True:
            self._bell.clear()
            now = time.monotonic()
            if now >= self._due:
                self._rung.update(LANES)
                self._due = now + _LOOK
            with outage.tolerated():
                await self._fill()
            await set_within(self._bell, _RETRY if outage.lasts else max(0.0, self._due - time.monotonic()))

    async def _fill(self) -> None:
        while lanes := [lane for lane in LANES if lane in self._rung and self._is_free(lane)]:
            try:
                if self._in_doubt:
                    self._in_doubt = False
                    await self._platform.database.write(queue.release, [self._name], keep=self._ids())
                self._rung.difference_update(lanes)
                batches, pause = await self._platform.database.write(self._taker.take, lanes)
            except BaseException:  # whether it was committed is unknown
                self._in_doubt = True
                self._rung.update(lanes)
                raise
            for batch in batches:
                self._start(batch)
                self._rung.add(batch.lane)
            if pause is not None:
                self._due = min(self._due, time.monotonic() + pause)

    def _is_free(self, lane: Lane) -> bool:
        busy = sum(batch.lane == lane for batch in self._running.values())
        return busy < places(lane, self._concurrency)

    def _ids(self) -> list[str]:
        return [record.id for batch in self._running.values() for record in batch.records]

    def _start(self, batch: Batch) -> None:
        task = asyncio.create_task(self._run(batch), name=f"job {batch.records[0].name}")
        self._running[task] = batch
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        batch = self._running.pop(task)
        if task.cancelled() or task.exception() is not None:
            self._in_doubt = True
        self._ring(batch.lane)

    async def _run(self, batch: Batch) -> None:
        try:
            await self._runner.run_batch(batch)
        except Exception:  # boundary: the runner's own bookkeeping failed
            names = ", ".join(record.id for record in batch.records)
            log.exception("could not save the outcome of %s; it will run again", names)
            await asyncio.sleep(_BEAT)
            raise

    async def _show_life(self) -> None:
        """Show life now and then, and let the jobs of silent workers run again."""
        outage, watched = self._platform.database.outage(log, "no heartbeat can be saved"), Watched()
        while True:
            with outage.tolerated():
                if not await self._platform.database.write(heartbeats.beat, self._name):
                    self._give_up_running()
                await self._take_over(watched)
                await self._platform.database.write(queue.release_abandoned)
            await asyncio.sleep(_BEAT)

    async def _take_over(self, watched: Watched) -> None:
        beats = await self._platform.database.read(heartbeats.beats_of_others, self._name)
        dead = watched.silent(beats, time.monotonic())
        if dead:
            log.warning("taking over the jobs of unresponsive workers: %s", ", ".join(dead))
            await self._platform.database.write(heartbeats.end, dead)

    def _give_up_running(self) -> None:
        """Stop what runs here: others thought this worker dead, such as after a freeze, and have its jobs."""
        log.warning("this worker was unresponsive; others took over its jobs")
        for task in self._running:
            task.cancel()

    async def _stop(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Take nothing more, cancel running jobs, let them clean up, and release them to other workers."""
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        running = list(self._running)
        for job in running:
            job.cancel()
        if running:
            await asyncio.wait(running, timeout=_CLEARING_UP)
        await self._platform.database.write(heartbeats.end, [self._name])


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
