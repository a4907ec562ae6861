"""Durable events: stored as a job in the transaction that emits them, delivered by a worker."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from kernel.db.engine import Unit
from kernel.events import Event
from kernel.jobs.declarations import Job, JobFailed

if TYPE_CHECKING:
    from kernel.platform import Platform


class StoredEvent(BaseModel):
    """An event by the name of its class, with its fields."""

    event: str
    fields: dict[str, Any]


async def store_event(unit: Unit, event: Event) -> None:
    """Write the event's delivery into the unit's transaction."""
    stored = StoredEvent(event=event.name(), fields=event.model_dump(mode="json"))
    await unit.enqueue(DELIVER_EVENT, stored)


async def _deliver(platform: Platform, stored: StoredEvent) -> None:
    errors = await platform.hooks.tell("on_event", platform=platform, event=_revive(stored))
    if errors:
        raise errors[0]


def _revive(stored: StoredEvent) -> Event:
    module, _, name = stored.event.partition(":")
    try:
        cls = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise JobFailed(f"the event '{stored.event}' is no longer known") from None
    if not (isinstance(cls, type) and issubclass(cls, Event)):
        raise JobFailed(f"'{stored.event}' is not an event")
    return cls.model_validate(stored.fields)


DELIVER_EVENT = Job("kernel.deliver_event", StoredEvent, _deliver, lane="quick")
