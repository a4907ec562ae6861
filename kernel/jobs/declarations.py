"""What a durable job is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel

from kernel.jobs.kinds import Lane

if TYPE_CHECKING:
    from sqlalchemy import Select

    from kernel.auth.ownership import Scope
    from kernel.jobs.progress import Progress
    from kernel.platform import Platform

P = TypeVar("P", bound=BaseModel)


class JobFailed(Exception):
    """Raised by a handler for a failure that no retry can mend; the text is public."""


@dataclass(frozen=True)
class AnyJob(Generic[P]):
    """What `Job` and `LongJob` have in common.

    An error other than JobFailed is retried with growing pauses, `retries` times. An error that is the
    machine's fault (no space, no memory, no file handles) is retried for as long as it lasts and not counted.
    A job whose runs end `crashes` times with the death of the worker is given up. `lane` is where it waits
    unless the one who enqueues it says otherwise: ``quick`` for what takes seconds at most, ``large`` for
    what takes minutes.

    `schedule` runs the job by the clock: five cron fields (``"0 3 * * *"`` is 03:00) or ``"@hourly"``,
    ``"@daily"``, ``"@weekly"``, in the time zone `PLATFORM_TIME_ZONE`; or a function that answers one from
    the platform's settings, or None for never. The payload is then made without arguments. One run at a time
    over all workers; runs that were missed are made up once; none while the plugin is switched off.
    """

    name: str
    payload: type[P]
    retries: int = field(default=5, kw_only=True)
    crashes: int = field(default=50, kw_only=True)
    first_pause: float = field(default=1.0, kw_only=True)
    lane: Lane = field(default="standard", kw_only=True)
    schedule: str | Callable[[Platform], str | None] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Job(AnyJob[P]):
    """A kind of background work that nobody watches, run by a worker process.

    `handler(platform, payload)` must be idempotent: after a kill it runs again from its start.
    `on_give_up(platform, payload, reason)` records the failure where people see it; it too may run more than
    once.
    """

    handler: Callable[[Platform, P], Awaitable[None]]
    on_give_up: Callable[[Platform, P, str], Awaitable[None]] | None = None

    @property
    def title(self) -> None:
        """Nobody watches it."""


@dataclass(frozen=True)
class LongJob(AnyJob[P]):
    """A kind of background work that a person can follow and cancel (``GET /v1/jobs``).

    `handler(platform, payload, progress)` reports to `progress` as often as it likes and may answer a
    reference to its result, such as the path of what it made. It must be idempotent: after a kill it runs
    again, with `progress` as it was written last. A cancel ends it with a CancelledError at its next await,
    as does a worker that stops: clean up and let it pass; only a cancel is followed by
    `on_cancel(platform, payload)`, which like `on_give_up` may run more than once.

    `title` says what it does, in general ("Read a document"): it outlives what it worked on. `visible`
    answers a query for the ids of the subjects that a scope may see: who sees the subject sees the job. Its
    owner and administrators see it anyway, and only they may cancel it.
    """

    handler: Callable[[Platform, P, Progress], Awaitable[str | None]]
    title: str
    on_give_up: Callable[[Platform, P, str], Awaitable[None]] | None = None
    on_cancel: Callable[[Platform, P], Awaitable[None]] | None = None
    visible: Callable[[Scope], Select[str]] | None = None


JobRef: TypeAlias = Job[Any] | LongJob[Any]
