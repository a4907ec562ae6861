"""B16: what a chat through the platform costs beyond its model runtime.

The runtime is a script that stamps each piece with the clock, so that the time of passing one on is measured
piece by piece; all processes are on one machine and share the clock.

python -m tests.benchmarks.orchestrator
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import aiohttp
import psutil

from tests.benchmarks.load import load
from tests.benchmarks.serving import Served, account, free_port, platform, process_of
from tests.benchmarks.table import Row, print_table

CALLS = 200
STREAMS = 200
PIECES = 60
PAUSE = 0.1
RUNTIME = """
import asyncio, json, sys, time, uvloop
from aiohttp import web

def chunk(text, reason=None):
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": reason}
    said = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(said).encode() + b"\\n\\n"

async def chat(request):
    body = await request.json()
    if not body.get("stream"):
        message = {"role": "assistant", "content": "Fine."}
        usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
        return web.json_response({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    count, pause = map(float, body["messages"][-1]["content"].split())
    for _ in range(int(count)):
        await asyncio.sleep(pause)
        await response.write(chunk(f"{time.monotonic()} "))
    await response.write(chunk("", "stop") + b"data: [DONE]\\n\\n")
    await response.write_eof()
    return response

async def models(request):
    return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})

async def main():
    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(sys.argv[1])).start()
    await asyncio.Event().wait()

uvloop.run(main())
"""
READERS = """
import asyncio, json, sys, aiohttp, uvloop

url, token, count, content = sys.argv[1:]
body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": content}]}

async def read(session, begun):
    headers = {"Authorization": "Bearer " + token}
    async with session.post(url + "/chat/completions", json=body, headers=headers) as answer:
        assert answer.status == 200
        begun.release()
        last = b""
        async for piece in answer.content.iter_any():
            last = piece
        assert last.endswith(b"data: [DONE]\\n\\n"), last

async def main():
    begun = asyncio.Semaphore(0)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        streams = asyncio.gather(*(read(session, begun) for _ in range(int(count))))
        for _ in range(int(count)):
            await begun.acquire()
        print("begun", flush=True)
        await streams

uvloop.run(main())
"""
BESIDE = ["nice", "-n", "10"]


@dataclass(frozen=True)
class Way:
    """One way to the model: straight, or through the platform."""

    name: str
    url: str
    token: str = "none"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@asynccontextmanager
async def runtime() -> AsyncIterator[Served]:
    port = free_port()
    command = [sys.executable, "-c", RUNTIME, str(port)]
    async with process_of(command, dict(os.environ), port, "/v1/models") as served:
        yield served


async def plain(session: aiohttp.ClientSession, way: Way) -> float:
    """Milliseconds of one chat, one after the other, at the median."""
    body = {"model": "m", "messages": [{"role": "user", "content": "How are you?"}]}
    taken = []
    for _ in range(CALLS):
        started = time.perf_counter()
        async with session.post(f"{way.url}/chat/completions", json=body, headers=way.headers) as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()
        taken.append((time.perf_counter() - started) * 1000)
    return median(taken)


async def stream(session: aiohttp.ClientSession, way: Way, count: int, pause: float) -> list[float]:
    """For each piece the milliseconds from the model's clock to its arrival here."""
    content = f"{count} {pause}"
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": content}]}
    lags = []
    async with session.post(f"{way.url}/chat/completions", json=body, headers=way.headers) as answer:
        assert answer.status == 200, await answer.text()
        async for line in answer.content:
            arrived = time.monotonic()
            if not line.startswith(b"data: {"):
                continue
            choices = json.loads(line[6:])["choices"]
            text = (choices[0]["delta"].get("content") or "") if choices else ""
            if text.strip():
                lags.append((arrived - float(text)) * 1000)
    assert len(lags) == count, (way.name, len(lags))
    return lags


async def alone(session: aiohttp.ClientSession, ways: list[Way]) -> list[Row]:
    """One chat at a time: its time, and that of passing on the first piece and the others."""
    rows, straight = [], {}
    for way in ways:
        figures = {"plain chat, p50": await plain(session, way)}
        streams = [await stream(session, way, 5, 0.005) for _ in range(40)]
        figures["first piece passed on, p50"] = median(lags[0] for lags in streams)
        for what, figure in figures.items():
            base = straight.setdefault(what, figure)
            if way is ways[0]:
                continue
            adds = figure - base
            rows.append(Row("B16", what, f"{adds:.2f} ms beyond {base:.2f} ms", "< 2 ms", adds < 2))
    return rows


async def crowd(session: aiohttp.ClientSession, way: Way, process: psutil.Process) -> list[Row]:
    """Many streams at once: how far pieces lag, and what the process needs beyond idle."""
    idle, over = _memory(process), asyncio.Event()
    peak = asyncio.create_task(_peak(process, over))
    found = await asyncio.gather(*(stream(session, way, PIECES, PAUSE) for _ in range(STREAMS)))
    over.set()
    memory = await peak - idle
    lags = sorted(lag for lags in found for lag in lags)
    said = f"p50 {lags[len(lags) // 2]:.1f} ms, p99 {lags[len(lags) * 99 // 100]:.1f} ms"
    return [
        Row("B16", f"{STREAMS} streams at {1 / PAUSE:.0f} pieces/s, lag", said, "-", True),
        Row("B16", "memory beyond idle", f"{memory:.0f} MB", "< 150 MB", memory < 150),
    ]


def _memory(process: psutil.Process) -> float:
    every = [process, *process.children(recursive=True)]
    return sum(one.memory_info().rss for one in every) / 2**20


async def _peak(process: psutil.Process, over: asyncio.Event) -> float:
    most = 0.0
    while not over.is_set():
        most = max(most, _memory(process))
        await asyncio.sleep(0.2)
    return most


@asynccontextmanager
async def streams_beside(way: Way) -> AsyncIterator[None]:
    """All the streams under way, read by their own process."""
    arguments = [way.url, way.token, str(STREAMS), f"{PIECES} {PAUSE}"]
    readers = await asyncio.create_subprocess_exec(
        *BESIDE, sys.executable, "-c", READERS, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert readers.stdout is not None
    assert await readers.stdout.readline() == b"begun\n"
    yield
    assert await readers.wait() == 0


async def others(served: Served, way: Way, model: Served) -> Row:
    """The p99 of another route, idle and beside the streams, at the median of three times.

    Who reads the streams and who sends them would be other machines: they leave the processor to the
    platform and to the process that measures it.
    """

    async def p99() -> float:
        found = await load(
            served.port, "/v1/permissions", token=way.token, connections=4, seconds=4, rate=100
        )
        return found.p99

    psutil.Process(model.process.pid).nice(10)
    figures = []
    for _ in range(3):
        idle = await p99()
        async with streams_beside(way):
            busy = await p99()
        figures.append((busy / idle, busy, idle))
    times, busy, idle = sorted(figures)[1]
    said = f"{times:.1f} x idle ({busy:.1f} ms against {idle:.1f} ms)"
    return Row("B16", "another route's p99 beside the streams", said, "< 3 x", times < 3)


async def main() -> None:
    limits = aiohttp.TCPConnector(limit=0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with runtime() as model, aiohttp.ClientSession(connector=limits) as session:
            env = {"OPENAI_BASE_URL": model.url, "OLLAMA_LLM_MODEL": "m"}
            async with platform(folder / "home", "--no-worker", env=env) as served:
                ours = Way("platform", f"{served.url}/v1/ai", await account(served))
                straight = Way("straight", f"{model.url}/v1")
                rows = await alone(session, [straight, ours])
                rows += await crowd(session, ours, psutil.Process(served.process.pid))
                rows.append(await others(served, ours, model))
    print_table(rows)


if __name__ == "__main__":
    asyncio.run(main())
