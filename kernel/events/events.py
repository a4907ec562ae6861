"""Typed events, handed to `on_event` after the commit of the unit of work that emitted them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from kernel.plugins.resource_keys import ResourceKey

_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_.]*")


class Event(BaseModel):
    """Something that happened, named in the past tense.

    `event_name` (``<plugin>.<what_happened>``) identifies the event to listeners, and finds its class when a
    stored one is read. Avoid changing it; if you do rename an event, keep the old name in `former_names`.
    With `durable = True` the event is stored in the transaction that emits it, and a worker delivers it at
    least once, even if the process dies right after the commit; declare it in `register_events`.
    """

    model_config = ConfigDict(frozen=True)

    event_name: ClassVar[str]
    former_names: ClassVar[Sequence[str]] = ()
    durable: ClassVar[bool] = False

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        if not _NAME.fullmatch(str(vars(cls).get("event_name", ""))):
            raise TypeError(
                f"the event {cls.__name__} needs its own name: write"
                " event_name: ClassVar[str] = '<plugin>.<what_happened>' in it (a-z, 0-9, '_')"
            )


class EventCatalog:
    """The declared events, by every name under which one may be stored."""

    def __init__(self) -> None:
        self._classes: dict[str, type[Event]] = {}

    def add(self, plugin: str, declared: Sequence[type[Event]]) -> str | None:
        """Add a plugin's events. Returns None, or why they were refused; then nothing is added."""
        fresh: dict[str, type[Event]] = {}
        for event in declared:
            for name in _names(event):
                if not name.startswith(f"{plugin}.") and name == event.event_name:
                    return f"its event '{name}' must be called '{plugin}.…'"
                if fresh.get(name, self._classes.get(name, event)) is not event:
                    return f"there are two events called '{name}'; rename one and keep its former_names"
                fresh[name] = event
        self._classes.update(fresh)
        return None

    def find(self, name: str) -> type[Event] | None:
        """The class of a stored event; None for a name that no plugin declared."""
        return self._classes.get(name)

    def declares(self, event: Event) -> bool:
        """Whether the event's class can be found by its name."""
        return self._classes.get(event.event_name) is type(event)


def _names(event: type[Event]) -> Iterator[str]:
    yield event.event_name
    former = event.former_names
    yield from (former,) if isinstance(former, str) else former


EVENTS: ResourceKey[EventCatalog] = ResourceKey("events")
