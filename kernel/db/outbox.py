"""What a unit of work leaves for others besides rows: jobs, events and notices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pydantic import BaseModel
from sqlalchemy.orm import Session

from kernel.events.events import Event
from kernel.jobs.kinds import JobKind, Lane, Placing


class Outbox(Protocol):
    """Where units of work put jobs, events and notices."""

    def enqueue(self, session: Session, job: JobKind, payload: BaseModel, placing: Placing) -> str:
        """Write a durable job in the session's transaction; returns its id."""

    def store(self, session: Session, event: Event) -> Lane | None:
        """Write the delivery of a durable event in the session's transaction; returns where it waits."""

    def deliver(self, topic: str, key: str, row: int | None) -> None:
        """Pass a committed notice and its row's id on to this process. Must be quick."""

    async def publish(self, events: Sequence[Event]) -> None:
        """Publish committed events."""


class NoOutbox:
    """For a database without a platform: events and notices reach nobody, and there are no jobs."""

    def enqueue(self, _session: Session, job: JobKind, _payload: BaseModel, _placing: Placing) -> str:
        raise RuntimeError(f"job '{job.name}' can't be enqueued: this database was opened without jobs")

    def store(self, _session: Session, _event: Event) -> Lane | None:
        return None

    def deliver(self, _topic: str, _key: str, _row: int | None) -> None:
        return None

    async def publish(self, _events: Sequence[Event]) -> None:
        return None
