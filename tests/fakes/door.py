"""A door before a server: shut, nobody gets through, and whoever is inside is thrown out."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit


class Door:
    """Carries bytes between a port of its own and a server, while it is open."""

    def __init__(self, url: str) -> None:
        self._host, self._port = str(urlsplit(url).hostname), int(urlsplit(url).port or 80)
        self._listener: asyncio.Server | None = None
        self._inside: set[asyncio.StreamWriter] = set()
        self._own = 0

    @property
    def port(self) -> int:
        """Where it stands on this machine."""
        return self._own

    @property
    def url(self) -> str:
        """Where it stands."""
        return f"http://127.0.0.1:{self._own}"

    async def open(self) -> None:
        """Let everybody through; always on the same port."""
        self._listener = await asyncio.start_server(self._enter, "127.0.0.1", self._own, reuse_address=True)
        self._own = self._listener.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        """Refuse connections, and break those that there are."""
        assert self._listener is not None
        self._listener.close()
        for writer in list(self._inside):
            writer.transport.abort()
        await self._listener.wait_closed()

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onward = await asyncio.open_connection(self._host, self._port)
        self._inside |= {writer, onward}
        try:
            await asyncio.gather(_carry(reader, onward), _carry(there, writer))
        finally:
            self._inside -= {writer, onward}
            writer.transport.abort()
            onward.transport.abort()


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
        target.close()
