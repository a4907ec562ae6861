"""Figures about the queue: how many jobs wait, for how long, and how many workers there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kernel.db.base import shared_now
from kernel.db.tables import JobRecord, WorkerRecord
from kernel.jobs.kinds import LANES, UNDER_WAY
from kernel.libs.background import in_abandonable_thread

if TYPE_CHECKING:
    from kernel.platform import Platform

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


def offer_figures(platform: Platform) -> None:
    """Show the queue and the free disk space at `/metrics`."""
    metrics, lanes = platform.metrics, LANES
    jobs = metrics.gauge("jobs_under_way", "Jobs that are waiting or running.", ("lane", "status"))
    oldest = metrics.gauge("jobs_oldest_waiting_seconds", "Age of the oldest waiting job.", ("lane",))
    failed = metrics.gauge("jobs_failed_last_day", "Jobs that failed in the last 24 hours.")
    workers = metrics.gauge("job_workers", "Workers with a heartbeat in the last 30 seconds.")
    free = metrics.gauge("disk_free_bytes", "Free space on the fullest disk that the platform writes to.")

    async def read() -> None:
        free.set(await in_abandonable_thread(platform.disk.free_bytes))
        found = await platform.database.read(read_queue)
        workers.set(found.workers)
        failed.set(found.failed_last_day)
        by_key = {(one.lane, one.status): one for one in found.lanes}
        for lane in lanes:
            for status in UNDER_WAY:
                one = by_key.get((lane, status))
                jobs.labels(lane, status).set(one.jobs if one else 0)
            waiting = by_key.get((lane, "queued"))
            oldest.labels(lane).set(waiting.oldest_seconds if waiting else 0)

    metrics.on_scrape(read)


def _seconds(now: datetime, moment: Any) -> int:
    if isinstance(moment, str):  # SQLite's MIN() returns text
        moment = datetime.fromisoformat(moment)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, int((now - moment).total_seconds()))
