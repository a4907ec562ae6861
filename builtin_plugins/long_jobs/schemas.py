"""Long jobs as clients see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from kernel.sdk import PageQuery, utc_now
from kernel.sdk.jobs import JobRecord, Status


class JobProgress(BaseModel):
    """How far a job has got; `total` is null while unknown."""

    done: int
    total: int | None
    unit: str = Field(description="What is counted, such as `pages`; empty if nothing is.")


class JobOut(BaseModel):
    """A long job."""

    id: str
    kind: str = Field(description="What kind of work it is: `<plugin>.<job>`.")
    title: str
    status: Status
    progress: JobProgress
    message: str = Field(description="What it is doing now, in one line.")
    eta_seconds: int | None = Field(description="Estimated seconds left; null if unknown.")
    cancel_requested: bool
    error: str | None = Field(description="Why it failed.")
    result: str | None = Field(description="Where to find the result.")
    subject: str | None = Field(description="The id of what it works on.")
    owner_id: int | None
    created_at: datetime
    started_at: datetime | None = Field(description="When the current or last attempt started.")
    finished_at: datetime | None


class RunningJob(NamedTuple):
    """A running job's progress: of `done`, what earlier attempts did (`done_before`), and what was done since
    its pace is measured (`measured`).
    """

    subject: str | None
    started_at: datetime | None
    done: int
    done_before: int
    measured: int
    total: int | None
    eta_seconds: int | None


class EndedJob(NamedTuple):
    """A job that is done, and when it was worked on."""

    subject: str | None
    started_at: datetime
    finished_at: datetime

    def share_since(self, moment: datetime) -> float:
        """The share of its time that came after a moment in it."""
        return (self.finished_at - moment) / (self.finished_at - self.started_at)


class JobQuery(PageQuery):
    """Which jobs to list; all given filters must match."""

    status: Status | None = Field(None, description="Only jobs in this state.")
    kind: str | None = Field(None, max_length=128, description="Only jobs of this kind.")
    subject: str | None = Field(
        None, max_length=64, description="Only jobs that work on the object with this id."
    )


def render(record: JobRecord) -> JobOut:
    """A record as clients see it, without errors of attempts that are being retried."""
    return JobOut(
        id=record.id,
        kind=record.name,
        title=record.title or record.name,
        status=record.status,
        progress=JobProgress(done=record.done, total=record.total, unit=record.unit),
        message=record.message,
        eta_seconds=_eta(record),
        cancel_requested=record.cancel_requested_at is not None,
        error=record.error if record.status == "failed" else None,
        result=record.result,
        subject=record.subject,
        owner_id=record.owner_id,
        created_at=record.created_at,
        started_at=record.started_at,
        finished_at=record.finished_at,
    )


def running(record: JobRecord) -> RunningJob:
    """A running job's record as plugins see their own work."""
    return RunningJob(
        subject=record.subject,
        started_at=record.started_at,
        done=record.done,
        done_before=record.done_before,
        measured=record.done - _pace(record)[0],
        total=record.total,
        eta_seconds=_eta(record),
    )


def _pace(record: Any) -> tuple[int, datetime | None]:
    """What was done, and when, as the job's present pace began."""
    if record.paced_since is not None:
        return record.paced_from, record.paced_since
    return record.done_before, record.started_at


def _eta(record: Any) -> int | None:
    done_before, since = _pace(record)
    if record.status != "running" or since is None or record.progress_at is None:
        return None
    return seconds_left(record.done, done_before, record.total, since, record.progress_at, utc_now())


def seconds_left(
    done: int, done_before: int, total: int | None, since: datetime, progress_at: datetime, now: datetime
) -> int | None:
    """The time left at the pace since then, in whole seconds, at least 1; None if pace or end is unknown.

    `done_before` is what had been done by `since`; `progress_at` is when `done` was written.
    """
    advance, took = done - done_before, (progress_at - since).total_seconds()
    if total is None or advance <= 0 or took <= 0:
        return None
    left = (total - done) * took / advance - (now - progress_at).total_seconds()
    return max(1, round(left))
