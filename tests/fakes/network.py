"""Clients and connections that misbehave on the network."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass
class RawAnswer:
    """An answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes


class RawClient:
    """A TCP connection on which a test writes what no HTTP library would."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Write and flush."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, seconds: float = 10) -> RawAnswer:
        """Read one answer. Raises EOFError (IncompleteReadError) when the connection ends before."""
        async with asyncio.timeout(seconds):
            head = await self.reader.readuntil(b"\r\n\r\n")
            status, headers = _parse_head(head)
            body = await self._body(headers)
        return RawAnswer(status, headers, body)

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            return b"".join([chunk async for chunk in self.chunks()])
        return await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def head(self) -> tuple[int, dict[str, str]]:
        """Read the head of an answer alone."""
        return _parse_head(await self.reader.readuntil(b"\r\n\r\n"))

    async def chunks(self) -> AsyncIterator[bytes]:
        """The pieces of a chunked body as they were sent."""
        while size := int((await self.reader.readline()).split(b";")[0], 16):
            yield await self.reader.readexactly(size)
            await self.reader.readline()
        await self.reader.readline()

    async def closed(self, seconds: float = 10) -> bool:
        """Whether the other side ends the connection within the time, saying nothing more."""
        async with asyncio.timeout(seconds):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return int(first.split()[1]), {name.lower(): value.strip() for name, value in pairs}


@asynccontextmanager
async def raw_client(url: str) -> AsyncIterator[RawClient]:
    """A connection to the server of `url`."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=2**20)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27  # socket(7); Python has no names for them


def _drop_all(endpoint: Any) -> None:
    """A filter of one instruction: keep nothing of any packet (BPF's `ret #0`)."""
    program = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
    told = struct.pack("HL", 1, ctypes.addressof(program))
    endpoint.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, told)


@dataclass
class Wire:
    """A TCP forwarder that a test can cut, mute and mend: a database or a cache that goes away.

    With `stop_after` it holds everything back once so many bytes have passed: `stopped` is set then.
    """

    host: str
    target_port: int
    port: int = 0
    mode: str = "pass"
    refused: int = 0
    stop_after: int | None = None
    passed: int = 0
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Refuse connections and reset the open ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._reset()

    async def drop(self) -> None:
        """Reset the open connections and each new one, until `restore`; `refused` counts the new ones."""
        self.mode = "drop"
        await self._reset()

    def stall(self) -> None:
        """Hold everything back until `restore`, as a network does whose packets are sent again later."""
        self.mode = "stall"
        self._flowing.clear()

    def restore(self) -> None:
        """Let new connections pass again, and what was held back."""
        self.mode = "pass"
        self._flowing.set()

    async def _reset(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def vanish(self) -> None:
        """Have the system drop every packet that arrives here, from either side, until `come_back`.

        Nothing is acknowledged and nobody is told, as when a machine loses its power.
        """
        for each in self._sockets():
            _drop_all(each)

    def come_back(self) -> None:
        """Let packets arrive again; connections that one side gave up meanwhile end for the other, too."""
        for each in self._sockets():
            with suppress(FileNotFoundError):  # opened after `vanish`, for a client that was waiting then
                each.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def _sockets(self) -> list[Any]:
        listening = self._server.sockets if self._server is not None else ()
        found = [writer.get_extra_info("socket") for writer in self._writers if not writer.is_closing()]
        return [*listening, *found]

    def mute(self) -> None:
        """Swallow everything from now on, as a network does that lost its route."""
        self.mode = "mute"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self.mode == "drop":
            self.refused += 1
            writer.transport.abort()
            return
        self._tasks.add(task)
        self._writers.add(writer)
        ends = [writer]
        try:
            back, forth = await asyncio.open_connection(self.host, self.target_port)
            self._writers.add(forth)
            ends.append(forth)
            await asyncio.gather(self._copy(reader, forth), self._copy(back, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for each in ends:
                each.close()
            self._tasks.discard(task)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.passed += len(data)
            if self.stop_after is not None and self.passed > self.stop_after:
                self.stopped.set()
                await asyncio.Event().wait()
            if self.mode == "stall":
                await self._flowing.wait()
            if self.mode == "pass":
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def wire_to(host: str, port: int) -> AsyncIterator[Wire]:
    """A forwarder to `host`:`port`."""
    wire = Wire(host, port)
    await wire.start()
    try:
        yield wire
    finally:
        await wire.cut()
