"""Removes leftovers: of killed processes, at each start; expired rows, every hour."""

from __future__ import annotations

import asyncio
import logging

from sqlalchemy.exc import SQLAlchemyError

from kernel.errors import PlatformError
from kernel.events.notices import forget_old_notices
from kernel.jobs.declarations import Job, NoPayload
from kernel.jobs.queue import forget_finished
from kernel.platform import Platform
from kernel.process.machine_faults import MachineFault

log = logging.getLogger("platform")


async def housekeep(platform: Platform) -> None:
    """Remove leftovers; failures are only logged."""
    try:
        removed = await platform.blobs.sweep() + await asyncio.to_thread(platform.scratch.sweep)
    except (SQLAlchemyError, OSError, MachineFault, PlatformError):
        log.exception("could not remove leftovers of killed processes")
        return
    if removed:
        log.info("removed %d leftovers of killed processes", removed)


async def _every_hour(platform: Platform, _: NoPayload) -> None:
    await housekeep(platform)
    await platform.database.write(forget_old_notices)
    removed = await forget_finished(platform.database, platform.settings.job_retention_days)
    if removed:
        log.info("removed %d old jobs", removed)


HOUSEKEEP = Job("kernel.housekeeping", NoPayload, _every_hour, lane="quick", schedule="@hourly")
