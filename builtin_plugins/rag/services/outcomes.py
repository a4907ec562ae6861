"""Counts of how ingestions ended, kept in every process, whichever worker ran them."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from typing import TYPE_CHECKING, Literal

from kernel.sdk import Platform, ResourceKey, Unit

if TYPE_CHECKING:
    from prometheus_client import Counter

Outcome = Literal["success", "failed"]

_TOPIC = "rag.document"
_REMEMBERED = 4096


def note_outcome(unit: Unit, outcome: Outcome, count: int = 1) -> None:
    """Notify all processes, on commit, that `count` more documents ended with this outcome."""
    unit.notify(_TOPIC, f"{outcome}:{count}:{uuid.uuid4().hex}")


class Outcomes:
    """Counts the notices; one may arrive twice."""

    def __init__(self, platform: Platform, counter: Counter) -> None:
        self._counter = counter
        self._heard: OrderedDict[str, None] = OrderedDict()
        platform.notices.listen(_TOPIC, self._hear)

    def _hear(self, notice: str) -> None:
        if notice in self._heard:
            return
        self._heard[notice] = None
        if len(self._heard) > _REMEMBERED:
            self._heard.popitem(last=False)
        outcome, count, _ = notice.split(":")
        self._counter.labels(outcome).inc(int(count))


OUTCOMES: ResourceKey[Outcomes] = ResourceKey("document outcomes")
