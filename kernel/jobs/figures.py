"""Figures about the queue: how many jobs wait, for how long, and how many workers there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kernel.db.base import shared_now
from kernel.db.tables import JobRecord, WorkerRecord
from kernel.jobs.kinds import UNDER_WAY

_SILENT = timedelta(seconds=30)
_RECENT = timedelta(days=1)


@dataclass(frozen=True)
class LaneFigures:
    """How many jobs of a lane wait or run."""

    lane: str
    status: str
    jobs: int
    oldest_seconds: int


@dataclass(frozen=True)
class QueueFigures:
    """All lanes that have jobs, and the number of workers with a recent sign of life."""

    workers: int
    lanes: Sequence[LaneFigures]
    failed_last_day: int


def read_queue(session: Session) -> QueueFigures:
    """The current length and age of the queue."""
    now = shared_now(session)
    by_lane = (
        select(JobRecord.lane, JobRecord.status, func.count(), func.min(JobRecord.created_at))
        .where(JobRecord.status.in_(UNDER_WAY))
        .group_by(JobRecord.lane, JobRecord.status)
        .order_by(JobRecord.lane, JobRecord.status)
    )
    failed = select(func.count()).where(JobRecord.status == "failed", JobRecord.finished_at > now - _RECENT)
    return QueueFigures(
        workers=session.scalar(select(func.count()).where(WorkerRecord.seen_at > now - _SILENT)) or 0,
        lanes=[
            LaneFigures(lane, status, count, _seconds(now, oldest))
            for lane, status, count, oldest in session.execute(by_lane)
        ],
        failed_last_day=session.scalar(failed) or 0,
    )


def _seconds(now: datetime, moment: Any) -> int:
    if isinstance(moment, str):  # SQLite's MIN() returns text
        moment = datetime.fromisoformat(moment)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, int((now - moment).total_seconds()))
