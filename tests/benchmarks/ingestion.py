"""B5 and B6: ingestion against the engine's own rate, and what the API feels of it (design.md section 4).

python -m tests.benchmarks.ingestion
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import psutil

from tests.benchmarks.load import load
from tests.benchmarks.serving import Served, account, platform
from tests.benchmarks.table import Row, print_table
from tests.benchmarks.texts import article

DOCUMENTS = 6
PARAGRAPHS = 260

_ENGINE = """
import sys, json, time
from builtin_plugins.embeddings.catalog import MINILM
from builtin_plugins.embeddings.service import load_engine
from builtin_plugins.embeddings.settings import EmbeddingsSettings
texts = json.load(open(sys.argv[1]))
engine = load_engine(MINILM, EmbeddingsSettings(engine=sys.argv[2], precision=sys.argv[3]))
engine.encode(texts[:32])
started = time.perf_counter()
for at in range(0, len(texts), 96):
    engine.encode(texts[at : at + 96])
print(len(texts) / (time.perf_counter() - started))
"""


async def ingestion(folder: Path) -> list[Row]:
    """Upload to `completed`, beside the engines on the very same chunks."""
    async with platform(folder / "home") as served:
        token = await account(served)
        async with aiohttp.ClientSession(served.url, headers={"Authorization": f"Bearer {token}"}) as session:
            base = await _base(session)
            await _ingest(session, base, 900, 1)
            idle = await load(served.port, "/v1/permissions", token=token, connections=4, seconds=4)
            memory = _Peak(served)
            started = time.perf_counter()
            watching = asyncio.create_task(memory.watch())
            busy_load = asyncio.create_task(
                load(served.port, "/v1/permissions", token=token, connections=4, seconds=8)
            )
            await _ingest(session, base, 0, 1)
            busy = await busy_load
            started = time.perf_counter()
            await _ingest(session, base, 100, DOCUMENTS)
            seconds = time.perf_counter() - started
            watching.cancel()
            chunks = await _chunks(session, base, 100)
    own, plain = (
        await engine_rate(folder, chunks, "auto", "auto"),
        await engine_rate(folder, chunks, "sentence-transformers", "fp32"),
    )
    rate = len(chunks) / seconds
    return [
        Row(
            "B5",
            "ingestion against the engine",
            f"{rate / own:.2f} ({rate:.0f} of {own:.0f} chunks/s)",
            ">= 0.9",
            rate >= 0.9 * own,
        ),
        Row(
            "B5",
            "ingestion against fp32",
            f"{rate / plain:.2f} ({plain:.0f} chunks/s)",
            ">= 1.8",
            rate >= 1.8 * plain,
        ),
        Row("B5", "worker's peak memory", f"{memory.peak:.0f} MB", "bounded", memory.peak < 2048),
        Row(
            "B6",
            "API p99 during ingestion",
            f"{busy.p99 / idle.p99:.1f} x idle ({busy.p99:.1f} ms)",
            "< 5 x",
            busy.p99 < 5 * idle.p99,
        ),
    ]


class _Peak:
    """The largest resident memory of the server's processes."""

    def __init__(self, served: Served) -> None:
        self._process = psutil.Process(served.process.pid)
        self.peak = 0.0

    async def watch(self) -> None:
        while True:
            for child in self._process.children():
                self.peak = max(self.peak, child.memory_info().rss / 2**20)
            await asyncio.sleep(0.2)


async def _base(session: aiohttp.ClientSession) -> str:
    async with session.post("/v1/rag/knowledge-bases", json={"name": "bench"}) as answer:
        return str((await answer.json())["id"])


async def _ingest(session: aiohttp.ClientSession, base: str, first: int, count: int) -> None:
    for number in range(first, first + count):
        form = aiohttp.FormData()
        form.add_field("file", article(number, PARAGRAPHS).encode(), filename=f"{number}.txt")
        async with session.post(f"/v1/rag/knowledge-bases/{base}/upload", data=form) as answer:
            assert answer.status == 202, await answer.text()
    while True:
        path = f"/v1/rag/knowledge-bases/{base}/documents?status=processing"
        async with session.get(path) as answer:
            if not (await answer.json())["total"]:
                return
        await asyncio.sleep(0.1)


async def _chunks(session: aiohttp.ClientSession, base: str, first: int) -> list[str]:
    texts: list[str] = []
    async with session.get(f"/v1/rag/knowledge-bases/{base}/documents") as answer:
        documents = [d for d in (await answer.json())["items"] if first <= int(d["filename"][:-4]) < 900]
    for document in documents:
        for offset in range(0, document["chunk_count"], 500):
            path = f"/v1/rag/knowledge-bases/{base}/documents/{document['document_id']}/chunks"
            async with session.get(path, params={"limit": 500, "offset": offset}) as answer:
                texts += [chunk["text"] for chunk in (await answer.json())["items"]]
    return texts


async def engine_rate(folder: Path, texts: list[str], engine: str, precision: str) -> float:
    """Passages a second of an engine alone, in a process of its own."""
    import json

    file = folder / "chunks.json"
    file.write_text(json.dumps(texts))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _ENGINE, str(file), engine, precision), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return float(output.decode().split()[-1])


async def main() -> None:
    """B5 and B6."""
    with tempfile.TemporaryDirectory() as name:
        print_table(await ingestion(Path(name)))


if __name__ == "__main__":
    asyncio.run(main())
