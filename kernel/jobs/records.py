"""The statements that change job records; the runner decides when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from pydantic import BaseModel
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from kernel.db.base import shared_moment, shared_now, utc_now
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord
from kernel.jobs.gathered import CARRIER, taken, waiting
from kernel.jobs.kinds import CHANGED, UNDER_WAY, JobKind, Lane
from kernel.logs import mask


def claim(unit: Unit, job_id: str, carrier: str | None = None) -> JobRecord | None:
    """Start an attempt and count it; None if there is nothing left to do.

    A job that waits for a carrier or has one is left to it: the queue may hand out the job's own place once
    more, if its worker died just after giving it up.
    """
    by_itself = JobRecord.gathered.is_(None) | (JobRecord.name == CARRIER)
    mine = by_itself if carrier is None else JobRecord.gathered == taken(carrier)
    change = (
        update(JobRecord)
        .where(JobRecord.id == job_id, JobRecord.status.in_(UNDER_WAY), mine)
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
    forgotten: dict[str, Any] = {"gathered": None, "not_before": None}
    if status == "done":
        forgotten["payload"] = {}
    note(unit, record, {"status": status, "finished_at": shared_moment(unit.session), **forgotten, **values})


def move(unit: Unit, record: JobRecord, lane: Lane, payload: BaseModel) -> None:
    """Make a running job wait in another lane; the attempt doesn't count."""
    note(
        unit,
        record,
        {
            "status": "queued",
            "lane": lane,
            "gathered": waiting(record.name, lane),
            "not_before": None,
            "payload": payload.model_dump(mode="json"),
            "attempts": JobRecord.attempts - 1,
            "message": "",
        },
    )


def rest(unit: Unit, record: JobRecord, pause: float) -> bool:
    """Make a job whose attempt failed wait for the next one, without a place in its lane; False if it was
    cancelled meanwhile.
    """
    mine = (JobRecord.id == record.id) & (JobRecord.status == "running")
    change = (
        update(JobRecord)
        .where(mine, JobRecord.cancel_requested_at.is_(None))
        .values(
            status="queued",
            gathered=waiting(record.name, cast(Lane, record.lane)),
            not_before=shared_now(unit.session) + timedelta(seconds=pause),
        )
        .returning(JobRecord.id)
    )
    return unit.session.scalar(change) is not None


def stored_error(error: BaseException) -> str:
    """What operators read of an attempt's error until the next one."""
    return mask(f"{type(error).__name__}: {error}")[:500]


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


def next_waiting(session: Session) -> tuple[str, float] | None:
    """The job to run next, even an interrupted one, and in how many seconds. Carriers take gathered jobs."""
    by_itself = JobRecord.gathered.is_(None) | (JobRecord.name == CARRIER) | JobRecord.not_before.is_not(None)
    waiting = select(JobRecord.id, JobRecord.not_before).where(JobRecord.status.in_(UNDER_WAY), by_itself)
    order = (JobRecord.not_before.asc().nulls_first(), JobRecord.created_at, JobRecord.id)
    found = session.execute(waiting.order_by(*order).limit(1)).first()
    if found is None:
        return None
    return found.id, seconds_until(session, found.not_before)


def end_rest(unit: Unit, job_id: str) -> None:
    """Let a job that rests run without a carrier."""
    rests = (JobRecord.id == job_id) & JobRecord.not_before.is_not(None)
    unit.session.execute(update(JobRecord).where(rests).values(gathered=None, not_before=None))


def seconds_until(session: Session, moment: datetime | None) -> float:
    """How long until then, by the clock that all processes share; 0 for None and the past."""
    return 0.0 if moment is None else max(0.0, (moment - shared_now(session)).total_seconds())
