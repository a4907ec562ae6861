"""B15: 50 visitors of one published chat at once, streaming, with the general limits as they are.

The visitors come from 50 addresses, through a trusted proxy, and each words the question differently, because
the same question would be embedded once for all who wait. The model is a script; its answers don't tick in
step, as no model's do. Visitors and model stand for other machines: each has its own process, which
gives way to the server and to what measures it (`nice`). What the machine itself costs beside them is shown
by a bare aiohttp handler in one more process, which is asked in the server's place in the second round.

python -m tests.benchmarks.visitors
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.benchmarks.load import load
from tests.benchmarks.serving import Served, account, bare, free_port, platform, process_of
from tests.benchmarks.table import Row, print_table

VISITORS = 50
PIECES = 60
PAUSE = 0.1
ORIGIN = "https://www.example.org"
HANDBOOK = "# Travel handbook\n\nA hotel may cost up to 130 EUR a night. Breakfast is paid by the company.\n"
QUESTION = "How much may a hotel cost per night, asks {}?"
POLITE = "10"
RUNTIME = """
import asyncio, json, random, sys, uvloop
from aiohttp import web

def chunk(text, reason=None):
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": reason}
    said = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(said).encode() + b"\\n\\n"

async def chat(request):
    await request.read()
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(chunk("A hotel may cost up to 130 EUR a night [1]. "))
    for _ in range(int(sys.argv[2])):
        await asyncio.sleep(float(sys.argv[3]) * random.uniform(0.5, 1.5))
        await response.write(chunk("word "))
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


@dataclass
class Visit:
    """What one visitor got: the statuses, seconds to the first piece, whether the answer was whole."""

    statuses: list[int]
    first: float = 0.0
    whole: bool = False


@asynccontextmanager
async def runtime() -> AsyncIterator[Served]:
    port = free_port()
    command = ["nice", "-n", POLITE, sys.executable, "-c", RUNTIME, str(port), str(PIECES), str(PAUSE)]
    async with process_of(command, dict(os.environ), port, "/v1/models") as served:
        yield served


async def publish(session: aiohttp.ClientSession, token: str) -> None:
    """A knowledge base with one document, and a chat over it."""
    headers = {"Authorization": f"Bearer {token}"}

    async def post(path: str, **options: Any) -> dict[str, Any]:
        async with session.post(path, headers=headers, **options) as answer:
            assert answer.status < 300, await answer.text()
            return dict(await answer.json())

    base = (await post("/v1/rag/knowledge-bases", json={"name": "b", "llm_model": "m"}))["id"]
    form = aiohttp.FormData()
    form.add_field("file", HANDBOOK.encode(), filename="handbook.md")
    document = (await post(f"/v1/rag/knowledge-bases/{base}/upload", data=form))["document_id"]
    path = f"/v1/rag/knowledge-bases/{base}/documents/{document}"
    status = "processing"
    while status == "processing":
        await asyncio.sleep(0.2)
        async with session.get(path, headers=headers) as answer:
            status = (await answer.json())["status"]
    assert status == "completed"
    pipeline = await post("/v1/rag/pipeline", json={"name": "p", "knowledge_base_ids": [base]})
    chat = {"name": "b", "slug": "b", "allowed_origins": ORIGIN, "rate_limit_per_minute": 600}
    await post("/v1/rag/endpoints", json={**chat, "pipeline_id": pipeline["pipeline_id"]})


def question_of(number: int) -> str:
    """This visitor's question. It has no digits: they would make it look like a search for an identifier."""
    return QUESTION.format("".join(chr(ord("a") + int(digit)) for digit in str(number)))


async def visit(session: aiohttp.ClientSession, number: int, begun: asyncio.Semaphore) -> Visit:
    """Load the page's data and the widget, begin a session, ask, read the stream, rate the answer."""
    headers = {"Origin": ORIGIN, "X-Forwarded-For": f"198.51.100.{number + 1}"}
    made = Visit([])
    for path in ("/v1/chat/b/widget.js", "/v1/chat/b"):
        async with session.get(path, headers=headers) as answer:
            made.statuses.append(answer.status)
    async with session.post("/v1/chat/b/session", headers=headers) as answer:
        made.statuses.append(answer.status)
        headers["Authorization"] = f"Bearer {(await answer.json()).get('token')}"
    asked, turn = time.perf_counter(), 0
    streaming = {**headers, "Accept": "text/event-stream"}
    body = {"question": question_of(number)}
    async with session.post("/v1/chat/b/messages", json=body, headers=streaming) as answer:
        made.statuses.append(answer.status)
        async for line in answer.content:
            if not made.first and line.startswith(b"data: "):
                made.first = time.perf_counter() - asked
                begun.release()
            if line.startswith(b'data: {"turn_id"'):
                turn, made.whole = json.loads(line[6:])["turn_id"], True
    rating = {"turn_id": turn or 1, "rating": "up"}
    async with session.post("/v1/chat/b/feedback", json=rating, headers=headers) as answer:
        made.statuses.append(answer.status)
    return made


class Crowd:
    """Visitors in their own process, which are there and wait to be let in."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._asked = process.stdin
        self._said = process.stdout

    @classmethod
    async def gather(cls, url: str, first: int) -> Crowd:
        command = ("nice", "-n", POLITE, sys.executable, "-m", "tests.benchmarks.visitors", url, str(first))
        pipe = asyncio.subprocess.PIPE
        crowd = cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))
        await crowd._said.readline()
        return crowd

    def come(self) -> None:
        self._asked.write(b"come\n")

    async def all_begun(self) -> None:
        await self._said.readline()

    async def visits(self) -> list[Visit]:
        output, _ = await self._process.communicate()
        return [Visit(**one) for one in json.loads(output.splitlines()[-1])]


async def be_a_crowd(url: str, first: int) -> None:
    """What the process does: a line when it is ready, one when all have begun, then the visits."""
    begun = asyncio.Semaphore(0)
    limits = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, connector=limits) as session:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        numbers = range(first, first + VISITORS)
        visits = asyncio.gather(*(visit(session, number, begun) for number in numbers))
        for _ in range(VISITORS):
            await begun.acquire()
        print("begun", flush=True)
        print(json.dumps([asdict(one) for one in await visits]))


P99 = Callable[..., Coroutine[Any, Any, float]]


async def burst(p99: P99, url: str, first: int) -> tuple[float, list[Visit]]:
    """The p99 of ten seconds in which all visitors come, and what they got."""
    crowd, asking = await Crowd.gather(url, first), asyncio.Event()
    throughout = asyncio.create_task(p99(10, asking))
    await asking.wait()
    crowd.come()
    opening = await throughout
    return opening, await crowd.visits()


async def measure(served: Served, control: Served, session: aiohttp.ClientSession, token: str) -> list[Row]:
    """The visitors, and another route idle and beside them."""

    async def p99(seconds: float = 4, begun: asyncio.Event | None = None) -> float:
        path = "/v1/permissions"
        found = await load(
            served.port, path, token=token, connections=4, seconds=seconds, rate=100, begun=begun
        )
        return found.p99

    async def bare_p99(seconds: float = 4, begun: asyncio.Event | None = None) -> float:
        found = await load(control.port, "/bare", connections=4, seconds=seconds, rate=100, begun=begun)
        return found.p99

    await visit(session, 200, asyncio.Semaphore(0))  # loads what is loaded once
    idle, alone = await p99(10), await bare_p99(10)
    opening, made = await burst(p99, served.url, 0)
    beside, more = await burst(bare_p99, served.url, 50)
    crowd = await Crowd.gather(served.url, 100)
    crowd.come()
    await crowd.all_begun()
    busy = await p99()
    made += [*more, *await crowd.visits()]
    refused = [status for one in made for status in one.statuses if status >= 400]
    firsts = sorted(one.first * 1000 for one in made)
    whole = sum(one.whole for one in made)
    told = f"p50 {firsts[len(firsts) // 2]:.0f} ms, p99 {firsts[-1]:.0f} ms"
    rows = [
        Row("B15", f"{VISITORS} visitors, three times: refused", str(len(refused)), "0", not refused),
        Row("B15", "all visitors: whole answers", str(whole), str(len(made)), whole == len(made)),
        Row("B15", "first piece", told, "-", True),
    ]
    for what, found, first, budget in (
        ("another route's p99, all to come at once included", opening, idle, 3),
        ("another route's p99 beside the streams", busy, idle, 3),
        ("a bare handler's p99 in its own process, all to come at once", beside, alone, None),
    ):
        figure = f"{found / first:.1f} x idle ({found:.1f} ms against {first:.1f} ms)"
        wanted = "-" if budget is None else f"< {budget} x"
        rows.append(Row("B15", what, figure, wanted, budget is None or found < budget * first))
    return rows


async def main() -> None:
    limits = aiohttp.TCPConnector(limit=0)
    with tempfile.TemporaryDirectory() as name:
        async with runtime() as model:
            env = {
                "OPENAI_BASE_URL": model.url,
                "RATE_LIMIT_PER_MINUTE": "60",
                "TRUSTED_PROXY_CIDRS": "127.0.0.0/8",
            }
            async with (
                platform(Path(name) / "home", env=env) as served,
                bare(b"{}" * 100, Path(name)) as control,
                aiohttp.ClientSession(served.url, connector=limits) as session,
            ):
                token = await account(served)
                await publish(session, token)
                print_table(await measure(served, control, session, token))


if __name__ == "__main__":
    asyncio.run(be_a_crowd(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 2 else main())
