"""What a deletion removes: what plugins report to RAG about their part."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RemovedPart:
    """What a plugin still stores about something being deleted: `count` items in `place`.

    A place is lower case with ``_`` and the same in the receipt and when somebody looks again. `pending`: it
    can't be reached any more and is removed soon after the commit, by durable work.
    """

    place: str
    count: int
    pending: bool = False
