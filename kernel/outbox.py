"""What units of work leave for others: jobs for the queue, events for hooks, notices for listeners."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel
from sqlalchemy.orm import Session

from kernel.events import Event, EventCatalog
from kernel.jobs.events import DELIVER_EVENT, stored_event
from kernel.jobs.kinds import Gather, JobKind, Lane, Placed, Placing
from kernel.jobs.queue import JobQueue
from kernel.notices import Notices


@dataclass(frozen=True)
class PlatformOutbox:
    """The outbox (`kernel.db.outbox`) of a running platform."""

    queue: JobQueue
    notices: Notices
    tell: Callable[[Sequence[Event]], Awaitable[None]]
    has_listeners: Callable[[], object]
    events: EventCatalog

    def enqueue(self, session: Session, job: JobKind, payload: BaseModel, placing: Placing) -> Placed:
        """Write a durable job; the same id twice is one job."""
        return self.queue.enqueue(session, job, payload, placing)

    def store(self, session: Session, event: Event) -> Lane | None:
        """Write the job that delivers a durable event, if anybody listens. Raises RuntimeError."""
        if not self.events.declares(event):
            raise RuntimeError(
                f"the durable event '{event.event_name}' is not declared: return"
                f" {type(event).__name__} from register_events"
            )
        if not self.has_listeners():
            return None
        return self.queue.enqueue(session, DELIVER_EVENT, stored_event(event), Placing(gather=Gather())).rings

    def deliver(self, topic: str, key: str, row: int | None) -> None:
        """Notify this process's listeners and wake the other processes."""
        self.notices.committed(topic, key, row)

    async def publish(self, events: Sequence[Event]) -> None:
        """Notify the plugins, if there are any yet: not while the database is being prepared."""
        if events:
            await self.tell(events)
