"""Cancelling a job: a waiting one ends at once, a running one is notified, wherever it runs.

The request is stored in the job's record and announced to the workers, so it survives a crash of either side:
a worker that takes the job up again sees the request before it does anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from kernel.db.base import utc_now
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord
from kernel.jobs import queue
from kernel.jobs.declarations import Job, JobRef, LongJob
from kernel.jobs.kinds import CANCEL
from kernel.plugins.offers import OFFERS

if TYPE_CHECKING:
    from kernel.platform import Platform


def declared_jobs(platform: Platform) -> Mapping[str, JobRef]:
    """The jobs of all plugins and of the platform itself, by name."""
    return platform.resource(OFFERS).jobs


class CancelledJob(BaseModel):
    """The id of a cancelled job."""

    job_id: str


def request_cancel(unit: Unit, record: JobRecord, job: JobRef | None) -> None:
    """Cancel a job that is under way; its record must be locked in this unit."""
    changes = {"cancel_requested_at": utc_now()}
    if record.status == "queued":
        end_cancelled(unit, record, job, changes)
    else:
        queue.note(unit, record, changes)
        unit.notify(CANCEL, record.id)


def end_cancelled(unit: Unit, record: JobRecord, job: JobRef | None, values: Mapping[str, Any]) -> None:
    """Record a cancelled job's end, and let another job notify its plugin."""
    ended = queue.close(unit, record, "cancelled", {"error": None, "message": "", **values})
    if ended and isinstance(job, LongJob) and job.on_cancel is not None:
        unit.enqueue(TELL_OF_CANCEL, CancelledJob(job_id=record.id))


async def _tell(platform: Platform, cancelled: CancelledJob) -> None:
    """Let the plugin record that its job was cancelled."""
    record = await platform.database.read(lambda session: session.get(JobRecord, cancelled.job_id))
    job = None if record is None else declared_jobs(platform).get(record.name)
    if record is not None and isinstance(job, LongJob) and job.on_cancel is not None:
        await job.on_cancel(platform, job.payload.model_validate(record.payload))


TELL_OF_CANCEL = Job("kernel.job_cancelled", CancelledJob, _tell, lane="quick")
