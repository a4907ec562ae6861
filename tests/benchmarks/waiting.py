"""What a person waits for, over HTTP: this checkout, and beside it an earlier one, in turns on one machine.

    python -m tests.benchmarks.waiting [--before CHECKOUT] [--rounds N] [PART ...]

The earlier checkout has its own environment (`./setup.sh --version` makes it). Both serve with all their
plugins and are measured from outside alone. The parts `start`, `health`, `lists` and `token` use 100,000
passages in 10,000 documents; their vectors are random and come from an endpoint, so that no model is part
of it. `few`, `many` and `document` use the default model, the first two with B21's paragraphs and questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import aiohttp
import numpy as np
import psutil
from aiohttp import web

from tests.benchmarks.asking import CLIENTS, Asker, asker, crowd, labelled, milliseconds
from tests.benchmarks.load import load
from tests.benchmarks.parsing import PAGES, pdf
from tests.benchmarks.serving import Served, account, platform
from tests.benchmarks.table import machine
from tests.benchmarks.texts import article

DOCUMENTS = 10_000
PARAGRAPHS = 18
"""Of each of these documents: ten passages."""
BASES = 8_679
DIMENSION = 384
MORE_TEXTS = 8_889
_SHORT = 300
STARTS = 3
IDLE_SECONDS = 60.0
SETTLE = 20.0
SECONDS = 3.0
"""Of each load."""
LONGEST_WAIT = 300.0
Figures = dict[str, list[float]]

GOALS = {
    "start of serve, s": "<= 2",
    "first search after a restart, 100,000 passages, s": "<= 0.5",
    "/health, requests/s": ">= 3,000",
    "/readyz, requests/s": ">= 3,000",
    "10 of 8,679 knowledge bases, requests/s": "as with 10",
    "documents at offset 9,000, ms": "3 for its SQL",
    "access token more than a session's, µs": "<= 15",
    "idle, % of a core": "<= 0.5",
    "an answer, 1,111 passages, p50, ms": "<= 40",
    "an answer, 1,111 passages, p99, ms": "<= 100",
    "an answer, 10,000 passages, p50, ms": "<= 50",
    "answers to 8 clients, 10,000 passages, /s": ">= 30",
    "300-page PDF, last page found, s": "<= 5",
}


@dataclass
class Version:
    """A checkout under measurement, with homes in `folder`.

    `asked` has the knowledge base and pipeline of each home that was filled.
    """

    checkout: Path | None
    folder: Path
    endpoint: str
    asked: dict[str, tuple[str, str]] = field(default_factory=dict)

    @asynccontextmanager
    async def client(self, home: str) -> AsyncIterator[tuple[Served, aiohttp.ClientSession]]:
        """Its platform with this home, and someone who is signed in."""
        model = {"url": self.endpoint, "dimension": DIMENSION, "batch": 256}
        env = {
            "PLATFORM_EMBEDDINGS_MODELS": json.dumps({"random": model}),
            "PLATFORM_OUTGOING_ALLOWED": "127.0.0.1",
        }
        async with platform(self.folder / home, env=env, checkout=self.checkout) as served:
            headers = {"Authorization": f"Bearer {await account(served)}"}
            timeout = aiohttp.ClientTimeout(LONGEST_WAIT)
            async with aiohttp.ClientSession(served.url, headers=headers, timeout=timeout) as session:
                yield served, session

    @asynccontextmanager
    async def filled(
        self, home: str, texts: Callable[[], list[str]], model: str | None = None
    ) -> AsyncIterator[tuple[Served, Asker]]:
        """The same, with a document for each text, made the first time."""
        if home not in self.asked:
            async with self.client(home) as (_, session):
                made = await asker(session, texts(), model)
            self.asked[home] = (made.base, made.pipeline)
        async with self.client(home) as (served, session):
            yield served, Asker(session, *self.asked[home])

    def large(self) -> AbstractAsyncContextManager[tuple[Served, Asker]]:
        """100,000 passages."""
        texts = lambda: [article(number, PARAGRAPHS) for number in range(DOCUMENTS)]  # noqa: E731
        return self.filled("large", texts, "random")


@asynccontextmanager
async def random_vectors() -> AsyncIterator[str]:
    """The address of an endpoint with `/v1/embeddings` that answers random vectors."""
    chance = np.random.default_rng(1)

    async def embeddings(request: web.Request) -> web.Response:
        vectors = chance.normal(size=(len((await request.json())["input"]), DIMENSION)).round(3)
        data = [{"index": at, "embedding": one.tolist()} for at, one in enumerate(vectors)]
        return web.json_response({"object": "list", "data": data, "model": "random"})

    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/embeddings", embeddings)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def start(version: Version) -> Figures:
    """Starts with that many passages, and the first search of each."""
    figures: Figures = defaultdict(list)
    async with version.large():
        pass
    for _ in range(STARTS):
        async with version.large() as (served, asked):
            began = time.perf_counter()
            assert (await asked.search("Which museum in Ghent restores a bridge?"))["items"]
            figures["first search after a restart, 100,000 passages, s"].append(time.perf_counter() - began)
            figures["start of serve, s"].append(served.seconds_to_health)
            own = psutil.Process(served.process.pid).memory_full_info().uss / 1e6
            figures["API process's own memory after it, MB"].append(own)
    return figures


async def health(version: Version) -> Figures:
    figures: Figures = {}
    async with version.large() as (served, _):
        for path in ("/health", "/readyz"):
            result = await load(served.port, path, connections=CLIENTS, seconds=SECONDS)
            figures[f"{path}, requests/s"] = [result.rate]
            figures[f"{path}, p99, ms"] = [result.p99]
    return figures


async def lists(version: Version) -> Figures:
    figures: Figures = {}
    async with version.client("lists") as (served, session):
        for number in range(BASES):
            if number == 10:
                figures["10 of 10 knowledge bases, requests/s"] = [await _list_rate(served, session)]
            async with session.post("/v1/rag/knowledge-bases", json={"name": f"base {number}"}) as answer:
                assert answer.status < 300, await answer.text()
        figures["10 of 8,679 knowledge bases, requests/s"] = [await _list_rate(served, session)]
    async with version.large() as (served, asked):
        deep = f"/v1/rag/knowledge-bases/{asked.base}/documents?limit=50&offset=9000"
        result = await load(served.port, deep, token=_token(asked.session), connections=1, seconds=SECONDS)
        figures["documents at offset 9,000, ms"] = [result.p50]
    return figures


async def _list_rate(served: Served, session: aiohttp.ClientSession) -> float:
    path = "/v1/rag/knowledge-bases?limit=10"
    token = _token(session)
    return (await load(served.port, path, token=token, connections=CLIENTS, seconds=SECONDS)).rate


def _token(session: aiohttp.ClientSession) -> str:
    return session.headers["Authorization"].split()[1]


async def token(version: Version) -> Figures:
    """Processor time of the API for a request with an access token, less that with a session's token."""
    async with version.large() as (served, asked):
        async with asked.session.post("/v1/auth/tokens", json={"name": f"bench {time.time()}"}) as answer:
            tokens = (_token(asked.session), str((await answer.json())["token"]))
        process, spent = psutil.Process(served.process.pid), defaultdict[str, list[float]](list)
        for _ in range(4):
            for one in tokens:
                before = _seconds(process)
                result = await load(served.port, "/v1/permissions", token=one, connections=4, seconds=SECONDS)
                assert not result.errors
                spent[one].append((_seconds(process) - before) / (result.rate * result.seconds) * 1e6)
    ours, theirs = (median(spent[one]) for one in tokens)
    return {"access token more than a session's, µs": [theirs - ours]}


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def idle(version: Version) -> Figures:
    async with version.client("idle") as (served, _):
        await asyncio.sleep(SETTLE)
        root = psutil.Process(served.process.pid)
        processes = [root, *root.children(recursive=True)]
        before = sum(map(_seconds, processes))
        await asyncio.sleep(IDLE_SECONDS)
        return {"idle, % of a core": [100 * (sum(map(_seconds, processes)) - before) / IDLE_SECONDS]}


async def few(version: Version) -> Figures:
    return await _answers(version, "few", 0)


async def many(version: Version) -> Figures:
    return await _answers(version, "many", MORE_TEXTS)


async def _answers(version: Version, home: str, more: int) -> Figures:
    paragraphs, cases = labelled()
    others = lambda: [article(at, 2)[:_SHORT] for at in range(more)]  # noqa: E731
    async with version.filled(home, lambda: paragraphs + others()) as (_, asked):
        await asked.answer(cases[0].question)
        took = [await milliseconds(asked.answer, case.question) for case in cases]
        right, seconds = await crowd(asked, cases)
    size = f"{len(paragraphs) + more:,} passages"
    return {
        f"an answer, {size}, p50, ms": [float(np.percentile(took, 50))],
        f"an answer, {size}, p99, ms": [float(np.percentile(took, 99))],
        f"answers to {CLIENTS} clients, {size}, /s": [len(cases) / seconds],
        f"right answers, {size}, share": [right / len(cases)],
    }


async def document(version: Version) -> Figures:
    """A long PDF, until its last page is found, and until all of it is read; not a number after a while."""
    last = "The walrus at Tromsø eats 25 kilos of mussels a day."
    async with version.client("document") as (_, session):
        asked = await asker(session, ["A first text, which loads the engine."])
        path = f"/v1/rag/knowledge-bases/{asked.base}"
        form = aiohttp.FormData()
        form.add_field("file", pdf(PAGES, last), filename="long.pdf")
        began = time.perf_counter()
        async with session.post(f"{path}/upload", data=form) as answer:
            upload = (await answer.json())["document_id"]
        last_page = read = math.nan
        while (math.isnan(last_page) or math.isnan(read)) and time.perf_counter() - began < LONGEST_WAIT:
            if math.isnan(last_page):
                items = (await asked.search(last))["items"]
                if any(item["page"] == PAGES for item in items[:1]):
                    last_page = time.perf_counter() - began
            async with session.get(f"{path}/documents/{upload}") as answer:
                if (await answer.json())["status"] == "completed":
                    read = time.perf_counter() - began
            await asyncio.sleep(0.2)
    return {f"{PAGES}-page PDF, last page found, s": [last_page], f"{PAGES}-page PDF, read, s": [read]}


PARTS: dict[str, Callable[[Version], Awaitable[Figures]]] = {
    part.__name__: part for part in (start, health, lists, token, idle, few, many, document)
}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--before", type=Path, help="an earlier checkout with an environment")
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("parts", nargs="*")
    given = options.parse_args()
    checkouts = {"before": given.before.resolve()} if given.before else {}
    figures: dict[str, Figures] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        async with random_vectors() as endpoint:
            versions = {
                name: Version(checkout, Path(folder) / name, endpoint)
                for name, checkout in {**checkouts, "now": None}.items()
            }
            for number in range(given.rounds):
                for part in given.parts or PARTS:
                    for name, version in versions.items():
                        for what, values in (await PARTS[part](version)).items():
                            figures[what][name] += values
                        _say(f"round {number}, {part}, {name}: load {os.getloadavg()[0]:.1f}")
    print(f"{machine()}\n")
    print("| What |", *(f"{name} |" for name in versions), "Goal |")
    print("| --- |", *("--- |" for _ in versions), "--- |")
    for what, by_version in figures.items():
        cells = (", ".join(f"{value:.3g}" for value in by_version[name]) for name in versions)
        print(f"| {what} |", *(f"{cell} |" for cell in cells), f"{GOALS.get(what, '')} |")


if __name__ == "__main__":
    asyncio.run(main())
