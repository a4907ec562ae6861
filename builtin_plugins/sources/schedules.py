"""When a source runs next, by five cron fields or a word such as ``@hourly``."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from kernel.sdk import Platform


def checked_schedule(text: str | None) -> str | None:
    """The schedule, or None for none. Raises ValueError for one that never comes."""
    if not text:
        return None
    from croniter import CroniterBadDateError, croniter

    if not croniter.is_valid(text) or len(text.split()) > 5:
        raise ValueError("write five cron fields such as '0 3 * * *', or @hourly, @daily, @weekly")
    try:
        croniter(text).get_next()
    except CroniterBadDateError:
        raise ValueError("this date never comes") from None
    return text


def next_run(platform: Platform, schedule: str | None, now: datetime) -> datetime | None:
    """The first time after `now`; None without a schedule."""
    if schedule is None:
        return None
    from croniter import croniter

    zone = ZoneInfo(platform.settings.time_zone)
    moment: datetime = croniter(schedule, now.astimezone(zone)).get_next(datetime)
    return moment.astimezone(UTC)
