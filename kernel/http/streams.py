"""Streamed responses last only as long as their caller's session (spec 5.1 rule 4).

A request is checked when it arrives, but a streamed response goes on after that. Each one for an account is
watched here: when the session is revoked or the account deactivated, a notice ends it, or a check every
second if the notice is lost. An expiring token does not end a stream that began while it was valid.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from sqlalchemy.exc import SQLAlchemyError

from kernel.auth.principals import Principal
from kernel.auth.states import AccountStates
from kernel.errors import ANY_ERROR, TooManyRequests
from kernel.libs.background import lasting
from kernel.plugins.resource_keys import ResourceKey

log = logging.getLogger("platform.http")

LOOK_EVERY = 1.0
_LAST_WORDS = 2.0
_REMEMBERED = 10_000
_RETRY_AFTER = 5


class TooManyStreams(TooManyRequests):
    code = "too_many_streams"
    default_detail = "This account has too many streams open; close some first"


class OpenStream:
    """A streaming response under way; `end` is called when its caller's session is over.

    While it `is_soft`, it can still tell the client why it ends; `stops` means that the server is stopping.
    An `endless` stream follows something and never ends by itself.
    """

    def __init__(self, epoch: int | None, credential: str, end: Callable[[], None]) -> None:
        self.epoch = epoch
        self.credential = credential
        self.end = end
        self.is_soft = self.stops = self.endless = False

    def stop(self) -> None:
        """Tell the client that the server is stopping and end the stream; do nothing if it can't tell."""
        if self.is_soft:
            self.stops = True
            self.end()

    @asynccontextmanager
    async def ending_softly(self) -> AsyncIterator[asyncio.Timeout]:
        """Run a block that the end of the session stops with a TimeoutError instead of a cut connection."""
        hard = self.end
        try:
            async with asyncio.timeout(None) as limit:
                self.end = lambda: _expire(limit)
                self.is_soft = True
                yield limit
        finally:
            self.end, self.is_soft = hard, False


def _expire(limit: asyncio.Timeout) -> None:
    if not limit.expired():  # otherwise it is already ending
        limit.reschedule(asyncio.get_running_loop().time())


class OpenStreams:
    """The streaming responses of one process, by account."""

    def __init__(self, states: AccountStates, most: int) -> None:
        self._states = states
        self._most = most
        self._open: dict[int, set[OpenStream]] = {}
        self._invalid: dict[str, None] = {}  # the credentials that ended last
        self._looking: asyncio.Task[None] | None = None
        self._checks: set[asyncio.Task[None]] = set()
        self._stopping: asyncio.TimerHandle | None = None

    def admit(self, principal: Principal) -> None:
        """Raise TooManyStreams if an account has as many streams open as it may."""
        if principal.id is not None and len(self._open.get(principal.id, ())) >= self._most:
            raise TooManyStreams(
                f"This account has {self._most} streams open, which is the limit; close some first",
                headers={"Retry-After": str(_RETRY_AFTER)},
            )

    def usage(self, principal: Principal) -> tuple[int, int]:
        """How many streams an account has open in this process, and how many it may have."""
        return len(self._open.get(principal.id or 0, ())), self._most

    def watch(self, principal: Principal, cut: Callable[[], None]) -> OpenStream | None:
        """Watch the response that the current task is about to stream; None without a session.

        `cut` breaks the response off when the session is over.
        """
        task = asyncio.current_task()
        if principal.id is None or task is None:
            return None
        stream = OpenStream(self._epoch_of(principal), principal.credential, cut)
        self._open.setdefault(principal.id, set()).add(stream)
        task.add_done_callback(lambda _: self._forget(principal.id, stream))
        if self._looking is None or self._looking.done():
            self._looking = lasting("open-streams", self._look)
        return stream

    def _epoch_of(self, principal: Principal) -> int | None:
        """The session's epoch; for a principal from a plugin, the account's present one."""
        if "epoch" in principal.claims:
            return int(principal.claims["epoch"])
        state = self._states.peek(principal.id or 0)
        return None if state is None else state.epoch

    def changed(self, key: str) -> None:
        """An account (its id as text) changed: check at once whether its streams may continue."""
        if key.isdecimal() and int(key) in self._open:
            check = asyncio.ensure_future(self._guarded_check([int(key)]))
            self._checks.add(check)
            check.add_done_callback(self._checks.discard)

    def end(self, credential: str) -> None:
        """End the streams that began with a credential (`Principal.credential`) that is now invalid.

        A stream that begins later, because its request is still being prepared, ends within a second.
        """
        self._invalid[credential] = None
        if len(self._invalid) > _REMEMBERED:
            del self._invalid[next(iter(self._invalid))]
        for stream in self._all():
            if stream.credential == credential:
                _guarded(stream.end)

    def stop(self, grace: float) -> None:
        """Prepare for a stop in `grace` seconds: endless streams end now, others shortly before it.

        Any that are left then are cut off.
        """
        for stream in self._all():
            if stream.endless:
                _guarded(stream.stop)
        soon = max(grace - _LAST_WORDS, grace / 2)
        self._stopping = asyncio.get_running_loop().call_later(soon, self._stop_all)

    def _stop_all(self) -> None:
        for stream in self._all():
            _guarded(stream.stop)

    def _all(self) -> list[OpenStream]:
        return [stream for streams in self._open.values() for stream in streams]

    async def close(self) -> None:
        """Stop checking."""
        if self._stopping is not None:
            self._stopping.cancel()
        tasks = [*self._checks, *([self._looking] if self._looking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, account_id: int | None, stream: OpenStream) -> None:
        streams = self._open.get(account_id or 0)
        if streams is not None:
            streams.discard(stream)
            if not streams:
                del self._open[account_id or 0]

    async def _look(self) -> None:
        while self._open:
            await asyncio.sleep(LOOK_EVERY)
            await self._guarded_check(list(self._open))

    async def _guarded_check(self, account_ids: list[int]) -> None:
        try:
            await self._check(account_ids)
        except (SQLAlchemyError, OSError) as error:
            log.warning("open streams can't be checked until the database is back: %s", type(error).__name__)

    async def _check(self, account_ids: Iterable[int]) -> None:
        epochs = await self._states.read_epochs(account_ids)
        for account_id in account_ids:
            epoch = epochs.get(account_id)
            for stream in list(self._open.get(account_id, ())):
                if stream.epoch is None:
                    stream.epoch = epoch
                if epoch is None or stream.epoch != epoch or stream.credential in self._invalid:
                    _guarded(stream.end)


def _guarded(end: Callable[[], None]) -> None:
    """Call `end`; a stream that can't be ended must not keep the others from ending."""
    try:
        end()
    except ANY_ERROR:  # boundary: a plugin's stream may fail in any way as it ends
        log.exception("a streaming answer could not be ended")


OPEN_STREAMS: ResourceKey[OpenStreams] = ResourceKey("open_streams")
