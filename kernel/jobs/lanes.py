"""The lanes in which jobs wait: DBOS's queues, checked when something happens rather than all the time.

Checking a queue takes 2.5 ms of processor time, and DBOS's own loops poll all the time: 4 % of a core when
idle. Here, each lane's loop sleeps until its bell rings (a job was enqueued or has ended), and otherwise
checks only every `FALLBACK` seconds, in case a bell was lost. What else DBOS runs (delayed workflows, its
schedules, messages between workflows) is not used and is stopped.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from kernel.jobs.kinds import Lane, places
from kernel.jobs.queue import QUEUES, WORKFLOW, dbos_url

if TYPE_CHECKING:
    from dbos import DBOS, DBOSConfig

# Seconds between checks of a lane whose bell does not ring.
FALLBACK = 30.0
# A job's place is free once DBOS has recorded its end: check then, and again in case that took long.
_AFTER_A_JOB = (0.02, 0.2, 1.0, 5.0)
# DBOS's code version, always the same: jobs are found by name, so every release may run any job.
_VERSION = "1"
_NEVER = 86_400.0
_LAST_LOOK = 2.0  # seconds to wait for a queue check at shutdown, in case the database is unreachable


class Bell(threading.Event):
    """The stop signal of a queue's loop; a ring ends its `wait` early, so that the loop checks at once."""

    def __init__(self) -> None:
        super().__init__()
        self._rung = threading.Event()

    def ring(self) -> None:
        """End the current wait, or else the next one."""
        self._rung.set()

    def set(self) -> None:
        super().set()
        self._rung.set()

    def wait(self, timeout: float | None = None) -> bool:
        if self.is_set():
            return True
        self._rung.wait(timeout)
        self._rung.clear()
        return self.is_set()


class Lanes:
    """The queues of one worker process. Only one per process, because DBOS is a singleton."""

    def __init__(
        self,
        database_url: str,
        executor: str,
        slots: int,
        work: Callable[[str], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._url = database_url
        self._executor = executor
        self._slots = slots
        self._work = work
        self._loop = loop
        self._bells: dict[Lane, Bell] = {lane: Bell() for lane in QUEUES}
        self._threads: list[threading.Thread] = []

    def open(self) -> None:
        """Start taking jobs; each is passed to `work` in its own thread. Blocks for a moment."""
        from dbos import DBOS

        dbos = DBOS(config=self._config())
        # A function, because DBOS sets attributes on it, which a bound method doesn't allow.
        DBOS.workflow(name=WORKFLOW, max_recovery_attempts=1_000_000)(lambda job_id: self._work(job_id))
        DBOS.listen_queues([])
        DBOS.launch()
        for stop in (*dbos.background_thread_stop_events, dbos._background_jobs_stop_event):
            stop.set()
        for lane in QUEUES:
            self._serve(dbos, lane)

    def close(self) -> None:
        """Stop taking jobs. Blocks until running queue checks are done, for two seconds at most."""
        for bell in self._bells.values():
            bell.set()
        until = time.monotonic() + _LAST_LOOK
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def ring(self, lanes: Iterable[str] = QUEUES) -> None:
        """Have these lanes checked now."""
        for lane, bell in self._bells.items():
            if lane in lanes:
                bell.ring()

    def left(self, lane: Lane) -> None:
        """A job of this lane ended: take the next one once its place is free. Callable from any thread."""
        with suppress(RuntimeError):  # the loop is closed: the process is ending
            self._loop.call_soon_threadsafe(self._ring_later, self._bells[lane])

    def _ring_later(self, bell: Bell) -> None:
        for seconds in _AFTER_A_JOB:
            self._loop.call_later(seconds, bell.ring)

    def requeue(self, executors: list[str]) -> None:
        """Put jobs that these workers had taken back into their lanes."""
        from dbos import DBOS

        for queue in QUEUES.values():
            pending = DBOS.list_workflows(
                status="PENDING", executor_id=executors, queue_name=queue, load_input=False, load_output=False
            )
            if pending:
                DBOS.resume_workflows([workflow.workflow_id for workflow in pending], queue_name=queue)
        self.ring()

    def _config(self) -> DBOSConfig:
        return {
            "name": "platform",
            "system_database_url": dbos_url(self._url),
            "application_version": _VERSION,
            "executor_id": self._executor,
            "run_migrations": False,
            "log_level": "WARNING",
            "max_executor_threads": len(QUEUES) * self._slots + 8,
            "notification_listener_polling_interval_sec": _NEVER,
            "notification_coalesce_sec": _NEVER,
        }

    def _serve(self, dbos: DBOS, lane: Lane) -> None:
        from dbos import DBOS
        from dbos._queue import queue_worker_thread

        at_once = places(lane, self._slots)
        queue = DBOS.register_queue(QUEUES[lane], worker_concurrency=at_once, polling_interval_sec=FALLBACK)
        bell = self._bells[lane]
        bell.ring()
        name, look = f"platform-lane-{lane}", (bell, dbos, queue)
        thread = threading.Thread(target=queue_worker_thread, args=look, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)
