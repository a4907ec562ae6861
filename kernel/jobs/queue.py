"""The queue is the table of jobs: enqueueing, and every change of a job's state.

A job is enqueued in the transaction of the change that needs it. A worker takes it (`kernel.jobs.turns`) by
writing its own name into the row; while it is there, only that worker's changes count.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from pydantic import BaseModel
from sqlalchemy import ColumnElement, bindparam, delete, insert, or_, select, update
from sqlalchemy.orm import Session

from kernel.db.base import shared_moment, shared_now, utc_now
from kernel.db.engine import Database, Unit
from kernel.db.tables import JobRecord, WorkerRecord
from kernel.jobs.kinds import CHANGED, QUEUED, UNDER_WAY, JobKind, Lane, Placing, Status
from kernel.observe.logs import mask
from kernel.observe.tracing import carried_by_current

TRACEPARENT: Final = "traceparent"
_LONGEST_TRACE: Final = 64
_FORGOTTEN_AT_ONCE: Final = 500
_UNSEEN: Final = timedelta(days=1)
_ABANDONED: Final = timedelta(minutes=1)
_JOBS: Any = JobRecord.__table__
_INSERT: Final = insert(_JOBS)
"""Without the ORM, which would take a fifth of a millisecond more per job."""

_UNDER_WAY: Final = JobRecord.status.in_(UNDER_WAY)


def enqueue(session: Session, job: JobKind, payload: BaseModel, placing: Placing) -> str:
    """Write a job in the session's transaction; returns its id. The same id twice is one job."""
    job_id = placing.job_id or uuid.uuid4().hex
    if placing.job_id is not None and session.get(JobRecord, job_id) is not None:
        return job_id
    gather = placing.gather
    values = {
        "id": job_id,
        "name": job.name,
        "payload": payload.model_dump(mode="json"),
        "lane": placing.lane or job.lane,
        "title": job.title,
        "owner_id": placing.owner_id,
        "subject": placing.subject,
        "share": None if gather is None else gather.share,
        "weight": None if gather is None else gather.weight,
        "trace": _trace(),
    }
    session.connection().execute(_INSERT, values)
    return job_id


def _trace() -> str | None:
    """The `traceparent` of what enqueues a job now; None without a trace."""
    traceparent = carried_by_current().get(TRACEPARENT, "")
    return traceparent if 0 < len(traceparent) <= _LONGEST_TRACE else None


def place_jobs_again(session: Session) -> int:
    """Let every unfinished job wait again, after a restore, whoever had it; returns how many."""
    again: dict[str, Any] = {"status": "queued", "worker": None, "not_before": None}
    change = update(JobRecord).where(_UNDER_WAY).values(**again).returning(JobRecord.id)
    return len(session.scalars(change).all())


_CLAIM: Any = (
    update(_JOBS)
    .where(_JOBS.c.id.in_(bindparam("ids", expanding=True)), _UNDER_WAY)
    .where(or_(_JOBS.c.worker.is_(None), _JOBS.c.worker == bindparam("mine")))
    .values(
        status="running",
        worker=bindparam("mine"),
        attempts=_JOBS.c.attempts + 1,
        started_at=bindparam("now"),
        done_before=_JOBS.c.done,
        paced_from=0,
        paced_since=None,
        progress_at=None,
        message="",
    )
    .returning(_JOBS)
)


def claim_all(unit: Unit, worker: str, ids: Sequence[str]) -> Sequence[JobRecord]:
    """Start an attempt of each and count it; without those that have nothing left to do."""
    values = {"ids": ids, "mine": worker, "now": utc_now()}
    rows = unit.session.connection().execute(_CLAIM, values).mappings()
    records = {row["id"]: JobRecord(**row) for row in rows}
    for record in records.values():
        tell(unit, record)
    return [records[job_id] for job_id in ids if job_id in records]


def release(unit: Unit, workers: Collection[str], *, keep: Collection[str] = ()) -> int:
    """Let the jobs of these workers wait again, except those to `keep`; returns how many. Each runs alone."""
    return _release(unit, JobRecord.worker.in_(workers) & JobRecord.id.not_in(keep))


def release_abandoned(unit: Unit) -> int:
    """The same for jobs that a worker without a heartbeat has had for a minute.

    A worker's last commit may reach the database after its jobs were released.
    """
    beating = select(WorkerRecord.id)
    since = shared_now(unit.session) - _ABANDONED
    theirs = JobRecord.worker.is_not(None) & JobRecord.worker.not_in(beating)
    return _release(unit, theirs & (JobRecord.started_at < since))


def _release(unit: Unit, theirs: ColumnElement[bool]) -> int:
    values = {"status": "queued", "worker": None, "not_before": shared_now(unit.session)}
    change = update(JobRecord).where(theirs, _UNDER_WAY).values(**values).returning(JobRecord.lane)
    lanes = unit.session.scalars(change).all()
    for lane in set(lanes):
        unit.notify(QUEUED, lane)
    return len(lanes)


def release_batch(unit: Unit, records: Sequence[JobRecord], error: str | None) -> None:
    """Let those of the jobs that aren't done run one by one; having been handled together was no attempt."""
    unfinished = JobRecord.id.in_([record.id for record in records]) & (JobRecord.worker == records[0].worker)
    values: dict[str, Any] = {"status": "queued", "worker": None, "not_before": shared_now(unit.session)}
    values |= {"attempts": JobRecord.attempts - 1} | ({} if error is None else {"error": error})
    unit.session.execute(update(JobRecord).where(unfinished, _UNDER_WAY).values(**values))


def note(unit: Unit, record: JobRecord, values: Mapping[str, Any]) -> bool:
    """Change the record of an unfinished job; False if it has ended, or is another attempt's by now."""
    mine = JobRecord.worker.is_not_distinct_from(record.worker) & (JobRecord.attempts == record.attempts)
    change = update(_JOBS).where(JobRecord.id == record.id, _UNDER_WAY, mine)
    changed = unit.session.connection().scalar(change.values(**values).returning(_JOBS.c.id)) is not None
    if changed:
        tell(unit, record)
    return changed


def close(unit: Unit, record: JobRecord, status: Status, values: Mapping[str, Any]) -> bool:
    """Record a job's end. The payload of a successful one is erased: its subject may be deleted later."""
    ended: dict[str, Any] = {"status": status, "worker": None, "not_before": None}
    if status == "done":
        ended["payload"] = {}
    return note(unit, record, {**ended, "finished_at": shared_moment(unit.session), **values})


def move(unit: Unit, record: JobRecord, lane: Lane, payload: BaseModel, first_turn: bool) -> None:
    """Make a running job wait at the end of a lane, or for its `first_turn`; the attempt doesn't count."""
    since = None if first_turn else shared_now(unit.session)
    values: dict[str, Any] = {"status": "queued", "lane": lane, "worker": None, "not_before": since}
    values |= {"payload": payload.model_dump(mode="json"), "attempts": JobRecord.attempts - 1, "message": ""}
    note(unit, record, values)
    unit.notify(QUEUED, lane)


def others_wait(session: Session, lane: Lane, owner_id: int | None) -> bool:
    """Whether a due job waits in a lane, of anybody else or for its first turn: a long job can then give its
    place back (`JobMoved` to the same lane).
    """
    due = or_(JobRecord.not_before.is_(None), JobRecord.not_before <= shared_now(session))
    waiting = select(JobRecord.id).where(
        JobRecord.status == "queued",
        JobRecord.lane == lane,
        JobRecord.owner_id.is_distinct_from(owner_id) | JobRecord.not_before.is_(None),
        due,
    )
    return session.scalar(waiting.limit(1)) is not None


def rest(unit: Unit, record: JobRecord, pause: float, values: Mapping[str, Any]) -> bool:
    """Make a job whose attempt failed wait for the next one, without a place in its lane; False if it was
    cancelled meanwhile.
    """
    if not note(unit, record, values):
        return True
    mine = (JobRecord.id == record.id) & JobRecord.cancel_requested_at.is_(None)
    again = {"not_before": shared_now(unit.session) + timedelta(seconds=pause)}
    change = update(JobRecord).where(mine).values(status="queued", worker=None, **again)
    return unit.session.scalar(change.returning(JobRecord.id)) is not None


def stored_error(error: BaseException) -> str:
    """What operators read of an attempt's error until the next one."""
    return mask(f"{type(error).__name__}: {error}")[:500]


def tell(unit: Unit, record: JobRecord) -> None:
    """Notify the job's followers, if it can be followed."""
    if record.title is not None:
        unit.notify(CHANGED, record.id)


async def forget_finished(database: Database, days: int) -> int:
    """Remove jobs that ended more than `days` ago; returns how many.

    Ordinary jobs that succeeded go after a day: nobody looks at them.
    """
    removed = 0
    while count := await database.write(_forget, timedelta(days=days)):
        removed += count
    return removed


def _forget(unit: Unit, age: timedelta) -> int:
    now, unseen = unit.now(), (JobRecord.status == "done") & JobRecord.title.is_(None)
    old = (JobRecord.finished_at < now - age) | (unseen & (JobRecord.finished_at < now - min(_UNSEEN, age)))
    some = select(JobRecord.id).where(old).limit(_FORGOTTEN_AT_ONCE)
    gone = delete(JobRecord).where(JobRecord.id.in_(some)).returning(JobRecord.id)
    return len(unit.session.scalars(gone).all())
