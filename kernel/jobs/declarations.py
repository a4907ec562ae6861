"""What plugins declare: durable jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel

from kernel.jobs.kinds import Lane

if TYPE_CHECKING:
    from sqlalchemy import Select

    from kernel.auth.ownership import Scope
    from kernel.jobs.batching import Together
    from kernel.jobs.progress import Progress
    from kernel.platform import Platform

P = TypeVar("P", bound=BaseModel)


class NoPayload(BaseModel):
    """The payload of a job that needs none."""


class JobFailed(Exception):
    """Raise it in a handler for a failure that a retry can't fix. The text is public."""


class JobMoved(Exception):
    """Raise it in a handler to continue in another lane, with another payload: for work that turns out to be
    larger than it looked. In the same lane, it gives the job's place back, to continue when it is its turn
    again; in another, it may wait for its `first_turn` there. It does not count as an attempt.
    """

    def __init__(self, lane: Lane, payload: BaseModel, *, first_turn: bool = False) -> None:
        self.lane, self.first_turn = lane, first_turn
        self.payload = payload
        super().__init__(lane)


@dataclass(frozen=True)
class AnyJob(Generic[P]):
    """What `Job` and `LongJob` have in common.

    An error other than JobFailed is retried up to `retries` times, with growing pauses. An error that is the
    machine's fault (no disk space, memory or file handles) is retried for as long as it lasts, and doesn't
    count. A job is given up after its worker has died `crashes` times while running it. `lane` is where the
    job waits by default: ``quick`` for work of a few seconds at most, ``large`` for work of minutes.

    `schedule` runs the job by the clock: five cron fields (``"0 3 * * *"`` is 03:00) or ``"@hourly"``,
    ``"@daily"``, ``"@weekly"``, in the time zone `PLATFORM_TIME_ZONE`; or a function of the platform that
    returns one of these, or None for never. The payload is then created without arguments. Only one run
    happens at a time across all workers; missed runs are caught up once; nothing runs while the plugin is
    disabled.

    `together(platform, jobs)` handles many small jobs at once if they are enqueued with `gather` into the
    lane ``quick``. It calls `jobs.done(id)` for those that it completed; the others (after an error, all of
    them) are then handled one by one.
    """

    name: str
    payload: type[P]
    retries: int = field(default=5, kw_only=True)
    crashes: int = field(default=50, kw_only=True)
    first_pause: float = field(default=1.0, kw_only=True)
    lane: Lane = field(default="standard", kw_only=True)
    schedule: str | Callable[[Platform], str | None] | None = field(default=None, kw_only=True)
    together: Callable[[Platform, Together[P]], Awaitable[None]] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Job(AnyJob[P]):
    """A kind of background work that nobody needs to follow. A worker process runs it.

    `handler(platform, payload)` must be idempotent: after a crash it runs again from the start.
    `on_give_up(platform, payload, reason)` can record the failure where people see it; it may run more than
    once, too.
    """

    handler: Callable[[Platform, P], Awaitable[None]]
    on_give_up: Callable[[Platform, P, str], Awaitable[None]] | None = None

    @property
    def title(self) -> None:
        """None: nobody follows it."""


@dataclass(frozen=True)
class LongJob(AnyJob[P]):
    """A kind of background work that people can follow and cancel (``GET /v1/jobs``).

    `handler(platform, payload, progress)` reports to `progress` as often as it likes, and may return a
    reference to its result, such as the path of what it created. It must be idempotent: after a crash it runs
    again, with `progress` as last saved. When the job is cancelled, or the worker stops, the handler gets a
    CancelledError at its next await: clean up and let it pass. Only a cancelled job is followed by
    `on_cancel(platform, payload)`, which, like `on_give_up`, may run more than once. `on_unreadable(platform,
    subject, reason)` is called instead of `on_give_up` if the stored payload no longer fits its type, such as
    after an upgrade: then only the job's subject is known.

    `title` says in general what the job does ("Read a document"), because it is kept longer than the object
    that the job works on. `visible` returns a query for the ids of the subjects that a scope can see: whoever
    can see the subject can see the job. Its owner and administrators always can, and only they can cancel it.
    """

    handler: Callable[[Platform, P, Progress], Awaitable[str | None]]
    title: str
    on_give_up: Callable[[Platform, P, str], Awaitable[None]] | None = None
    on_cancel: Callable[[Platform, P], Awaitable[None]] | None = None
    on_unreadable: Callable[[Platform, str, str], Awaitable[None]] | None = None
    visible: Callable[[Scope], Select[str]] | None = None


JobRef: TypeAlias = Job[Any] | LongJob[Any]
