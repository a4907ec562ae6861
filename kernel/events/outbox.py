"""What units of work leave for others: jobs for the queue, events for hooks, notices for listeners.

A durable event is stored as a job in the transaction that emits it, and delivered by a worker.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from sqlalchemy.orm import Session

from kernel.errors import ANY_ERROR
from kernel.events.events import EVENTS, Event, EventCatalog
from kernel.events.notices import Notices
from kernel.hooks import hookspecs
from kernel.jobs import queue
from kernel.jobs.declarations import Job, JobFailed
from kernel.jobs.kinds import Gather, JobKind, Lane, Placing

if TYPE_CHECKING:
    from kernel.jobs.batching import Together
    from kernel.platform import Platform

log = logging.getLogger("platform.jobs")


class StoredEvent(BaseModel):
    """A stored event: its name and its fields."""

    event: str
    fields: dict[str, Any]


async def _deliver(platform: Platform, stored: StoredEvent) -> None:
    event = _revive(platform.resource(EVENTS), stored)
    errors = await platform.hooks.tell(hookspecs.on_event, platform=platform, event=event)
    if errors:
        raise errors[0]


async def _deliver_all(platform: Platform, events: Together[StoredEvent]) -> None:
    """Deliver several events; one that fails is retried by itself."""
    for job_id, stored in events.payloads.items():
        try:
            await _deliver(platform, stored)
        except ANY_ERROR as error:  # boundary: a listener may fail in any way
            log.warning("an event will be delivered again: %s", type(error).__name__)
        else:
            events.done(job_id)


def _revive(catalog: EventCatalog, stored: StoredEvent) -> Event:
    cls = catalog.find(stored.event)
    if cls is None:
        raise JobFailed(f"no plugin declares the event '{stored.event}'")
    return cls.model_validate(stored.fields)


DELIVER_EVENT = Job("kernel.deliver_event", StoredEvent, _deliver, lane="quick", together=_deliver_all)


@dataclass(frozen=True)
class PlatformOutbox:
    """The outbox (`kernel.db.outbox`) of a running platform."""

    notices: Notices
    tell: Callable[[Sequence[Event]], Awaitable[None]]
    has_listeners: Callable[[], object]
    events: EventCatalog

    def enqueue(self, session: Session, job: JobKind, payload: BaseModel, placing: Placing) -> str:
        """Write a durable job; the same id twice is one job."""
        return queue.enqueue(session, job, payload, placing)

    def store(self, session: Session, event: Event) -> Lane | None:
        """Write the job that delivers a durable event, if anybody listens. Raises RuntimeError."""
        if not self.events.declares(event):
            raise RuntimeError(
                f"the durable event '{event.event_name}' is not declared: return"
                f" {type(event).__name__} from register_events"
            )
        if not self.has_listeners():
            return None
        stored = StoredEvent(event=event.event_name, fields=event.model_dump(mode="json"))
        queue.enqueue(session, DELIVER_EVENT, stored, Placing(gather=Gather()))
        return DELIVER_EVENT.lane

    def deliver(self, topic: str, key: str, row: int | None) -> None:
        """Notify this process's listeners and wake the other processes."""
        self.notices.committed(topic, key, row)

    async def publish(self, events: Sequence[Event]) -> None:
        """Notify the plugins, if there are any yet: not while the database is being prepared."""
        if events:
            await self.tell(events)
