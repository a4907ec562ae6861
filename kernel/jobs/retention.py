"""Removes finished jobs: long and failed ones after a configurable time, the rest after a day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import and_, delete, or_, select
from sqlalchemy.orm import Session

from kernel.db.base import shared_now
from kernel.db.engine import Database, Unit
from kernel.db.tables import JobRecord
from kernel.jobs.queue import JobQueue

_AT_ONCE = 500
_UNSEEN = timedelta(days=1)


async def forget_finished(database: Database, queue: JobQueue, days: int) -> int:
    """Remove jobs that ended more than `days` ago from records and queue; returns how many.

    Ordinary jobs that succeeded go after a day: nobody looks at them.
    """
    now, kept, removed = await database.read(shared_now), timedelta(days=days), 0
    while found := await database.read(_ended, now - kept, now - min(_UNSEEN, kept)):
        # The queue first: without its record, a job would stay there forever.
        await queue.forget(found)
        await database.write(_forget, found)
        removed += len(found)
    return removed


def _ended(session: Session, before: datetime, unseen_before: datetime) -> list[str]:
    unseen = and_(JobRecord.status == "done", JobRecord.title.is_(None))
    old = or_(JobRecord.finished_at < before, and_(unseen, JobRecord.finished_at < unseen_before))
    query = select(JobRecord.id).where(old)
    return list(session.scalars(query.limit(_AT_ONCE)))


def _forget(unit: Unit, job_ids: Sequence[str]) -> None:
    unit.session.execute(delete(JobRecord).where(JobRecord.id.in_(job_ids)))
