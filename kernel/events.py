"""Typed events, handed to `on_event` after the commit of the unit of work that emitted them."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Event(BaseModel):
    """Something that happened, named in the past tense.

    With `durable = True` the event is written in the transaction that emits it and delivered by a worker,
    at least once, even if the process dies right after the commit.
    """

    model_config = ConfigDict(frozen=True)

    durable: ClassVar[bool] = False

    @classmethod
    def name(cls) -> str:
        """The stable name by which a stored event finds its class again."""
        return f"{cls.__module__}:{cls.__qualname__}"
