"""What a durable job is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import BaseModel

if TYPE_CHECKING:
    from kernel.platform import Platform

P = TypeVar("P", bound=BaseModel)

Lane = Literal["quick", "standard", "large"]
"""Jobs of one lane wait for each other, and never for those of another: a mail does not wait behind a
thousand documents, nor a small document behind huge ones."""


class JobFailed(Exception):
    """Raised by a handler for a failure that no retry can mend; the text is public."""


@dataclass(frozen=True)
class Job(Generic[P]):
    """A kind of background work, run by a worker process.

    `handler(platform, payload)` must be idempotent: after a kill it runs again from its start. An error
    other than JobFailed is retried with growing pauses, `retries` times. A job whose runs end `crashes`
    times with the death of the worker is given up. `on_give_up(platform, payload, reason)` records the
    failure where people see it; it too may run more than once. `lane` is where it waits unless the one who
    enqueues it says otherwise: ``quick`` for what takes seconds at most, ``large`` for what takes minutes.
    """

    name: str
    payload: type[P]
    handler: Callable[[Platform, P], Awaitable[None]]
    on_give_up: Callable[[Platform, P, str], Awaitable[None]] | None = None
    retries: int = 5
    crashes: int = 50
    first_pause: float = 1.0
    lane: Lane = "standard"


JobRef = Job[Any]
