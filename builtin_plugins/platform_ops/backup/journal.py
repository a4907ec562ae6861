"""The history of backups, restores and drills: what was requested, and the outcome."""

from __future__ import annotations

import re
import uuid
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from builtin_plugins.platform_ops.backup.errors import BackupJobNotFound
from builtin_plugins.platform_ops.models import BackupJob
from kernel.sdk import Unit, utc_now

_ID = re.compile(r"[0-9a-f]{32}")
_MAX_JOBS = 50
_LAST = 8000
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


class BackupJobOut(BaseModel):
    """A backup, a restore (wire-facts 9.4) or a drill. Times are UTC, to the second."""

    id: str
    action: str = Field(description="`backup`, `restore` or `drill`.")
    archive: str | None = Field(
        description="The archive to restore or to rehearse with; for a backup, the one it made."
    )
    status: str = Field(description="`pending`, `running`, `done` or `error`.")
    requested_by: str = Field(description="The id of the account, or `schedule` or `operator`.")
    requested_at: str
    started_at: str | None
    finished_at: str | None
    error: str | None
    output: str = Field(description="What it did; at most the last 8,000 characters.")


class BackupJobs(BaseModel):
    """The last jobs, newest first."""

    jobs: list[BackupJobOut]


def new_id() -> str:
    """An id for a job."""
    return uuid.uuid4().hex


def ask_for(
    unit: Unit, action: str, requested_by: str, archive: str | None = None, *, job_id: str | None = None
) -> str:
    """Add a waiting job; returns its id."""
    job = BackupJob(id=job_id or new_id(), action=action, archive=archive, requested_by=requested_by)
    unit.session.add(job)
    unit.session.flush()
    return job.id


def is_under_way(session: Session, action: str, archive: str) -> bool:
    """Whether a job on this archive is waiting or running."""
    job = select(BackupJob.id).where(
        BackupJob.action == action,
        BackupJob.archive == archive,
        BackupJob.status.in_(("pending", "running")),
    )
    return session.scalar(job.limit(1)) is not None


def change(unit: Unit, job_id: str, **values: Any) -> None:
    """Record what happened to a job."""
    unit.session.execute(update(BackupJob).where(BackupJob.id == job_id).values(**values))


def start(unit: Unit, job_id: str) -> BackupJob | None:
    """Begin a job, or begin it again after an interruption; None if it has already ended."""
    job = unit.session.get(BackupJob, job_id)
    if job is None or job.status in ("done", "error"):
        return None
    job.status, job.started_at = "running", job.started_at or utc_now()
    unit.session.flush()
    return job


def end(unit: Unit, /, job_id: str, *, error: str | None = None, **values: Any) -> None:
    """Close a job."""
    status = "done" if error is None else "error"
    change(unit, job_id, status=status, phase="", error=error, finished_at=utc_now(), **values)


def latest_jobs(session: Session) -> BackupJobs:
    """The last jobs."""
    newest = select(BackupJob).order_by(BackupJob.requested_at.desc(), BackupJob.id).limit(_MAX_JOBS)
    return BackupJobs(jobs=[render(job) for job in session.scalars(newest)])


def find(session: Session, job_id: str) -> BackupJobOut:
    """One job. Raises BackupJobNotFound, also for an invalid id."""
    job = session.get(BackupJob, job_id) if _ID.fullmatch(job_id) else None
    if job is None:
        raise BackupJobNotFound()
    return render(job)


def render(job: BackupJob) -> BackupJobOut:
    """A job as clients see it."""
    moments = {
        name: None if (moment := getattr(job, name)) is None else moment.strftime(_FORMAT)
        for name in ("requested_at", "started_at", "finished_at")
    }
    names = ("id", "action", "archive", "status", "requested_by", "error")
    return BackupJobOut(**{name: getattr(job, name) for name in names}, **moments, output=job.output[-_LAST:])
