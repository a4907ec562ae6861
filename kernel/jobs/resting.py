"""Jobs that rest between two attempts: without a place in their lane until they are due.

Every worker looks after all of them, so a rest outlives the worker in which it began. Each looks when the
next one is due, and at least every ten seconds.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from kernel.db.base import shared_now
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord
from kernel.jobs.carriers import call_carrier
from kernel.jobs.kinds import Lane
from kernel.jobs.queue import JOB_QUEUE
from kernel.jobs.records import seconds_until
from kernel.jobs.runner import JOB_RUNNER
from kernel.lasting import set_within

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.jobs")

_LONGEST = 10.0


class _Resting(NamedTuple):
    """The kinds and lanes of jobs that are due, and the seconds until the next one is."""

    due: list[tuple[str, Lane]]
    next_in: float


class Resting:
    """Calls carriers for the jobs that are due."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._rested = platform.resource(JOB_RUNNER).rested

    async def run(self) -> None:
        """Call them until cancelled."""
        outage = self._platform.database.outage(log, "resting jobs can't be read")
        while True:
            self._rested.clear()
            pause = _LONGEST
            with outage.tolerated():
                pause = await self._turn()
            await set_within(self._rested, pause)

    async def _turn(self) -> float:
        found = await self._platform.database.read(_read)
        if found.due:
            await self._platform.database.write(_call_carriers, self._platform, found.due)
        return found.next_in


def _read(session: Session) -> _Resting:
    now = shared_now(session)
    rests = (JobRecord.status == "queued") & JobRecord.not_before.is_not(None)
    kinds = select(JobRecord.name, JobRecord.lane).where(rests, JobRecord.not_before <= now).distinct()
    due = [(name, cast(Lane, lane)) for name, lane in session.execute(kinds)]
    later = select(JobRecord.not_before).where(rests, JobRecord.not_before > now)
    first = session.scalar(later.order_by(JobRecord.not_before).limit(1))
    return _Resting(due, _LONGEST if first is None else min(_LONGEST, seconds_until(session, first)))


def _call_carriers(unit: Unit, platform: Platform, kinds: list[tuple[str, Lane]]) -> None:
    for job, lane in kinds:
        call_carrier(unit, platform.resource(JOB_QUEUE), job, lane)
