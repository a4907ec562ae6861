"""A worker process: takes jobs from the queue, shows signs of life, takes over from workers that died."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import socket
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError, Future
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from sqlalchemy import delete, select, update
from sqlalchemy.exc import SQLAlchemyError

from kernel.db.base import utc_now
from kernel.db.tables import WorkerRecord
from kernel.jobs.declarations import Lane
from kernel.jobs.queue import QUEUES, WORKFLOW, dbos_url
from kernel.jobs.runner import JobRunner

if TYPE_CHECKING:
    from dbos import DBOSConfig

    from kernel.platform import Platform

log = logging.getLogger("platform.worker")

# The queue's own notion of a code version: jobs are looked up by name, so every release may run any job.
_VERSION = "1"
# Seconds between looks into a queue. Each look costs 2.5 ms of processor time, also while nothing is to do.
_POLL: dict[Lane, float] = {"quick": 0.5, "standard": 0.1, "large": 1.0}
_BEAT = 5.0
_SILENT = timedelta(seconds=30)


class Worker:
    """Runs jobs until it is told to stop. One for each process: DBOS keeps one instance."""

    def __init__(self, platform: Platform, executor: str) -> None:
        self._platform = platform
        self._executor = executor
        self._runner = JobRunner(platform)
        self._loop = asyncio.get_running_loop()
        self._running: set[Future[None]] = set()
        self._stopping = threading.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set. Jobs that are under way then are handed back to the queue."""
        await self._beat()
        try:
            if await self._launched(stop):
                log.info("worker %s takes jobs", self._executor)
                await self._watch(stop)
        finally:
            await self._hand_back()

    async def _launched(self, stop: asyncio.Event) -> bool:
        """Whether the queue runs; False when the stop came first: a busy SQLite makes a launch take long."""
        launch = asyncio.create_task(asyncio.to_thread(self._launch))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({launch, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if launch.done():
            launch.result()
        return launch.done()

    def _launch(self) -> None:
        from dbos import DBOS

        settings = self._platform.settings
        config: DBOSConfig = {
            "name": "platform",
            "system_database_url": dbos_url(settings.sqlalchemy_url),
            "application_version": _VERSION,
            "executor_id": self._executor,
            "run_migrations": False,
            "log_level": "WARNING",
            "max_executor_threads": len(QUEUES) * settings.worker_concurrency + 8,
        }
        DBOS(config=config)
        # A function: DBOS marks what it is given, and a bound method takes no attributes.
        DBOS.workflow(name=WORKFLOW, max_recovery_attempts=1_000_000)(lambda job_id: self._workflow(job_id))
        DBOS.launch()
        slots = settings.worker_concurrency
        for lane, queue in QUEUES.items():
            at_once = max(1, slots - 1) if lane == "large" else slots
            DBOS.register_queue(queue, worker_concurrency=at_once, polling_interval_sec=_POLL[lane])

    def _workflow(self, job_id: str) -> None:
        """Runs in a thread of DBOS; the job itself runs in the platform's event loop.

        Returning or raising would end the job in the queue's books: a job that is interrupted stays here
        until the process goes, one whose bookkeeping fails (a database that is away) is tried again.
        """
        while not self._run_once(job_id):
            self._stopping.wait(_BEAT)

    def _run_once(self, job_id: str) -> bool:
        future = asyncio.run_coroutine_threadsafe(self._runner.run(job_id), self._loop)
        self._running.add(future)
        try:
            future.result()
        except CancelledError:
            threading.Event().wait()
        except Exception:  # boundary: the runner's own bookkeeping failed
            log.exception("the outcome of job %s can't be written; it will run again", job_id)
            return False
        finally:
            self._running.discard(future)
        return True

    async def _watch(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), _BEAT)
            except TimeoutError:
                await self._guarded_beat()

    async def _guarded_beat(self) -> None:
        try:
            await self._beat()
            await self._take_over()
        except (SQLAlchemyError, OSError) as error:
            log.warning("no sign of life could be written: %s", type(error).__name__)

    async def _beat(self) -> None:
        async with self._platform.database.unit() as unit:
            known = update(WorkerRecord).where(WorkerRecord.id == self._executor).values(seen_at=utc_now())
            result: Any = await unit.session.execute(known)
            if result.rowcount == 0:
                unit.session.add(WorkerRecord(id=self._executor))

    async def _take_over(self) -> None:
        """Put the jobs of silent workers back into the queue."""
        async with self._platform.database.read() as session:
            silent = select(WorkerRecord.id).where(WorkerRecord.seen_at < utc_now() - _SILENT)
            dead = list(await session.scalars(silent.where(WorkerRecord.id != self._executor)))
        if not dead:
            return
        log.warning("taking over from silent workers: %s", ", ".join(dead))
        await asyncio.to_thread(_requeue, dead)
        async with self._platform.database.unit() as unit:
            await unit.session.execute(delete(WorkerRecord).where(WorkerRecord.id.in_(dead)))

    async def _hand_back(self) -> None:
        """Cancel what runs, and let other workers take it over at once."""
        for future in list(self._running):
            future.cancel()
        async with self._platform.database.unit() as unit:
            gone = utc_now() - timedelta(days=1)
            change = update(WorkerRecord).where(WorkerRecord.id == self._executor).values(seen_at=gone)
            await unit.session.execute(change)


def _requeue(executors: list[str]) -> None:
    from dbos import DBOS

    for queue in QUEUES.values():
        pending = DBOS.list_workflows(
            status="PENDING", executor_id=executors, queue_name=queue, load_input=False, load_output=False
        )
        if pending:
            DBOS.resume_workflows([workflow.workflow_id for workflow in pending], queue_name=queue)


@asynccontextmanager
async def executor_slot(platform: Platform) -> AsyncIterator[str]:
    """A name for this worker that is its own while it lives, and the same one after a restart.

    The first free slot of this home on this host, held by a file lock.
    """
    folder = platform.settings.home / "run"
    folder.mkdir(parents=True, exist_ok=True)
    slot, handle = await asyncio.to_thread(_take_slot, str(folder))
    try:
        yield f"{socket.gethostname()}:{folder.stat().st_ino}:{slot}"
    finally:
        handle.close()


def _take_slot(folder: str) -> tuple[int, TextIO]:
    for slot in range(256):
        handle = Path(folder, f"worker-{slot}.lock").open("w")  # noqa: SIM115 - held as long as the worker lives
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            continue
        return slot, handle
    raise RuntimeError("256 workers run on this home already")
