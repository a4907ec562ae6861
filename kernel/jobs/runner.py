"""Running one job: an attempt, a rest before the next one, giving up with a reason, cancellation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import SQLAlchemyError

from kernel.acting import Acting, acting_var
from kernel.db.base import utc_now
from kernel.db.engine import Unit
from kernel.db.outages import is_outage
from kernel.db.tables import JobRecord
from kernel.errors import ANY_ERROR, PlatformError
from kernel.jobs import records
from kernel.jobs.cancelling import TELL_OF_CANCEL
from kernel.jobs.carriers import call_carrier
from kernel.jobs.declarations import JobFailed, JobMoved, JobRef, LongJob
from kernel.jobs.gathered import CARRIER
from kernel.jobs.kinds import Lane
from kernel.jobs.progress import Progress
from kernel.jobs.queue import JOB_QUEUE
from kernel.jobs.spans import attempt_span
from kernel.jobs.stopping import Cancelled, StopSignal
from kernel.machine_faults import Fault, brief, kind_of, machine_fault
from kernel.offers import OFFERS
from kernel.resource_keys import ResourceKey
from kernel.tracing import TRACING

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.jobs")

T = TypeVar("T")

_LONGEST_PAUSE = 60.0
_SAVE_EVERY = 1.0


class JobRunner:
    """Runs a platform's jobs by id."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._signals: dict[StopSignal, str] = {}
        self.rested = asyncio.Event()
        """Set when a job begins to rest; whoever waits for it clears it."""

    async def run(self, job_id: str, carrier: str | None = None) -> Lane | None:
        """Run the job until it is done, given up, cancelled, or rests before another attempt; returns its
        lane if there was anything to do.

        `carrier` is the id of the job that has taken it, if any. If the task is cancelled, the job will be
        run again.
        """
        # Before the record is read: a later cancellation sets the signal, an earlier one is in the record.
        signal = StopSignal()
        self._signals[signal] = job_id
        lane: Lane | None = None
        try:
            while record := await self._write(records.claim, job_id, carrier):
                lane = cast(Lane, record.lane)
                pause = await self._attempt(record, signal)
                if pause is None:
                    break
                await signal.pause(pause)
        finally:
            del self._signals[signal]
        return lane

    def cancel(self, job_id: str) -> None:
        """End a job that a person cancelled, if it runs here."""
        for signal, running in self._signals.items():
            if running == job_id:
                signal.request()

    async def _attempt(self, record: JobRecord, signal: StopSignal) -> float | None:
        """Make one attempt; returns the pause before the next one if that is made here."""
        job = self._platform.resource(OFFERS).jobs.get(record.name)
        if job is None:
            await self._close(record, "failed", error=f"no plugin provides the job '{record.name}' any more")
            return None
        try:
            payload = job.payload.model_validate(record.payload)
        except ValidationError as error:
            await self._give_up_unread(record, job, _unreadable(error))
            return None
        if record.cancel_requested_at is not None or signal.requested:
            await self._cancel(record, job)
            return None
        if record.attempts - record.failures - record.faults > job.crashes:
            await self._give_up(record, job, payload, f"its worker died {job.crashes} times while running it")
            return None
        return await self._handle(record, job, payload, signal)

    async def _handle(
        self, record: JobRecord, job: JobRef, payload: BaseModel, signal: StopSignal
    ) -> float | None:
        progress = Progress(record.done, record.total, record.unit)
        try:
            with attempt_span(self._platform.resource(TRACING), record):
                async with signal.stops():
                    result = await self._call(record, job, payload, progress)
        except Cancelled:
            await self._cancel(record, job, progress.values())
        except JobMoved as moved:
            await self._write(self._move, record, moved)
        except JobFailed as error:
            await self._give_up(record, job, payload, str(error))
        except ANY_ERROR as error:  # boundary: a job may fail in any way
            return await self._failed(record, job, payload, error)
        else:
            await self._close(record, "done", error=None, result=result, **progress.values())
        return None

    def _move(self, unit: Unit, record: JobRecord, moved: JobMoved) -> None:
        records.move(unit, record, moved.lane, moved.payload)
        call_carrier(unit, self._platform.resource(JOB_QUEUE), record.name, moved.lane)

    async def _again(self, record: JobRecord, values: Mapping[str, Any], pause: float) -> float | None:
        """Record how an attempt failed. The job then rests without a place in its lane: a lane has few, and
        this job may fail for an hour. A carrier, which others depend on, waits where it is.
        """
        if await self._write(_rest, record, values, pause):
            self.rested.set()
            return None
        return pause

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
                await self._write(records.note, record, {**values, "progress_at": utc_now()})

    async def _failed(
        self, record: JobRecord, job: JobRef, payload: BaseModel, error: BaseException
    ) -> float | None:
        fault = machine_fault(error)
        if fault is not None:
            return await self._hindered(record, job, fault)
        log.warning("job %s (%s) failed", record.name, record.id, exc_info=error)
        failures = record.failures + 1
        if failures > job.retries:
            await self._give_up(record, job, payload, _reason(error, failures))
            return None
        pause = _pause(job, failures)
        values = {
            "failures": failures,
            "error": records.stored_error(error),
            "message": f"Attempt {failures} failed; trying again in {pause:g} s",
        }
        return await self._again(record, values, pause)

    async def _hindered(self, record: JobRecord, job: JobRef, fault: Fault) -> float | None:
        """Record a fault of the machine: not counted as a failure, and retried as long as it takes."""
        faults = record.faults + 1
        pause = _pause(job, faults)
        message = f"{brief(fault)}; trying again in {pause:g} s"
        log.warning("job %s (%s) is waiting: %s", record.name, record.id, message)
        return await self._again(record, {"faults": faults, "message": message, "error": message}, pause)

    async def _give_up(self, record: JobRecord, job: JobRef, payload: BaseModel, reason: str) -> None:
        if job.on_give_up is not None:
            await self._tell(record, job, partial(job.on_give_up, self._platform, payload, reason))
        await self._close(record, "failed", error=reason)

    async def _give_up_unread(self, record: JobRecord, job: JobRef, reason: str) -> None:
        told = job.on_unreadable if isinstance(job, LongJob) else None
        if told is not None and record.subject is not None:
            await self._tell(record, job, partial(told, self._platform, record.subject, reason))
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

    async def _cancel(
        self, record: JobRecord, job: JobRef, progress: Mapping[str, Any] | None = None
    ) -> None:
        told = TELL_OF_CANCEL if isinstance(job, LongJob) and job.on_cancel is not None else None
        await self._write(records.cancel, record, told, progress or {})

    async def _close(self, record: JobRecord, status: str, **values: Any) -> None:
        await self._write(records.close, record, status, values)

    async def _write(self, change: Callable[..., T], *args: Any) -> T:
        """Write to the record, however long it takes: a database outage must not make a job run twice."""
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


def _rest(unit: Unit, record: JobRecord, values: Mapping[str, Any], pause: float) -> bool:
    records.note(unit, record, values)
    return record.name != CARRIER and records.rest(unit, record, pause)


def _pause(job: JobRef, tries: int) -> float:
    return float(min(job.first_pause * 2 ** min(tries - 1, 30), _LONGEST_PAUSE))


def _unreadable(error: ValidationError) -> str:
    """Why a payload does not fit; names only its fields, as its values may be private."""
    fields = sorted({".".join(str(part) for part in item["loc"]) or "payload" for item in error.errors()})
    return f"these stored fields of the job don't fit this version of its plugin: {', '.join(fields)}"[:500]


def _reason(error: BaseException, failures: int) -> str:
    """The reason that people may read: an error's public text if it has one, otherwise its type."""
    said = str(error.detail) if isinstance(error, PlatformError) else type(error).__name__
    return f"{said} (given up after {failures} attempts)"


async def drain(platform: Platform, *, longest_pause: float = _LONGEST_PAUSE) -> int:
    """Run all queued jobs here and now, in order of arrival; returns how often one ran.

    Uses the worker's runner without the queue, for tests and one-shot commands.
    """
    runner, ran = platform.resource(JOB_RUNNER), 0
    while found := await platform.database.read(records.next_waiting):
        job_id, pause = found
        await asyncio.sleep(min(pause, longest_pause))
        await platform.database.write(records.end_rest, job_id)
        await runner.run(job_id)
        ran += 1
    return ran


JOB_RUNNER: ResourceKey[JobRunner] = ResourceKey("job runner")
