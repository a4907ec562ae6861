"""Cancelling a job: a waiting one ends at once, a running one is notified, wherever it runs.

The request is stored in the job's record and announced to the workers, so it survives a crash of either side:
a worker that takes the job up again sees the request before it does anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.db.base import utc_now
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord
from kernel.jobs import queue
from kernel.jobs.declarations import Job, JobRef, LongJob
from kernel.jobs.kinds import CANCEL
from kernel.plugins.offers import OFFERS

if TYPE_CHECKING:
    from kernel.platform import Platform


def request_cancel(unit: Unit, record: JobRecord, job: JobRef | None) -> None:
    """Cancel a job that is under way; its record must be locked in this unit."""
    if record.status == "queued":
        told = TELL_OF_CANCEL if isinstance(job, LongJob) and job.on_cancel is not None else None
        queue.cancel(unit, record, told, {"cancel_requested_at": utc_now()})
    else:
        queue.note(unit, record, {"cancel_requested_at": utc_now()})
        unit.notify(CANCEL, record.id)


async def _tell(platform: Platform, cancelled: queue.CancelledJob) -> None:
    """Let the plugin record that its job was cancelled."""
    record = await platform.database.read(lambda session: session.get(JobRecord, cancelled.job_id))
    if record is None:
        return
    job = platform.resource(OFFERS).jobs.get(record.name)
    if isinstance(job, LongJob) and job.on_cancel is not None:
        await job.on_cancel(platform, job.payload.model_validate(record.payload))


TELL_OF_CANCEL = Job("kernel.job_cancelled", queue.CancelledJob, _tell, lane="quick")
