"""What a deletion removes, as plugins report it to RAG."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RemovedPart:
    """What a plugin still stores about something being deleted: `count` items in `place`.

    A place is in lower case with ``_``, and the same in the receipt as in later checks. `pending`:
    unreachable now, and removed soon after the commit by a durable job.
    """

    place: str
    count: int
    pending: bool = False
