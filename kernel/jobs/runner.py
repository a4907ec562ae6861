"""Running one job: attempts, retries with growing pauses, giving up with a reason."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from kernel.db.base import utc_now
from kernel.db.tables import JobRecord
from kernel.errors import FAULTS, PlatformError
from kernel.jobs.declarations import JobFailed, JobRef
from kernel.logs import mask

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.jobs")

_LONGEST_PAUSE = 60.0


class JobRunner:
    """Runs jobs of one platform by their ids."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def run(self, job_id: str) -> None:
        """Run the job until it is done or given up. Cancelling it leaves it to be run again."""
        while True:
            record = await self._begin(job_id)
            if record is None:
                return
            pause = await self._attempt(record)
            if pause is None:
                return
            await asyncio.sleep(pause)

    async def _begin(self, job_id: str) -> JobRecord | None:
        """Count the attempt; None when there is nothing left to do."""
        async with self._platform.database.unit() as unit:
            change = (
                update(JobRecord)
                .where(JobRecord.id == job_id, JobRecord.status.in_(("queued", "running")))
                .values(status="running", attempts=JobRecord.attempts + 1, started_at=utc_now())
                .returning(JobRecord)
            )
            return await unit.session.scalar(change)

    async def _attempt(self, record: JobRecord) -> float | None:
        """One attempt; answers the pause before the next one, None when it was the last."""
        job = self._platform.jobs.get(record.name)
        if job is None:
            await self._end(record, "failed", f"no plugin offers the job '{record.name}' any more")
            return None
        payload = job.payload.model_validate(record.payload)
        if record.attempts > job.crashes:
            await self._give_up(record, job, payload, f"the worker died {job.crashes} times over it")
            return None
        try:
            await job.handler(self._platform, payload)
        except JobFailed as error:
            await self._give_up(record, job, payload, str(error))
        except FAULTS as error:  # boundary: a job may fail in any way
            return await self._failed(record, job, payload, error)
        else:
            await self._end(record, "done", None)
        return None

    async def _failed(
        self, record: JobRecord, job: JobRef, payload: object, error: BaseException
    ) -> float | None:
        log.warning("job %s (%s) failed", record.name, record.id, exc_info=error)
        failures = record.failures + 1
        if failures > job.retries:
            await self._give_up(record, job, payload, _reason(error, failures))
            return None
        async with self._platform.database.unit() as unit:
            values = {"failures": failures, "error": mask(f"{type(error).__name__}: {error}")[:500]}
            await unit.session.execute(update(JobRecord).where(JobRecord.id == record.id).values(**values))
        return float(min(job.first_pause * 2 ** (failures - 1), _LONGEST_PAUSE))

    async def _give_up(self, record: JobRecord, job: JobRef, payload: object, reason: str) -> None:
        if job.on_give_up is not None:
            await job.on_give_up(self._platform, payload, reason)
        await self._end(record, "failed", reason)

    async def _end(self, record: JobRecord, status: str, error: str | None) -> None:
        """Close the books. What a finished job was about is forgotten: it may have been deleted since."""
        async with self._platform.database.unit() as unit:
            values: dict[str, Any] = {"status": status, "error": error, "finished_at": utc_now()}
            if status == "done":
                values["payload"] = {}
            await unit.session.execute(update(JobRecord).where(JobRecord.id == record.id).values(**values))


def _reason(error: BaseException, failures: int) -> str:
    """What people may read: the public text of an error that has one, else its kind."""
    said = str(error.detail) if isinstance(error, PlatformError) else type(error).__name__
    return f"{said} (given up after {failures} attempts)"


async def drain(platform: Platform) -> int:
    """Run everything that is queued, here and now, in the order it came; answers how many jobs ran.

    The same runner as in a worker, without the queue: for tests and for one-shot commands.
    """
    runner, ran = JobRunner(platform), 0
    while True:
        async with platform.database.read() as session:
            waiting = select(JobRecord.id).where(JobRecord.status.in_(("queued", "running")))
            job_id = await session.scalar(waiting.order_by(JobRecord.created_at, JobRecord.id).limit(1))
        if job_id is None:
            return ran
        await runner.run(job_id)
        ran += 1
