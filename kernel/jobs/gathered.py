"""What is written into a job's record while it waits with others of its kind, and who takes it up."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from kernel.jobs.kinds import Lane

CARRIER: Final = "kernel.carry"
"""The kind of the jobs that take up others."""

TAKEN: Final = "taken:"
"""Begins `gathered` of a job that a carrier has; the carrier's id follows."""
TAKEN_END: Final = "taken;"
"""Sorts behind everything that begins with `TAKEN`."""


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
    """What a carrier takes up: jobs of this kind that wait in this lane. It knows its own id."""

    carrier: str
    job: str
    lane: Lane
