"""Jobs that run by the clock: when they are due, once over all workers, a missed run made up once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel
from sqlalchemy import func, select, update

from kernel.db.base import utc_now
from kernel.db.tables import JobRecord, Notice, ScheduleRecord
from kernel.errors import StartupError
from kernel.jobs.schedules import Scheduler, next_time, schedules_of
from kernel.plugins.offers import OFFERS
from kernel.plugins.states import PLUGIN_STATES
from kernel.process.housekeeping import HOUSEKEEP
from kernel.sdk import Job, JobRef, Platform, Plugin, Unit, hookimpl
from kernel.settings.loading import KernelSettings, SettingsLoader
from kernel.testing import Running, Start, eventually
from tests.fakes.door import Door

HOUR = timedelta(hours=1)


class Nothing(BaseModel):
    """A scheduled job is told nothing."""


class Clock(Plugin):
    """Jobs that run by the clock."""

    name = "clock"

    def __init__(self) -> None:
        self.struck = 0
        self.hour: str | None = "@hourly"
        self.strike: Job[Nothing] = Job("clock.strike", Nothing, self._strike, schedule=lambda _: self.hour)
        self.wrong: Job[Nothing] = Job("clock.wrong", Nothing, self._strike, schedule="at noon")
        never = "0 0 30 2 *"  # well-formed, but there is no February 30
        self.never: Job[Nothing] = Job("clock.never", Nothing, self._strike, schedule=never)
        self.broken: Job[Nothing] = Job("clock.broken", Nothing, self._strike, schedule=self._raise)

    def _raise(self, platform: Platform) -> str:
        raise KeyError("its setting is gone")

    async def _strike(self, platform: Platform, payload: Nothing) -> None:
        self.struck += 1

    @hookimpl
    def register_jobs(self) -> list[JobRef]:
        return [self.strike, self.wrong, self.broken, self.never]


@pytest.fixture
def clock() -> Clock:
    """The plugin of a test."""
    return Clock()


@pytest.fixture
async def running(start_platform: Start, clock: Clock, database_url: str | None) -> Running:
    """A platform with it, on each database."""
    return await start_platform(clock, env={"DATABASE_URL": database_url})


async def runs(running: Running) -> int:
    """How many runs of the test's job were enqueued."""
    query = select(func.count()).select_from(JobRecord).where(JobRecord.name == "clock.strike")
    return int(await running.platform.database.read(lambda session: session.scalar(query)) or 0)


async def test_due_once_an_hour(running: Running, clock: Clock) -> None:
    """Not at first sight, then once in each hour."""
    scheduler, now = Scheduler(running.platform), utc_now()
    await scheduler.turn(now)
    assert await runs(running) == 0
    for _ in range(3):
        await scheduler.turn(now + HOUR)
    assert await runs(running) == 1
    await running.run_jobs()
    await scheduler.turn(now + 2 * HOUR)
    await running.run_jobs()
    assert clock.struck == 2


async def test_due_by_the_time_zone_of_the_platform(
    start_platform: Start, clock: Clock, database_url: str | None
) -> None:
    """Three o'clock is that of the setting's zone: 21:30 in UTC for Kolkata."""
    clock.hour = "0 3 * * *"
    env = {"DATABASE_URL": database_url, "PLATFORM_TIME_ZONE": "Asia/Kolkata"}
    running = await start_platform(clock, env=env)
    scheduler, evening = Scheduler(running.platform), datetime(2026, 3, 1, 20, 0, tzinfo=UTC)
    await scheduler.turn(evening)
    await scheduler.turn(evening + timedelta(minutes=89))
    assert await runs(running) == 0
    await scheduler.turn(evening + timedelta(minutes=91))
    assert await runs(running) == 1


async def test_missed_runs_are_made_up_once(running: Running, clock: Clock) -> None:
    """After two days without a worker, one run follows and not forty-eight."""
    scheduler, now = Scheduler(running.platform), utc_now()
    await scheduler.turn(now)
    for _ in range(3):
        await scheduler.turn(now + 48 * HOUR)
        await running.run_jobs()
    assert clock.struck == 1


async def test_a_database_that_is_away(
    start_platform: Start, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody answers where the database was: schedules wait for it, and don't end."""
    door = Door(postgres_url)
    await door.open()
    address = urlsplit(postgres_url)._replace(netloc=f"postgres@127.0.0.1:{door.port}").geturl()
    running = await start_platform(env={"DATABASE_URL": address})
    await door.shut()
    scheduling = asyncio.create_task(Scheduler(running.platform).run())
    await eventually(lambda: scheduling.done() or "schedules can't be read" in caplog.text)
    assert not scheduling.done()
    scheduling.cancel()


async def test_a_clock_that_was_set_back(running: Running, clock: Clock) -> None:
    """The next run is an hour away as ever, not two. Clocks that differ a little change nothing."""
    scheduler, now = Scheduler(running.platform), utc_now().replace(minute=30)
    await scheduler.turn(now)
    await scheduler.turn(now + HOUR)
    await running.run_jobs()
    assert clock.struck == 1
    for late in (timedelta(seconds=1), timedelta(minutes=4)):
        await scheduler.turn(now + HOUR - late)
    back = now - 2 * HOUR
    await scheduler.turn(back)
    assert await runs(running) == 1
    await scheduler.turn(back + HOUR)
    assert await runs(running) == 2
    await running.run_jobs()
    await scheduler.turn(back + HOUR)
    assert clock.struck == 2


async def test_one_run_at_a_time(running: Running, clock: Clock) -> None:
    """While a run waits or works, none is added; what was missed meanwhile follows it, once."""
    scheduler, now = Scheduler(running.platform), utc_now()
    await scheduler.turn(now)
    for hours in range(1, 6):
        await scheduler.turn(now + hours * HOUR)
    assert await runs(running) == 1
    await running.run_jobs()
    await scheduler.turn(now + 5 * HOUR)
    assert await runs(running) == 2


async def test_many_workers_enqueue_one_run(running: Running, clock: Clock) -> None:
    """All look at the same moment."""
    now = utc_now()
    await Scheduler(running.platform).turn(now)
    workers = [Scheduler(running.platform) for _ in range(8)]
    await asyncio.gather(*(worker.turn(now + HOUR) for worker in workers))
    assert await runs(running) == 1


async def test_a_new_schedule_on_many_workers(running: Running, clock: Clock) -> None:
    """Also when none has ever seen it."""
    workers = [Scheduler(running.platform) for _ in range(8)]
    await asyncio.gather(*(worker.turn(utc_now()) for worker in workers))
    query = select(func.count()).select_from(ScheduleRecord).where(ScheduleRecord.name == "clock.strike")
    assert await running.platform.database.read(lambda session: session.scalar(query)) == 1


async def test_switched_off_with_its_plugin(running: Running, clock: Clock) -> None:
    """Nothing runs meanwhile; what was missed follows once when it is switched on again."""
    scheduler, now = Scheduler(running.platform), utc_now()
    await scheduler.turn(now)
    states = running.platform.resource(PLUGIN_STATES)
    states.switch_off(["clock"])
    await scheduler.turn(now + 3 * HOUR)
    assert await runs(running) == 0
    states.switch_off([])
    await scheduler.turn(now + 3 * HOUR)
    assert await runs(running) == 1


async def test_a_schedule_from_a_setting(running: Running, clock: Clock) -> None:
    """Another time counts from now on; none stops it."""
    scheduler, now = Scheduler(running.platform), utc_now()
    await scheduler.turn(now)
    clock.hour = "0 0 1 1 *"
    await scheduler.turn(now + HOUR)
    await scheduler.turn(now + 2 * HOUR)
    assert await runs(running) == 0
    clock.hour = None
    await scheduler.turn(now + 24 * 400 * HOUR)
    assert await runs(running) == 0


async def test_a_schedule_that_cannot_be_read(
    running: Running, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named in the log, and stops no other."""
    names = [schedule.job.name for schedule in schedules_of(running.platform)]
    assert names == [
        "clock.strike",
        *("kernel.finish_removals", "kernel.housekeeping"),
    ]
    assert "clock.wrong" in caplog.text and "at noon" in caplog.text
    assert "clock.broken" in caplog.text and "its setting is gone" in caplog.text
    assert "clock.never" in caplog.text


@pytest.mark.parametrize(
    ("cron", "zone", "now", "expected"),
    [
        ("@hourly", "UTC", "2026-03-01T10:00:00", "2026-03-01T11:00:00"),
        ("0 3 * * *", "UTC", "2026-03-01T03:00:00", "2026-03-02T03:00:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-01-10T00:00:00", "2026-01-10T02:00:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-07-10T00:00:00", "2026-07-10T01:00:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00", "2026-03-29T01:00:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00", "2026-10-25T02:00:00"),
    ],
)
def test_next_time(cron: str, zone: str, now: str, expected: str) -> None:
    """By the clocks on the wall, summer time included."""
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert next_time(cron, moment, ZoneInfo(zone)) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "day", "expected"),
    [
        ("30 2 * * *", "2026-10-25", ["02:30+02:00"]),
        ("*/30 2 * * *", "2026-10-25", ["02:00+02:00", "02:30+02:00"]),
        ("30 2 * * *", "2026-03-29", ["03:00+02:00"]),
        ("15 */12 * * *", "2026-10-25", ["00:15+02:00", "12:15+01:00"]),
    ],
)
def test_once_on_days_when_the_clock_is_changed(cron: str, day: str, expected: list[str]) -> None:
    """In autumn, an hour comes twice, and what runs at fixed times runs in the first; in spring, one is left
    out, and what would run in it runs after it.
    """
    assert runs_of_day(cron, day) == expected


def test_every_hour_when_the_clock_is_changed() -> None:
    """What runs each hour runs each hour: 25 times in autumn, 23 times in spring."""
    assert len(runs_of_day("30 * * * *", "2026-10-25")) == 25
    assert len(runs_of_day("@hourly", "2026-03-29")) == 23


def runs_of_day(cron: str, day: str) -> list[str]:
    """The times of a schedule on a day in Berlin."""
    zone, found = ZoneInfo("Europe/Berlin"), []
    moment = datetime.fromisoformat(day).replace(tzinfo=zone).astimezone(UTC) - timedelta(seconds=1)
    while (local := (moment := next_time(cron, moment, zone)).astimezone(zone)).date().isoformat() == day:
        found.append(local.isoformat(timespec="minutes")[11:])
    return found


def test_an_unknown_time_zone_stops_the_start() -> None:
    """With the name of the setting."""
    loader = SettingsLoader({"PLATFORM_TIME_ZONE": "Europe/Atlantis"})
    with pytest.raises(StartupError, match="PLATFORM_TIME_ZONE"):
        loader.load("kernel", KernelSettings)


async def test_every_own_schedule_can_be_read(start_platform: Start) -> None:
    """Those of the kernel and of the built-in plugins; their jobs need no arguments."""
    from kernel.plugins.loading import installed

    running = await start_platform(*(candidate.name for candidate in installed()))
    offered = running.platform.resource(OFFERS).jobs.values()
    said = {
        job.name: job.schedule(running.platform) if callable(job.schedule) else job.schedule
        for job in offered
    }
    declared = [name for name, schedule in said.items() if schedule is not None]
    found = schedules_of(running.platform)
    assert [schedule.job.name for schedule in found] == sorted(declared)
    for schedule in found:
        schedule.job.payload()


def _execute(unit: Unit, change: Any) -> None:
    unit.session.execute(change)


async def test_housekeeping_forgets(running: Running, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Old notices; ordinary jobs done a day ago, others when their time is over."""
    write, read = running.platform.database.write, running.platform.database.read
    ages = {"fresh": timedelta(hours=2), "done": timedelta(days=2), "long": timedelta(days=31)}
    for job_id in ages:
        await write(lambda unit, job_id=job_id: unit.enqueue(clock.strike, Nothing(), job_id=job_id))
    await running.run_jobs()
    for job_id, age in ages.items():
        ended = {"finished_at": utc_now() - age, "status": "failed" if job_id == "long" else "done"}
        await write(_execute, update(JobRecord).where(JobRecord.id == job_id).values(**ended))
    await write(_execute, update(Notice).values(created_at=utc_now() - timedelta(hours=2)))
    with caplog.at_level("INFO", "platform"):
        await HOUSEKEEP.handler(running.platform, HOUSEKEEP.payload())
    assert "removed 2 old jobs" in caplog.messages
    assert await read(lambda session: list(session.scalars(select(JobRecord.id)))) == ["fresh"]
    notices = select(func.count()).select_from(Notice)
    assert await read(lambda session: session.scalar(notices)) == 0
