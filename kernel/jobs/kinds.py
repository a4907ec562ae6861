"""What the database needs to know of an enqueued job; the declarations themselves need the platform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol, get_args

Lane = Literal["quick", "standard", "large"]
"""Jobs wait only for others in their lane: a mail never waits for documents, nor a small one for huge ones.
"""
LANES: Final[tuple[Lane, ...]] = get_args(Lane)

Status = Literal["queued", "running", "done", "failed", "cancelled"]
"""``queued`` and ``running`` are under way; the other three are final."""

UNDER_WAY = ("queued", "running")

QUEUED = "kernel.jobs.queued"
"""Topic of the notice that a job was enqueued; its key is the lane."""
CHANGED = "kernel.jobs.changed"
"""Topic of the notice that a long job's visible state changed; its id is the key."""
CANCEL = "kernel.jobs.cancel"
"""Topic of the notice that a job is to be cancelled; its id is the key."""


def places(lane: Lane, worker_concurrency: int) -> int:
    """How many jobs of a lane a worker runs at the same time."""
    return max(1, worker_concurrency - 1) if lane == "large" else worker_concurrency


class JobKind(Protocol):
    """A kind of background work by its name."""

    @property
    def name(self) -> str:
        """The name under which a worker finds its handler."""
        ...

    @property
    def lane(self) -> Lane:
        """Where it waits by default."""
        ...

    @property
    def title(self) -> str | None:
        """What it does, for people who follow it; None if nobody can."""
        ...


@dataclass(frozen=True)
class Gather:
    """Makes a job take turns with others of its kind rather than wait in order of arrival.

    Owners take turns, and within an owner's jobs the `share`s (such as folders), so that one's ten
    thousand jobs don't hold up another's single job. In the lane ``quick``, many are handled at once by the
    `together` of their declaration: up to a total `weight` of 64.
    """

    share: str | None = None
    weight: int = 1


@dataclass(frozen=True)
class Placing:
    """The options of `Unit.enqueue`: a job's id, another lane, its owner, what it works on."""

    job_id: str | None = None
    lane: Lane | None = None
    owner_id: int | None = None
    subject: str | None = None
    gather: Gather | None = None
