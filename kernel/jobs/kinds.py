"""What the database needs to know of a job that is enqueued; the declaration itself names the platform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Lane = Literal["quick", "standard", "large"]
"""Jobs of one lane wait for each other, and never for those of another: a mail does not wait behind a
thousand documents, nor a small document behind huge ones."""

Status = Literal["queued", "running", "done", "failed", "cancelled"]
"""``queued`` and ``running`` are under way; the other three are final."""

UNDER_WAY = ("queued", "running")

QUEUED = "kernel.jobs.queued"
"""Topic of the notice that a job was put into the lane that is its key."""
CHANGED = "kernel.jobs.changed"
"""Topic of the notice that what people see of a long job changed; its id is the key."""
CANCEL = "kernel.jobs.cancel"
"""Topic of the notice that a job is to be cancelled; its id is the key."""


class JobKind(Protocol):
    """A kind of background work by its name."""

    @property
    def name(self) -> str:
        """The name under which a worker finds its handler."""
        ...

    @property
    def lane(self) -> Lane:
        """Where it waits unless whoever enqueues it says otherwise."""
        ...

    @property
    def title(self) -> str | None:
        """What it does, for people who follow it; None if nobody can."""
        ...


@dataclass(frozen=True)
class Gather:
    """Says that a job waits with others of its kind and is taken up in turn, rather than in order of arrival.

    Turns go to owners, and among an owner's jobs to `share`s (such as knowledge bases), so that ten thousand
    jobs of one don't hold up the single one of another. In the lane ``quick`` many are handled at once, by
    the `together` of their declaration: up to a sum of `weight`s of 64.
    """

    share: str | None = None
    weight: int = 1


@dataclass(frozen=True)
class Placing:
    """What whoever enqueues a job says about it: its id, another lane, whose it is, what it works on."""

    job_id: str | None = None
    lane: Lane | None = None
    owner_id: int | None = None
    subject: str | None = None
    gather: Gather | None = None


@dataclass(frozen=True)
class Placed:
    """A job that was written, by its id, and the lane whose bell is to be rung for it, if any."""

    job_id: str
    rings: Lane | None
