"""HTTP load on keep-alive connections, in a closed or an open loop.

Closed: each connection sends a request, waits for the whole answer, sends the next; latencies are those of a
server that is as busy as it can be. Open: requests fall due at a fixed rate whatever the server does, and
latencies count from then, so that two servers can be compared under the same load.

Cheap enough in one process to drive a Python server on the other core: answers are told apart by their
length, which the head gives.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

import uvloop

_TICK = 0.001  # what the event loop's timers resolve
_PATIENCE = 10.0


@dataclass(frozen=True)
class Result:
    """Requests a second, and latencies in milliseconds."""

    rate: float
    p50: float
    p99: float
    errors: int
    seconds: float = 0.0
    """From the first request to the last answer."""
    processor: float = 0.0
    """Seconds of processor time that the load itself took meanwhile."""


class _Connection(asyncio.Protocol):
    """Sends one request at a time and hands each answer to its load."""

    def __init__(self, load: _Load) -> None:
        self._load = load
        self._buffer = bytearray()
        self._due: float | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def send(self, due: float) -> None:
        self._due = due
        self._transport.write(next(self._load.requests))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._due is None or not self._complete():
            return
        self._load.latencies.append(time.perf_counter() - self._due)
        self._load.errors += not self._buffer.startswith(b"HTTP/1.1 2")
        self._due = None
        self._buffer.clear()
        self._load.answered(self)

    def _complete(self) -> bool:
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return False
        start = self._buffer.lower().find(b"content-length:", 0, head)
        end = self._buffer.find(b"\r\n", start)
        return len(self._buffer) >= head + 4 + int(self._buffer[start + 15 : end])

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.errors += self._due is not None


class _Load(ABC):
    """Requests on some connections for a time."""

    def __init__(self, requests: Sequence[bytes], seconds: float) -> None:
        self.requests = cycle(requests)
        self.latencies: list[float] = []
        self.errors = 0
        self._seconds = seconds

    async def run(self, port: int, connections: int) -> Result:
        """Open the connections, send, wait for the last answers."""
        loop = asyncio.get_running_loop()
        opened = [
            await loop.create_connection(lambda: _Connection(self), "127.0.0.1", port)
            for _ in range(connections)
        ]
        print("begun", flush=True)
        started, used = time.perf_counter(), time.process_time()
        await self._drive([connection for _, connection in opened], started + self._seconds)
        elapsed, used = time.perf_counter() - started, time.process_time() - used
        self.latencies.sort()
        pick = lambda share: self.latencies[int(share * (len(self.latencies) - 1))] * 1000  # noqa: E731
        rate = len(self.latencies) / elapsed
        return Result(rate, pick(0.5), pick(0.99), self.errors, elapsed, used)

    @abstractmethod
    async def _drive(self, connections: list[_Connection], stop_at: float) -> None:
        """Send until then."""

    @abstractmethod
    def answered(self, connection: _Connection) -> None:
        """The connection has its answer."""


class _ClosedLoad(_Load):
    async def _drive(self, connections: list[_Connection], stop_at: float) -> None:
        self._stop_at = stop_at
        self._open = len(connections)
        self._done = asyncio.Event()
        for connection in connections:
            connection.send(time.perf_counter())
        async with asyncio.timeout(self._seconds + _PATIENCE):
            await self._done.wait()

    def answered(self, connection: _Connection) -> None:
        now = time.perf_counter()
        if now < self._stop_at:
            connection.send(now)
            return
        self._open -= 1
        if not self._open:
            self._done.set()


class _OpenLoad(_Load):
    def __init__(self, requests: Sequence[bytes], seconds: float, rate: float) -> None:
        super().__init__(requests, seconds)
        self._interval = 1 / rate
        self._waiting: deque[float] = deque()

    async def _drive(self, connections: list[_Connection], stop_at: float) -> None:
        self._connections = len(connections)
        self._at_rest = asyncio.Event()
        self._idle = deque(connections)
        due = time.perf_counter()
        while due < stop_at:
            while due <= (now := time.perf_counter()):
                self._ask(now)  # the tick's own lateness is not the server's
                due += self._interval
            await asyncio.sleep(_TICK)
        self._at_rest.clear()
        if len(self._idle) < len(connections):
            async with asyncio.timeout(_PATIENCE):
                await self._at_rest.wait()

    def _ask(self, due: float) -> None:
        if self._idle:
            self._idle.popleft().send(due)
        else:
            self._waiting.append(due)

    def answered(self, connection: _Connection) -> None:
        if self._waiting:
            connection.send(self._waiting.popleft())
        else:
            self._idle.append(connection)
            if len(self._idle) == self._connections:
                self._at_rest.set()


def raw_request(path: str, token: str | None = None, body: str | None = None) -> str:
    """A GET request as bytes on the wire; with a JSON `body` a POST."""
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    if body is None:
        return f"GET {path} HTTP/1.1\r\nHost: bench\r\n{authorization}\r\n"
    described = f"Content-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n"
    return f"POST {path} HTTP/1.1\r\nHost: bench\r\n{authorization}{described}\r\n{body}"


async def load(
    port: int,
    path: str,
    *,
    token: str | None = None,
    connections: int,
    seconds: float,
    rate: float | None = None,
    body: str | None = None,
    begun: asyncio.Event | None = None,
) -> Result:
    """The same request again and again: a closed loop, or an open one at `rate` requests a second.

    `begun` is set when its connections are open and the first request is about to be sent.
    """
    requests = [raw_request(path, token, body)]
    return await load_of(port, requests, connections=connections, seconds=seconds, rate=rate, begun=begun)


async def load_of(
    port: int,
    requests: Sequence[str],
    *,
    connections: int,
    seconds: float,
    rate: float | None = None,
    begun: asyncio.Event | None = None,
) -> Result:
    """Requests (`raw_request`) one after the other, again and again, by its own process."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from tests.benchmarks.load import main; main()"), stdin=pipe, stdout=pipe
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps([port, list(requests), connections, seconds, rate]).encode())
    await process.stdin.drain()
    process.stdin.close()
    await process.stdout.readline()  # empty if it failed: the result is missing then, too
    if begun is not None:
        begun.set()
    output, _ = await process.communicate()
    return Result(**json.loads(output))


def main() -> None:
    port, requests, connections, seconds, rate = json.load(sys.stdin)
    raw = [request.encode() for request in requests]
    made = _ClosedLoad(raw, seconds) if rate is None else _OpenLoad(raw, seconds, rate)
    print(json.dumps(asdict(uvloop.run(made.run(port, connections)))))
