"""B5 and B6: ingestion against the engine's own rate, and what the API feels of it (design.md section 4).

python -m tests.benchmarks.ingestion [MODEL]

The knowledge base and the engine beside it run the same MODEL, the default one unless named. Plain
sentence-transformers has only all-minilm, so other models go without the comparison with it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import psutil

from builtin_plugins.embeddings.catalog import E5_SMALL, MINILM
from tests.benchmarks.load import load
from tests.benchmarks.serving import Served, account, platform
from tests.benchmarks.table import Row, print_table
from tests.benchmarks.texts import article

DOCUMENTS = 4
PARAGRAPHS = 260
LONGER = 8
"""How many times as long the document is whose memory must not be much more."""

_ENGINE = """
import sys, json, time
from builtin_plugins.embeddings.catalog import find_model
from builtin_plugins.embeddings.service import load_engine
from builtin_plugins.embeddings.settings import EmbeddingsSettings
model = find_model(sys.argv[1])
engine = load_engine(model, EmbeddingsSettings(engine=sys.argv[2], precision=sys.argv[3]))
for file in sys.stdin:
    texts = [model.prefixes["passage"] + text for text in json.load(open(file.strip()))]
    started = time.perf_counter()
    for at in range(0, len(texts), 96):
        engine.encode(texts[at : at + 96])
    print(time.perf_counter() - started, flush=True)
"""


class EngineAlone:
    """An engine in its own process, loaded once and idle between two calls."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self._file = folder / "passages.json"

    async def seconds(self, texts: list[str]) -> float:
        """How long these passages take it, in batches of the size that ingestion has."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._file.write_text(json.dumps(texts))
        self._process.stdin.write(f"{self._file}\n".encode())
        return float(await self._process.stdout.readline())


@asynccontextmanager
async def engine_alone(folder: Path, model: str, engine: str, precision: str) -> AsyncIterator[EngineAlone]:
    command = (sys.executable, "-c", _ENGINE, model, engine, precision)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    alone = EngineAlone(process, folder)
    try:
        await alone.seconds([article(number, 1) for number in range(32)])
        yield alone
    finally:
        process.kill()
        await process.wait()


async def ingestion(folder: Path, model: str) -> list[Row]:
    """Upload to `completed`, beside the engines on the very same chunks."""
    async with platform(folder / "home") as served:
        token = await account(served)
        async with aiohttp.ClientSession(served.url, headers={"Authorization": f"Bearer {token}"}) as session:
            base = await _base(session, model)
            await _ingest(session, base, 900, 1)
            idle = await load(served.port, "/v1/permissions", token=token, connections=4, seconds=4)
            memory = _Peak(served)
            watching = asyncio.create_task(memory.watch())
            busy_load = asyncio.create_task(
                load(served.port, "/v1/permissions", token=token, connections=4, seconds=8)
            )
            await _ingest(session, base, 0, 1)
            busy = await busy_load
            rows = await _rates(session, base, folder, model)
            ordinary, memory.peak = memory.peak, 0.0
            await _ingest(session, base, 1_000, 1, PARAGRAPHS * LONGER)
            watching.cancel()
    return [
        *rows,
        Row(
            "B5",
            f"peak memory of API, worker and parsers; with a file {LONGER} times as long",
            f"{ordinary:.0f}; {memory.peak:.0f} MB",
            "<= 1.2 x",
            memory.peak <= 1.2 * ordinary,
        ),
        Row(
            "B6",
            "API p99 during ingestion",
            f"{busy.p99 / idle.p99:.1f} x idle ({busy.p99:.1f} ms)",
            "< 5 x",
            busy.p99 < 5 * idle.p99,
        ),
    ]


async def _rates(session: aiohttp.ClientSession, base: str, folder: Path, model: str) -> list[Row]:
    """In turn, so that a machine whose speed changes changes it for all: a document, then each engine."""
    spent, passages = {"ingestion": 0.0, "the engine": 0.0, "sentence-transformers fp32": 0.0}, 0
    async with AsyncExitStack() as stack:
        alone = {"the engine": await stack.enter_async_context(engine_alone(folder, model, "auto", "auto"))}
        if model == MINILM.name:
            plain = engine_alone(folder, model, "sentence-transformers", "fp32")
            alone["sentence-transformers fp32"] = await stack.enter_async_context(plain)
        for number in range(100, 100 + DOCUMENTS):
            started = time.perf_counter()
            await _ingest(session, base, number, 1)
            spent["ingestion"] += time.perf_counter() - started
            texts = await _chunks(session, base, number)
            passages += len(texts)
            for name, engine in alone.items():
                spent[name] += await engine.seconds(texts)
    rates = {name: passages / seconds for name, seconds in spent.items() if seconds}
    least = {"the engine": 0.9, "sentence-transformers fp32": 1.8}
    return [
        _against(f"ingestion with {model} against {name}", rates["ingestion"], rates[name], least[name])
        for name in alone
    ]


def _against(what: str, rate: float, other: float, least: float) -> Row:
    figure = f"{rate / other:.2f} ({rate:.1f} of {other:.1f} passages/s)"
    return Row("B5", what, figure, f">= {least}", rate >= least * other)


class _Peak:
    """The most memory that the server's processes had together; what they share counts once."""

    def __init__(self, served: Served) -> None:
        self._process = psutil.Process(served.process.pid)
        self.peak = 0.0

    async def watch(self) -> None:
        while True:
            own = 0.0
            for process in [self._process, *self._process.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):  # a parser that has just ended
                    own += process.memory_full_info().pss / 2**20
            self.peak = max(self.peak, own)
            await asyncio.sleep(0.2)


async def _base(session: aiohttp.ClientSession, model: str) -> str:
    body = {"name": "bench", "embedding_model": model}
    async with session.post("/v1/rag/knowledge-bases", json=body) as answer:
        return str((await answer.json())["id"])


async def _ingest(
    session: aiohttp.ClientSession, base: str, first: int, count: int, paragraphs: int = PARAGRAPHS
) -> None:
    for number in range(first, first + count):
        form = aiohttp.FormData()
        form.add_field("file", article(number, paragraphs).encode(), filename=f"{number}.txt")
        async with session.post(f"/v1/rag/knowledge-bases/{base}/upload", data=form) as answer:
            assert answer.status == 202, await answer.text()
    while True:
        path = f"/v1/rag/knowledge-bases/{base}/documents?status=processing"
        async with session.get(path) as answer:
            if not (await answer.json())["total"]:
                return
        await asyncio.sleep(0.1)


async def _chunks(session: aiohttp.ClientSession, base: str, number: int) -> list[str]:
    texts: list[str] = []
    async with session.get(f"/v1/rag/knowledge-bases/{base}/documents") as answer:
        documents = [d for d in (await answer.json())["items"] if d["filename"] == f"{number}.txt"]
    for document in documents:
        for offset in range(0, document["chunk_count"], 500):
            path = f"/v1/rag/knowledge-bases/{base}/documents/{document['document_id']}/chunks"
            async with session.get(path, params={"limit": 500, "offset": offset}) as answer:
                texts += [chunk["text"] for chunk in (await answer.json())["items"]]
    return texts


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        print_table(await ingestion(Path(name), sys.argv[1] if len(sys.argv) > 1 else E5_SMALL.name))


if __name__ == "__main__":
    asyncio.run(main())
