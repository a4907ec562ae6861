"""Limits how many queries run at once, as each is a process with much memory."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernel.sdk import Platform, ResourceKey

from .errors import TooManyQueries
from .live import PATIENCE
from .settings import RdfSettings

_MOST_WAITING = 8


class QueryTurns:
    """Slots for `most` queries, at most half of them for one account; waiting accounts take turns.

    A slot is held for at most `longest` seconds, after which a refused caller can expect one.
    """

    def __init__(self, most: int, patience: float, longest: int) -> None:
        self._free = most
        self._longest = longest
        self._each = max(1, most // 2)
        self._patience = patience
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, account: str) -> AsyncIterator[None]:
        """Hold a slot. Raises TooManyQueries if too many wait already, or none gets free in time."""
        await self._take(account)
        try:
            yield
        finally:
            self._give_back(account)

    async def _take(self, account: str) -> None:
        line = self._waiting.setdefault(account, deque())
        if len(line) >= _MOST_WAITING:
            raise self._refusal()
        place = asyncio.get_running_loop().create_future()
        line.append(place)
        self._next()
        try:
            async with asyncio.timeout(self._patience):
                await place
        except (TimeoutError, asyncio.CancelledError) as error:
            self._leave(account, place)
            if isinstance(error, TimeoutError):
                raise self._refusal() from None
            raise

    def _refusal(self) -> TooManyQueries:
        return TooManyQueries(headers={"Retry-After": str(self._longest)})

    def _leave(self, account: str, place: asyncio.Future[None]) -> None:
        if not place.cancelled():  # it was freed in the same turn of the loop in which its waiter left
            self._give_back(account)
        elif place in (line := self._waiting.get(account, deque())):
            line.remove(place)
            if not line:
                del self._waiting[account]

    def _give_back(self, account: str) -> None:
        self._free += 1
        self._running[account] -= 1
        if not self._running[account]:
            del self._running[account]
        self._next()

    def _next(self) -> None:
        while self._free:
            account = next((one for one in self._waiting if self._running[one] < self._each), None)
            if account is None:
                return
            line = self._waiting.pop(account)
            place = line.popleft()
            if line:
                self._waiting[account] = line  # to the end of the line
            if not place.done():
                self._free -= 1
                self._running[account] += 1
                place.set_result(None)


@asynccontextmanager
async def open_turns(platform: Platform) -> AsyncIterator[QueryTurns]:
    """The slots of this process."""
    settings = platform.settings_of(RdfSettings)
    longest = PATIENCE + settings.sparql_seconds
    yield QueryTurns(settings.sparql_at_once, settings.sparql_wait_seconds, round(longest))


QUERY_TURNS: ResourceKey[QueryTurns] = ResourceKey("graph-rag query turns")
