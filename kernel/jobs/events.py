"""Durable events: stored as a job in the transaction that emits them, delivered by a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from kernel import hookspecs
from kernel.events import EVENTS, Event, EventCatalogue
from kernel.jobs.declarations import Job, JobFailed

if TYPE_CHECKING:
    from kernel.platform import Platform


class StoredEvent(BaseModel):
    """An event by its name, with its fields."""

    event: str
    fields: dict[str, Any]


def stored_event(event: Event) -> StoredEvent:
    """What is kept of an event until its delivery."""
    return StoredEvent(event=event.event_name, fields=event.model_dump(mode="json"))


async def _deliver(platform: Platform, stored: StoredEvent) -> None:
    event = _revive(platform.resource(EVENTS), stored)
    errors = await platform.hooks.tell(hookspecs.on_event, platform=platform, event=event)
    if errors:
        raise errors[0]


def _revive(known: EventCatalogue, stored: StoredEvent) -> Event:
    cls = known.find(stored.event)
    if cls is None:
        raise JobFailed(f"no plugin declares the event '{stored.event}'")
    return cls.model_validate(stored.fields)


DELIVER_EVENT = Job("kernel.deliver_event", StoredEvent, _deliver, lane="quick")
