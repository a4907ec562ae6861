"""The books of jobs: what their records say at each turn. Statements only; the runner decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from kernel.db.base import utc_now
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord
from kernel.jobs.gathered import CARRIER, waiting
from kernel.jobs.kinds import CHANGED, UNDER_WAY, JobKind, Lane


def claim(unit: Unit, job_id: str) -> JobRecord | None:
    """Count an attempt; None when there is nothing left to do."""
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
    """Change a record that is under way; one that is not stays as it is."""
    under_way = (JobRecord.id == record.id) & JobRecord.status.in_(UNDER_WAY)
    unit.session.execute(update(JobRecord).where(under_way).values(**values))
    tell(unit, record)


def close(unit: Unit, record: JobRecord, status: str, values: Mapping[str, Any]) -> None:
    """Close the books. What a finished job was about is forgotten: it may have been deleted since."""
    forgotten: dict[str, Any] = {"gathered": None, **({"payload": {}} if status == "done" else {})}
    note(unit, record, {"status": status, "finished_at": utc_now(), **forgotten, **values})


def move(unit: Unit, record: JobRecord, lane: Lane, payload: BaseModel) -> None:
    """Let a job under way wait in another lane; the attempt doesn't count."""
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


class CancelledJob(BaseModel):
    """A job that was cancelled, by its id."""

    job_id: str


def cancel(unit: Unit, record: JobRecord, told: JobKind | None, values: Mapping[str, Any]) -> None:
    """Close the books of a cancelled job; `told` is the job that then notifies its plugin."""
    close(unit, record, "cancelled", {"error": None, "message": "", **values})
    if told is not None:
        unit.enqueue(told, CancelledJob(job_id=record.id))


def tell(unit: Unit, record: JobRecord) -> None:
    """Notify those who follow the job, if people may follow it."""
    if record.title is not None:
        unit.notify(CHANGED, record.id)


def next_waiting(session: Session) -> str | None:
    """The job that waits longest, if any; one that was interrupted waits too. What waits for a carrier, or
    is with one, comes with that.
    """
    by_itself = JobRecord.gathered.is_(None) | (JobRecord.name == CARRIER)
    waiting = select(JobRecord.id).where(JobRecord.status.in_(UNDER_WAY), by_itself)
    found: str | None = session.scalar(waiting.order_by(JobRecord.created_at, JobRecord.id).limit(1))
    return found
