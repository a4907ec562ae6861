"""The statements that change job records; the runner decides when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from kernel.db.base import utc_now
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord
from kernel.jobs.gathered import CARRIER, waiting
from kernel.jobs.kinds import CHANGED, UNDER_WAY, JobKind, Lane


def claim(unit: Unit, job_id: str) -> JobRecord | None:
    """Start an attempt and count it; None if there is nothing left to do."""
    change = (
        update(JobRecord)
        .where(JobRecord.id == job_id, JobRecord.status.in_(UNDER_WAY))
        .values(
            status="running",
            attempts=JobRecord.attempts + 1,
            started_at=utc_now(),
            done_before=JobRecord.done,
            progress_at=None,
            message="",
        )
        .returning(JobRecord)
    )
    record: JobRecord | None = unit.session.scalar(change)
    if record is not None:
        tell(unit, record)
    return record


def note(unit: Unit, record: JobRecord, values: Mapping[str, Any]) -> None:
    """Change the record of an unfinished job; a finished one stays as it is."""
    under_way = (JobRecord.id == record.id) & JobRecord.status.in_(UNDER_WAY)
    unit.session.execute(update(JobRecord).where(under_way).values(**values))
    tell(unit, record)


def close(unit: Unit, record: JobRecord, status: str, values: Mapping[str, Any]) -> None:
    """Record a job's end. The payload of a successful one is erased: its subject may be deleted later."""
    forgotten: dict[str, Any] = {"gathered": None, **({"payload": {}} if status == "done" else {})}
    note(unit, record, {"status": status, "finished_at": utc_now(), **forgotten, **values})


def move(unit: Unit, record: JobRecord, lane: Lane, payload: BaseModel) -> None:
    """Make a running job wait in another lane; the attempt doesn't count."""
    note(
        unit,
        record,
        {
            "status": "queued",
            "lane": lane,
            "gathered": waiting(record.name, lane),
            "payload": payload.model_dump(mode="json"),
            "attempts": JobRecord.attempts - 1,
            "message": "",
        },
    )


def give_way(unit: Unit, record: JobRecord) -> bool:
    """Make a job between two attempts wait behind the others in its lane; False if there are none or it was
    cancelled.
    """
    others = select(JobRecord.id).where(
        JobRecord.lane == record.lane, JobRecord.status == "queued", JobRecord.id != record.id
    )
    mine = (JobRecord.id == record.id) & (JobRecord.status == "running")
    change = (
        update(JobRecord)
        .where(mine, JobRecord.cancel_requested_at.is_(None), others.exists())
        .values(status="queued", gathered=waiting(record.name, cast(Lane, record.lane)))
        .returning(JobRecord.id)
    )
    gives = unit.session.scalar(change) is not None
    if gives:
        tell(unit, record)
    return gives


class CancelledJob(BaseModel):
    """The id of a cancelled job."""

    job_id: str


def cancel(unit: Unit, record: JobRecord, told: JobKind | None, values: Mapping[str, Any]) -> None:
    """Record a cancelled job's end; `told` is the job that then notifies its plugin."""
    close(unit, record, "cancelled", {"error": None, "message": "", **values})
    if told is not None:
        unit.enqueue(told, CancelledJob(job_id=record.id))


def tell(unit: Unit, record: JobRecord) -> None:
    """Notify the job's followers, if it can be followed."""
    if record.title is not None:
        unit.notify(CHANGED, record.id)


def next_waiting(session: Session) -> str | None:
    """The longest-waiting job, if any, even an interrupted one. Carriers take gathered jobs."""
    by_itself = JobRecord.gathered.is_(None) | (JobRecord.name == CARRIER)
    waiting = select(JobRecord.id).where(JobRecord.status.in_(UNDER_WAY), by_itself)
    found: str | None = session.scalar(waiting.order_by(JobRecord.created_at, JobRecord.id).limit(1))
    return found
