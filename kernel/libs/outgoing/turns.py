"""A limit on the work for streamed responses in one turn of the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

MOST: Final = 2


class StreamTurns:
    """Lets at most `most` pieces of streamed responses proceed per turn of the loop, in order.

    Model servers send the pieces of many responses at the same moment; handled all at once, they would keep
    every other request waiting. Between turns, the loop serves those.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._left = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._counting = False

    async def take(self) -> None:
        """Return when it is this piece's turn."""
        if not self._counting:
            self._counting = True
            asyncio.get_running_loop().call_soon(self._next)
        if self._left and not self._waiting:
            self._left -= 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        await place

    def _next(self) -> None:
        self._left = self._most
        while self._waiting and self._left:
            place = self._waiting.popleft()
            if not place.done():  # otherwise the waiter has left
                place.set_result(None)
                self._left -= 1
        self._counting = self._left < self._most
        if self._counting:
            asyncio.get_running_loop().call_soon(self._next)
