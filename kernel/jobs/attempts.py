"""Running jobs: one attempt and what follows from its end, or many small jobs together."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import SQLAlchemyError

from kernel.auth.acting import Acting, acting_var
from kernel.db.base import utc_now
from kernel.db.outages import is_outage
from kernel.db.tables import JobRecord
from kernel.errors import ANY_ERROR, PlatformError
from kernel.jobs import queue
from kernel.jobs.batching import Together
from kernel.jobs.cancellation import end_cancelled
from kernel.jobs.declarations import JobFailed, JobMoved, JobRef, LongJob
from kernel.jobs.kinds import Status
from kernel.jobs.progress import Progress
from kernel.jobs.stopping import Cancelled, StopSignal
from kernel.jobs.turns import Batch
from kernel.observe.tracing import TRACING
from kernel.plugins.offers import OFFERS
from kernel.process.machine_faults import brief, kind_of, machine_fault

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.jobs")

T = TypeVar("T")

_LONGEST_PAUSE = 60.0
_SAVE_EVERY = 1.0
_RECENT = 1_000  # cancelled jobs


class JobRunner:
    """Runs a platform's jobs for `worker`."""

    def __init__(self, platform: Platform, worker: str = "this process") -> None:
        self._platform = platform
        self._signals: dict[StopSignal, str] = {}
        self._cancelled: deque[str] = deque(maxlen=_RECENT)  # a notice may come before its job begins here
        self.worker = worker

    def cancel(self, job_id: str) -> None:
        """End a job that a person cancelled, if it runs here."""
        self._cancelled.append(job_id)
        for signal, running in self._signals.items():
            if running == job_id:
                signal.request()

    async def run_batch(self, batch: Batch) -> None:
        """Run what was taken. If the task is cancelled, the jobs are still this worker's: release them."""
        if batch.together:
            await self._together(batch.records)
        else:
            for record in batch.records:
                await self.attempt(record)

    async def _together(self, records: Sequence[JobRecord]) -> None:
        """Handle the jobs together. An error is not blamed on any of them: each is then run alone and shows
        its own.
        """
        job, failed = self._platform.resource(OFFERS).jobs.get(records[0].name), None
        acting_var.set(Acting(records[0].name, account_id=None))
        together = Together(job.payload if job else BaseModel, records)
        try:
            if job is not None and job.together is not None and together.payloads:
                with self._platform.resource(TRACING).work(records):
                    await job.together(self._platform, together)
        except ANY_ERROR as error:  # boundary: a plugin's code may fail in any way
            kind = type(error).__name__
            log.warning("running the jobs %s one by one: %s: %s", records[0].name, kind, error)
            failed = queue.stored_error(error)
        await self.write(together.close_done)
        await self.write(queue.release_batch, records, failed)

    async def attempt(self, record: JobRecord) -> None:
        """Make an attempt of a job that this worker has taken."""
        signal = StopSignal()
        self._signals[signal] = record.id
        try:
            if record.id in self._cancelled:
                signal.request()
            await self._attempt(record, signal)
        finally:
            del self._signals[signal]

    async def _attempt(self, record: JobRecord, signal: StopSignal) -> None:
        job = self._platform.resource(OFFERS).jobs.get(record.name)
        if job is None:
            await self._close(record, "failed", error=f"no plugin provides the job '{record.name}' any more")
            return
        try:
            payload = job.payload.model_validate(record.payload)
        except ValidationError as error:
            await self._give_up_unread(record, job, _unreadable(error))
            return
        if record.cancel_requested_at is not None or signal.requested:
            await self._cancel(record, job, {})
        elif record.attempts - record.failures - record.faults > job.crashes:
            await self._give_up(record, job, payload, f"its worker died {job.crashes} times while running it")
        else:
            await self._handle(record, job, payload, signal)

    async def _handle(self, record: JobRecord, job: JobRef, payload: BaseModel, signal: StopSignal) -> None:
        progress = Progress(record.done, record.total, record.unit)
        try:
            with self._platform.resource(TRACING).work([record], expected=(JobMoved, Cancelled)):
                async with signal.stops():
                    result = await self._call(record, job, payload, progress)
        except Cancelled:
            await self._cancel(record, job, progress.values())
        except JobMoved as moved:
            await self.write(queue.move, record, moved.lane, moved.payload, moved.first_turn)
        except JobFailed as error:
            await self._give_up(record, job, payload, str(error))
        except ANY_ERROR as error:  # boundary: a job may fail in any way
            await self._failed(record, job, payload, error)
        else:
            await self._close(record, "done", error=None, result=result, **progress.values())

    async def _call(
        self, record: JobRecord, job: JobRef, payload: BaseModel, progress: Progress
    ) -> str | None:
        acting_var.set(Acting(record.name, account_id=record.owner_id))
        if isinstance(job, LongJob):
            async with self._saving(record, progress):
                return await job.handler(self._platform, payload, progress)
        await job.handler(self._platform, payload)
        return None

    @asynccontextmanager
    async def _saving(self, record: JobRecord, progress: Progress) -> AsyncIterator[None]:
        """Save changed progress once a second; the last state is saved with the outcome."""
        saving = asyncio.create_task(self._save(record, progress), name=f"progress of {record.id}")
        try:
            yield
        finally:
            saving.cancel()
            await asyncio.gather(saving, return_exceptions=True)

    async def _save(self, record: JobRecord, progress: Progress) -> None:
        while True:
            await asyncio.sleep(_SAVE_EVERY)
            if values := progress.unsaved():
                await self.write(queue.note, record, {**values, "progress_at": utc_now()})

    async def _failed(self, record: JobRecord, job: JobRef, payload: BaseModel, error: BaseException) -> None:
        """Try again, or give up. A fault of the machine is no failure, and is retried as long as it lasts."""
        self._platform.database.note(error)
        fault, failures, faults = machine_fault(error), record.failures + 1, record.faults + 1
        if fault is None and failures > job.retries:
            log.warning("job %s (%s) failed", record.name, record.id, exc_info=error)
            await self._give_up(record, job, payload, _reason(error, failures))
            return
        values: dict[str, Any]
        if fault is None:
            log.warning("job %s (%s) failed", record.name, record.id, exc_info=error)
            pause = _pause(job, failures)
            message = f"Attempt {failures} failed; trying again in {pause:g} s"
            values = {"failures": failures, "error": queue.stored_error(error), "message": message}
        else:
            pause = _pause(job, faults)
            message = f"{brief(fault)}; trying again in {pause:g} s"
            log.warning("job %s (%s) is waiting: %s", record.name, record.id, message)
            values = {"faults": faults, "message": message, "error": message}
        # It rests without a place in its lane: a lane has few, and this job may fail for an hour.
        if not await self.write(queue.rest, record, pause, values):
            await self._cancel(record, job, {})

    async def _give_up(self, record: JobRecord, job: JobRef, payload: BaseModel, reason: str) -> None:
        if job.on_give_up is not None:
            await self._tell(record, job, partial(job.on_give_up, self._platform, payload, reason))
        await self._close(record, "failed", error=reason)

    async def _give_up_unread(self, record: JobRecord, job: JobRef, reason: str) -> None:
        on_unreadable = job.on_unreadable if isinstance(job, LongJob) else None
        if on_unreadable is not None and record.subject is not None:
            await self._tell(record, job, partial(on_unreadable, self._platform, record.subject, reason))
        await self._close(record, "failed", error=reason)

    async def _tell(self, record: JobRecord, job: JobRef, call: Callable[[], Awaitable[None]]) -> None:
        """Notify the plugin that its job is given up; retried like the job itself."""
        tries = failures = 0
        while True:
            try:
                await call()
                return
            except ANY_ERROR as error:  # boundary: the plugin's record of its failure may fail in any way
                log.exception("job %s (%s): its failure can't be recorded", record.name, record.id)
                tries += 1
                failures += machine_fault(error) is None
            if failures > job.retries:
                return
            await asyncio.sleep(_pause(job, tries))

    async def _cancel(self, record: JobRecord, job: JobRef, progress: Mapping[str, Any]) -> None:
        await self.write(end_cancelled, record, job, progress)

    async def _close(self, record: JobRecord, status: Status, **values: Any) -> None:
        await self.write(queue.close, record, status, values)

    async def write(self, change: Callable[..., T], *args: Any) -> T:
        """Write to the table, however long it takes: a database outage must not make a job run twice."""
        tries = 0
        while True:
            try:
                return await self._platform.database.write(change, *args)
            except (SQLAlchemyError, OSError) as error:
                if not (is_outage(error) or machine_fault(error)):
                    raise
                tries += 1
                log.warning("could not save the state of a job: %s; trying again", kind_of(error))
            await asyncio.sleep(min(2.0**tries, _LONGEST_PAUSE))


def _pause(job: JobRef, tries: int) -> float:
    return float(min(job.first_pause * 2 ** min(tries - 1, 30), _LONGEST_PAUSE))


def _unreadable(error: ValidationError) -> str:
    """Why a payload does not fit; names only its fields, as its values may be private."""
    fields = sorted({".".join(str(part) for part in item["loc"]) or "payload" for item in error.errors()})
    return f"these stored fields of the job don't fit this version of its plugin: {', '.join(fields)}"[:500]


def _reason(error: BaseException, failures: int) -> str:
    """The reason that people may read: an error's public text if it has one, otherwise its type."""
    text = str(error.detail) if isinstance(error, PlatformError) else type(error).__name__
    return f"{text} (given up after {failures} attempts)"


def batching_kinds(platform: Platform) -> Collection[str]:
    """The names of the jobs of which many can be handled together."""
    return {name for name, job in platform.resource(OFFERS).jobs.items() if job.together is not None}
