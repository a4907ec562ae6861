"""A closed-loop HTTP load: each connection sends a request, waits for the whole answer, sends the next.

Cheap enough in one process to drive a Python server on the other core: answers are told apart by their
length, which the first one gives.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import uvloop


@dataclass(frozen=True)
class Result:
    """Requests a second, and latencies in milliseconds."""

    rate: float
    p50: float
    p99: float
    errors: int


class _Connection(asyncio.Protocol):
    def __init__(
        self, request: bytes, latencies: list[float], stop_at: float, done: asyncio.Future[None]
    ) -> None:
        self._request = request
        self._latencies = latencies
        self._stop_at = stop_at
        self._done = done
        self._buffer = bytearray()
        self._expected = 0
        self.errors = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._complete():
            return
        now = time.perf_counter()
        self._latencies.append(now - self._sent)
        if not self._buffer.startswith(b"HTTP/1.1 2"):
            self.errors += 1
        self._buffer.clear()
        if now < self._stop_at:
            self._send()
        else:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)

    def _complete(self) -> bool:
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return False
        start = self._buffer.lower().find(b"content-length:", 0, head)
        end = self._buffer.find(b"\r\n", start)
        return len(self._buffer) >= head + 4 + int(self._buffer[start + 15 : end])

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self.errors += 1
            self._done.set_result(None)


async def _run(host: str, port: int, request: bytes, connections: int, seconds: float) -> Result:
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    started = time.perf_counter()
    made = []
    for _ in range(connections):
        done = loop.create_future()
        _, protocol = await loop.create_connection(
            lambda done=done: _Connection(request, latencies, started + seconds, done), host, port
        )
        made.append((protocol, done))
    await asyncio.gather(*(done for _, done in made))
    elapsed = time.perf_counter() - started
    latencies.sort()
    pick = lambda share: latencies[int(share * (len(latencies) - 1))] * 1000  # noqa: E731
    errors = sum(protocol.errors for protocol, _ in made)
    return Result(len(latencies) / elapsed, pick(0.5), pick(0.99), errors)


def raw_request(path: str, token: str | None = None) -> str:
    """A GET request as bytes on the wire."""
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n{authorization}\r\n"


async def load(port: int, path: str, *, token: str | None = None, connections: int, seconds: float) -> Result:
    """Drive the load from a process of its own."""
    argument = json.dumps([port, raw_request(path, token), connections, seconds])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import sys; from tests.benchmarks.load import main; main(sys.argv[1:])"),
        argument,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return Result(**json.loads(output))


def main(arguments: Sequence[str]) -> None:
    """One run, described by a JSON list; prints the result as JSON."""
    port, request, connections, seconds = json.loads(arguments[0])
    result = uvloop.run(_run("127.0.0.1", port, request.encode(), connections, seconds))
    print(json.dumps(asdict(result)))
