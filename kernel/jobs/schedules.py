"""Scheduled jobs: one run at a time over all workers and machines; missed runs are caught up once.

The next time of each job is a row that all workers share, compared with one clock and advanced under a lock.
The worker that finds it due enqueues the run and sets the next time after now, so only one run follows,
however many were missed; a run still under way delays the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from kernel.db.base import shared_now
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord, ScheduleRecord
from kernel.errors import ANY_ERROR
from kernel.jobs.declarations import JobRef
from kernel.jobs.kinds import UNDER_WAY
from kernel.plugins.offers import OFFERS

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.schedules")

KERNEL = "kernel"
# Seconds between checks: at most, and while a due run waits for the one before it.
_LONGEST = 60.0
_SHORTEST = 5.0
_SKEW = timedelta(minutes=5)
_HOUR = 1  # the second of five cron fields


@dataclass(frozen=True)
class Schedule:
    """A scheduled job, its plugin, and its times: five cron fields or a word such as ``@hourly``."""

    job: JobRef
    plugin: str
    cron: str


def schedules_of(platform: Platform) -> list[Schedule]:
    """The schedules, ordered by job name. One whose times are invalid is logged and left out."""
    offers, schedules = platform.resource(OFFERS), []
    for name, job in sorted(offers.jobs.items()):
        try:
            cron = _cron_of(platform, job)
        except ANY_ERROR as error:  # boundary: a plugin's function; the other schedules go on
            log.error("the job '%s' doesn't run: %s: %s", name, type(error).__name__, error)
        else:
            if cron is not None:
                schedules.append(Schedule(job, offers.job_plugins.get(name, KERNEL), cron))
    return schedules


def _cron_of(platform: Platform, job: JobRef) -> str | None:
    """A job's times; None for never. Raises ValueError, and whatever a plugin's function raises."""
    from croniter import croniter

    cron = job.schedule(platform) if callable(job.schedule) else job.schedule
    if cron is not None:
        if not croniter.is_valid(cron):
            raise ValueError(f"{cron!r} is not a schedule; write one such as '0 3 * * *'")
        croniter(cron).get_next()  # raises for a date that never occurs, such as February 30
    return cron


def next_time(cron: str, now: datetime, zone: ZoneInfo) -> datetime:
    """The first time after `now` in the time zone, as UTC.

    Of an hour that comes twice, when summer time ends, only jobs that run every hour run in the second.
    """
    from croniter import croniter

    times = croniter(cron, now.astimezone(zone))
    moment: datetime = times.get_next(datetime)
    while moment.fold and times.expanded[_HOUR] != ["*"]:
        moment = times.get_next(datetime)
    return moment.astimezone(UTC)


class Scheduler:
    """Enqueues what is due. Every worker has one."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._zone = ZoneInfo(platform.settings.time_zone)

    async def run(self) -> None:
        """Enqueue due jobs until cancelled."""
        outage = self._platform.database.outage(log, "schedules can't be read")
        while True:
            pause = _LONGEST
            with outage.tolerated():
                pause = await self.turn(await self._platform.database.read(shared_now))
            await asyncio.sleep(pause)

    async def turn(self, now: datetime) -> float:
        """Enqueue the jobs due at `now`; returns the seconds until the next check."""
        records = await self._platform.database.read(known_schedules)
        due = []
        for schedule in schedules_of(self._platform):
            if schedule.plugin != KERNEL and not self._platform.is_on(schedule.plugin):
                continue
            record = records.get(schedule.job.name)
            if (
                record is None
                or record.cron != schedule.cron
                or record.next_at <= now
                or _was_set_back(record, now)
            ):
                due.append(await self._platform.database.write(_advance, schedule, now, self._zone))
            else:
                due.append(record.next_at)
        seconds = min(((moment - now).total_seconds() for moment in due), default=_LONGEST)
        return min(max(seconds, _SHORTEST), _LONGEST)


def known_schedules(session: Session) -> Mapping[str, ScheduleRecord]:
    """The rows of all schedules, by job name."""
    return {record.name: record for record in session.scalars(select(ScheduleRecord))}


def _advance(unit: Unit, schedule: Schedule, now: datetime, zone: ZoneInfo) -> datetime:
    """Enqueue the run if it is due and the last one has ended; returns when to check again."""
    unit.lock("schedules")
    name, following = schedule.job.name, next_time(schedule.cron, now, zone)
    record = unit.session.get(ScheduleRecord, name)
    if record is None:
        unit.session.add(ScheduleRecord(name=name, cron=schedule.cron, next_at=following))
        return following
    if record.cron != schedule.cron:
        record.cron, record.next_at = schedule.cron, following
    elif _was_set_back(record, now):
        record.last_at, record.next_at = now, following
    elif record.next_at <= now and not _runs(unit.session, record.job_id):
        record.job_id = unit.enqueue(schedule.job, schedule.job.payload())
        record.last_at, record.next_at = now, following
    next_at: datetime = record.next_at
    return next_at


def _was_set_back(record: ScheduleRecord, now: datetime) -> bool:
    """Whether the last run is in the future: then the clock was set back, and the next time is too late.

    The clocks of several machines differ by less.
    """
    return record.last_at is not None and record.last_at > now + _SKEW


def _runs(session: Session, job_id: str | None) -> bool:
    under_way = select(JobRecord.id).where(JobRecord.id == job_id, JobRecord.status.in_(UNDER_WAY))
    return job_id is not None and session.scalar(under_way) is not None
