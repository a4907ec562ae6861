"""The values of `JobRecord.gathered`, for jobs that wait with others of their kind, and their carriers."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from kernel.jobs.kinds import Lane

CARRIER: Final = "kernel.carry"
"""The kind of the jobs that run others (carriers)."""

TAKEN: Final = "taken:"
"""Prefix of `gathered` for a job that a carrier has taken; the carrier's id follows."""
TAKEN_END: Final = "taken;"
"""Sorts after everything that begins with `TAKEN`."""


def waiting(job: str, lane: Lane) -> str:
    """`gathered` of a job of this kind that waits in this lane."""
    return f"waiting:{job}:{lane}"


def next_carrier(job: str, lane: Lane) -> str:
    """`gathered` of the carrier that will take up jobs of this kind."""
    return f"carrier:{job}:{lane}"


def taken(carrier: str) -> str:
    """`gathered` of a job that this carrier has."""
    return TAKEN + carrier


class Load(BaseModel):
    """A carrier's payload: its own id, and the kind and lane of the jobs to take up."""

    carrier: str
    job: str
    lane: Lane
