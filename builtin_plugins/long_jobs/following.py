"""Long jobs for those who may see them: list, show, follow, cancel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, and_, false, func, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.long_jobs.schemas import EndedJob, JobOut, JobQuery, RunningJob, render, running
from kernel.sdk import (
    Caller,
    Conflict,
    Forbidden,
    JobRef,
    LongJob,
    NotFound,
    Page,
    Scope,
    Unit,
    audit,
    scope_of,
    set_within,
)
from kernel.sdk.jobs import CHANGED, UNDER_WAY, JobRecord, declared_jobs, request_cancel

# Seconds after which a stream sends at least something: proxies end silent ones.
_BREATH = 15.0


class JobNotFound(NotFound):
    code = "job_not_found"
    default_detail = "No such job"


class JobFinished(Conflict):
    code = "job_finished"
    default_detail = "The job has already ended"


class NotYourJob(Forbidden):
    code = "not_your_job"
    default_detail = "Only the account that started the job, or an administrator, can cancel it"


async def list_page(caller: Caller, query: JobQuery) -> Page[JobOut]:
    """Long jobs that the caller may see, newest first."""
    visible = await _visible_to(caller)
    return await caller.platform.database.snapshot(_list, visible, query)


def _list(session: Session, visible: ColumnElement[bool], query: JobQuery) -> Page[JobOut]:
    where = and_(visible, *_conditions(query))
    total = session.scalar(select(func.count()).select_from(JobRecord).where(where)) or 0
    newest = select(JobRecord).where(where).order_by(JobRecord.created_at.desc(), JobRecord.id)
    rows = session.scalars(newest.limit(query.limit).offset(query.offset))
    items = [render(row) for row in rows]
    return Page[JobOut](items=items, total=total, limit=query.limit, offset=query.offset)


def _conditions(query: JobQuery) -> Iterable[ColumnElement[bool]]:
    columns = {"status": JobRecord.status, "kind": JobRecord.name, "subject": JobRecord.subject}
    filters = {name: getattr(query, name) for name in columns}
    return [columns[name] == value for name, value in filters.items() if value is not None]


async def get_job(caller: Caller, job_id: str) -> JobOut:
    """One long job. Raises JobNotFound, also for one that the caller may not see."""
    return await caller.platform.database.read(_get, job_id, await _visible_to(caller))


def _get(session: Session, job_id: str, visible: ColumnElement[bool]) -> JobOut:
    return render(_find(session, job_id, visible))


def running_jobs(session: Session, kind: str) -> list[RunningJob]:
    """The running long jobs of a kind, whoever owns them: a plugin's own work and its progress, in any
    process.
    """
    condition = (JobRecord.status == "running") & (JobRecord.name == kind) & JobRecord.title.is_not(None)
    return [running(row) for row in session.scalars(select(JobRecord).where(condition))]


def jobs_at(session: Session, kind: str, moment: datetime) -> list[EndedJob]:
    """The long jobs of a kind that were under way at a moment in the past, and are done."""
    condition = (
        (JobRecord.name == kind)
        & (JobRecord.status == "done")
        & JobRecord.title.is_not(None)
        & (JobRecord.started_at < moment)
        & (JobRecord.finished_at > moment)
    )
    rows = session.scalars(select(JobRecord).where(condition))
    return [
        EndedJob(row.subject, row.started_at, row.finished_at)
        for row in rows
        if row.started_at is not None and row.finished_at is not None
    ]


def _find(session: Session, job_id: str, visible: ColumnElement[bool], *, lock: bool = False) -> JobRecord:
    query = select(JobRecord).where(JobRecord.id == job_id, visible)
    record: JobRecord | None = session.scalar(query.with_for_update() if lock else query)
    if record is None:
        raise JobNotFound()
    return record


async def follow_job(caller: Caller, job_id: str) -> AsyncGenerator[tuple[str, JobOut], None]:
    """Yield the job as a `job` event now and whenever it changes, until it has ended. Raises JobNotFound.

    Access is checked each time: the stream ends with a 404 once the caller may no longer see the job.
    """
    changed = asyncio.Event()

    def listen(key: str) -> None:
        if key == job_id:
            changed.set()

    with caller.platform.notices.listening(CHANGED, listen):
        while True:
            changed.clear()
            job = await get_job(caller, job_id)
            yield "job", job
            if job.status not in UNDER_WAY:
                return
            await set_within(changed, _BREATH)


async def cancel_job(caller: Caller, job_id: str) -> JobOut:
    """Cancel a job: at once if it waits, soon if it runs. A second call changes nothing.

    Raises JobNotFound, NotYourJob, JobFinished.
    """
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_cancel, caller, scope, job_id)


def _cancel(unit: Unit, caller: Caller, scope: Scope, job_id: str) -> JobOut:
    jobs = declared_jobs(caller.platform)
    record = _find(unit.session, job_id, visible(jobs.values(), scope), lock=True)
    if not (scope.everything or (scope.account_id is not None and record.owner_id == scope.account_id)):
        raise NotYourJob()
    if record.status in ("done", "failed"):
        raise JobFinished()
    if record.status in UNDER_WAY and record.cancel_requested_at is None:
        request_cancel(unit, record, jobs.get(record.name))
        audit(unit, "job.cancelled", "job", record.id, origin=caller.origin)
        unit.session.refresh(record)
    return render(record)


async def _visible_to(caller: Caller) -> ColumnElement[bool]:
    scope = await scope_of(caller.platform, caller.principal)
    return visible(declared_jobs(caller.platform).values(), scope)


def visible(jobs: Iterable[JobRef], scope: Scope) -> ColumnElement[bool]:
    """The condition for long jobs that a scope sees: its own, and those that work on what it sees.

    Administrators see all but those without an owner on what they don't see.
    """
    long: ColumnElement[bool] = JobRecord.title.is_not(None)
    if scope.nothing:
        return false()
    if scope.everything and scope.account_id is None:
        return long
    visible_ids = {
        job.name: job.visible(scope) for job in jobs if isinstance(job, LongJob) and job.visible is not None
    }
    ways: list[ColumnElement[bool]] = [
        (JobRecord.name == name) & JobRecord.subject.in_(ids) for name, ids in visible_ids.items()
    ]
    if scope.everything:
        ways += [JobRecord.owner_id.is_not(None), JobRecord.name.not_in(visible_ids)]
    elif scope.account_id is not None:
        ways.append(JobRecord.owner_id == scope.account_id)
    return and_(long, or_(false(), *ways))
