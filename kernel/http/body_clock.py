"""How long a client may take to send a body: a limit on each pause, and a rate that it must keep up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from aiohttp import web

from kernel.errors import RequestTimeout

T = TypeVar("T")

SLOWEST = 500
"""Bytes per second, on average, once the time for one pause is used up; any modem is faster.

Without this limit, a byte now and then would keep a connection open for months.
"""


class BodyClock:
    """Measures the time spent waiting for one request's body; the time spent processing it doesn't count."""

    def __init__(self, request: web.Request, silence: float) -> None:
        self._content = request.content
        self._silence = silence
        self._waited = 0.0

    async def wait(self, reading: Awaitable[T]) -> T:
        """The result of `reading`, which waits for more of the body. Raises RequestTimeout."""
        now = asyncio.get_running_loop().time
        began = now()
        left = self._silence + self._received() / SLOWEST - self._waited
        try:
            async with asyncio.timeout(min(self._silence, left)):
                return await reading
        except TimeoutError:
            raise RequestTimeout() from None
        finally:
            self._waited += now() - began

    def _received(self) -> int:
        """Bytes on the wire: counting decompressed ones could allow a thousand times as much time."""
        packed = getattr(self._content, "total_compressed_bytes", None)  # aiohttp's empty body lacks it
        return self._content.total_bytes if packed is None else packed
