"""Units of work: one transaction and what follows its commit; their way into threads and back to the loop."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import inspect
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy import Result, text
from sqlalchemy import inspect as inspect_row
from sqlalchemy.engine.result import FilterResult
from sqlalchemy.orm import Session
from sqlalchemy.util.concurrency import await_, in_greenlet

from kernel.db.base import shared_now
from kernel.db.outbox import Outbox
from kernel.db.tables import Notice
from kernel.errors import ANY_ERROR
from kernel.events.events import Event
from kernel.jobs.kinds import QUEUED, Gather, JobKind, Lane, Placing

log = logging.getLogger("platform.db")

AfterCommit = Callable[[], Awaitable[None]]
T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Await `work` to its end even if the caller is cancelled; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        if task.done() and not task.cancelled() and task.exception() is not None:
            log.error("work for a disconnected client failed", exc_info=task.exception())
        raise


def off_the_loop(work: Callable[[], T]) -> T:
    """Do something slow inside a unit, such as loading a library, without holding up the event loop.

    A cancelled caller still waits for it: a thread can't be stopped, and its work must not outlast the
    transaction and its locks.
    """
    result: T = await_(uninterrupted(asyncio.to_thread(work))) if in_greenlet() else work()
    return result


class Unit:
    """One unit of work: a session in one transaction, and what to do once it is committed."""

    def __init__(self, session: Session, outbox: Outbox, *, is_sqlite: bool) -> None:
        self.session = session
        self.is_sqlite = is_sqlite
        self._outbox = outbox
        self._events: list[Event] = []
        self._notices: dict[tuple[str, str], Notice] = {}
        self._after_commit: list[AfterCommit] = []

    def now(self) -> datetime:
        """Now by the database's clock, which all processes share: use it to decide on age and expiry."""
        return shared_now(self.session)

    def emit(self, event: Event) -> None:
        """Deliver `event` to `on_event` after the commit. A durable event is stored in this transaction."""
        self._events.append(event)

    def after_commit(self, callback: AfterCommit) -> None:
        """Await `callback()` in the event loop once the transaction is committed; never after a rollback."""
        self._after_commit.append(callback)

    def notify(self, topic: str, key: str) -> None:
        """After the commit, notify every process that `key` of `topic` changed (`kernel.events.notices`)."""
        if (topic, key) not in self._notices:
            self._notices[topic, key] = Notice(topic=topic, key=key)
            self.session.add(self._notices[topic, key])

    def lock(self, name: str) -> None:
        """Wait until no other unit holds `name`, and hold it until the end of this one, in every process.

        For guards that look at several rows ("the last owner"). Take several locks in the order of their
        names. On SQLite, a write transaction already excludes all others.
        """
        if not self.is_sqlite:
            self.session.execute(_LOCK, {"key": _lock_key(name)})

    def enqueue(
        self,
        job: JobKind,
        payload: BaseModel,
        *,
        job_id: str | None = None,
        lane: Lane | None = None,
        owner_id: int | None = None,
        subject: str | None = None,
        gather: Gather | None = None,
    ) -> str:
        """Write a durable job in this transaction; returns its id. The same id twice is one job.

        `lane` overrides the job's own. For a long job, `owner_id` is the account on whose behalf it runs, and
        `subject` the id of what it works on, which decides who else may see it. With `gather`, it waits with
        others of its kind, which take turns.
        """
        placing = Placing(job_id, lane, owner_id, subject, gather)
        written = self._outbox.enqueue(self.session, job, payload, placing)
        self.notify(QUEUED, lane or job.lane)
        return written

    def store_events(self) -> None:
        """Write the deliveries of durable events; called last before the commit."""
        for event in self._events:
            if event.durable and (lane := self._outbox.store(self.session, event)) is not None:
                self.notify(QUEUED, lane)

    @property
    def has_followers(self) -> bool:
        """Whether anything is to be awaited after the commit."""
        return bool(self._after_commit) or any(not event.durable for event in self._events)

    def deliver_notices(self) -> None:
        """Deliver the notices to this process at once; other processes find their rows."""
        for (topic, key), notice in self._notices.items():
            identity: Any = inspect_row(notice).identity
            self._outbox.deliver(topic, key, identity[0] if identity else None)

    async def follow_up(self) -> None:
        """Run the callbacks, then publish. Errors are logged only: the commit stands."""
        for callback in self._after_commit:
            try:
                await callback()
            except ANY_ERROR:  # the transaction is already durable, and the caller must learn of its success
                log.exception("a callback after commit failed")
        await self._outbox.publish([event for event in self._events if not event.durable])


def checked(result: T) -> T:
    """A unit's result. Raises TypeError for one that can't be used outside the unit."""
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError("a unit of reading or writing is a plain function: write 'def', not 'async def'")
    if isinstance(result, Result | FilterResult):
        raise TypeError("rows can't be read after their unit has ended: return .all(), .one() or similar")
    return result


_LOCK = text("SELECT pg_advisory_xact_lock(:key)")


def _lock_key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)


Settle = Callable[[], None]


class Task:
    """A function to call in a thread. It is either started or withdrawn, never both."""

    __slots__ = ("_first", "args", "context", "fn", "future", "kwargs")

    def __init__(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.context = contextvars.copy_context()
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._first = threading.Lock()

    def claim(self) -> bool:
        """True for the first caller: the thread that starts it or the loop that withdraws it."""
        return self._first.acquire(blocking=False)

    def run(self, argument: Any) -> Any:
        """Call the function in its caller's context (contextvars)."""
        return checked(self.context.run(self.fn, argument, *self.args, **self.kwargs))


class Handover:
    """Runs in the loop what threads hand over; under load, one wake-up of the loop serves many."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Settle] = deque()
        self._called = False

    def give(self, *settle: Settle) -> None:
        """From any thread: have each `settle()` run in the loop; calls keep their order."""
        self._waiting.extend(settle)
        if not self._called:
            self._called = True
            try:
                self._loop.call_soon_threadsafe(self._take)
            except RuntimeError:  # the loop is closed: nobody is waiting any more
                self._waiting.clear()

    def _take(self) -> None:
        self._called = False  # first: a later `give` wakes the loop again
        while self._waiting:
            self._waiting.popleft()()


def settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    """Settle the caller's future, if it is still waiting."""
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):  # a future can't carry it
        future.set_exception(RuntimeError("a unit of work raised StopIteration"))
    else:
        future.set_exception(error)
