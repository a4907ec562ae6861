"""Reading a child's output as it arrives, without trusting its length."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Final

_PIECE: Final = 65_536


class Pipe:
    """A pipe from a child: keeps the first `limit` bytes or, with `tail`, the last ones.

    Once `most` bytes have passed, `overflowed()` is called and nothing more is read.
    """

    def __init__(self, limit: int, most: int, overflowed: Callable[[], None], *, tail: bool = False) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit, self._most, self._tail = limit, most, tail
        self._overflowed = overflowed
        self._buffer = bytearray()
        self._size = 0
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._loop.add_reader(self._reading, self._read)
        self._open = True

    def given_away(self) -> None:
        """Close our copy of the writing end, now that the child has it."""
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    def close(self) -> bytes:
        """Read what is left, without waiting for more; returns what was kept."""
        self.given_away()
        while self._open:
            self._read()
        os.close(self._reading)
        return bytes(self._buffer)

    def _read(self) -> None:
        try:
            piece = os.read(self._reading, _PIECE)
        except BlockingIOError:
            piece = b""
        self._keep(piece)
        if not piece:
            self._stop()
        elif self._size > self._most:
            self._stop()
            self._overflowed()

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        self._buffer += piece
        if len(self._buffer) > self._limit:
            del self._buffer[slice(None, -self._limit) if self._tail else slice(self._limit, None)]

    def _stop(self) -> None:
        if self._open:
            self._open = False
            with contextlib.suppress(RuntimeError):
                self._loop.remove_reader(self._reading)
