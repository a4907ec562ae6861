"""Durable events: stored as a job in the transaction that emits them, delivered by a worker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from kernel import hookspecs
from kernel.errors import ANY_ERROR
from kernel.events import EVENTS, Event, EventCatalog
from kernel.jobs.declarations import Job, JobFailed

if TYPE_CHECKING:
    from kernel.jobs.together import Together
    from kernel.platform import Platform

log = logging.getLogger("platform.jobs")


class StoredEvent(BaseModel):
    """A stored event: its name and its fields."""

    event: str
    fields: dict[str, Any]


def stored_event(event: Event) -> StoredEvent:
    """The form in which an event is stored until its delivery."""
    return StoredEvent(event=event.event_name, fields=event.model_dump(mode="json"))


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


def _revive(known: EventCatalog, stored: StoredEvent) -> Event:
    cls = known.find(stored.event)
    if cls is None:
        raise JobFailed(f"no plugin declares the event '{stored.event}'")
    return cls.model_validate(stored.fields)


DELIVER_EVENT = Job("kernel.deliver_event", StoredEvent, _deliver, lane="quick", together=_deliver_all)
