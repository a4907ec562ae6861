"""Removes leftovers: of killed processes, at each start; expired rows, every hour."""

from __future__ import annotations

import asyncio
import logging

from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from kernel.errors import PlatformError
from kernel.jobs.declarations import Job
from kernel.jobs.queue import JOB_QUEUE
from kernel.jobs.retention import forget_finished
from kernel.machine_faults import MachineFault
from kernel.notices import forget_old_notices
from kernel.platform import Platform

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


class Nothing(BaseModel):
    """Housekeeping needs no parameters."""


async def _every_hour(platform: Platform, _: Nothing) -> None:
    await housekeep(platform)
    await platform.database.write(forget_old_notices)
    queue, days = platform.resource(JOB_QUEUE), platform.settings.job_retention_days
    removed = await forget_finished(platform.database, queue, days)
    if removed:
        log.info("removed %d old jobs", removed)


HOUSEKEEP = Job("kernel.housekeeping", Nothing, _every_hour, lane="quick", schedule="@hourly")
