"""Calling for a carrier, the job that takes up the next gathered jobs, in a unit of work."""

from __future__ import annotations

from kernel.db.engine import Unit
from kernel.jobs.kinds import QUEUED, Lane
from kernel.jobs.queue import JobQueue


def call_carrier(unit: Unit, queue: JobQueue, job: str, lane: Lane) -> None:
    """Make sure that a carrier will take up the gathered jobs of this kind and lane."""
    rings = queue.call_carrier(unit.session, job, lane)
    if rings is not None:
        unit.notify(QUEUED, rings)
