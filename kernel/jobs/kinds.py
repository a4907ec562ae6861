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
        """What it does, for people who follow it; None where nobody does."""
        ...


@dataclass(frozen=True)
class Placing:
    """What whoever enqueues a job says of it: its id, another lane, whose it is, what it works on."""

    job_id: str | None = None
    lane: Lane | None = None
    owner_id: int | None = None
    subject: str | None = None
