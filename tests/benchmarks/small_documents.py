"""B20: many small text files, from the first upload to the last `completed`, against the engine's own rate.

python -m tests.benchmarks.small_documents [FILES]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import psutil

from tests.benchmarks.ingestion import engine_alone
from tests.benchmarks.serving import Served, account, platform
from tests.benchmarks.table import Row, print_table
from tests.benchmarks.texts import article

FILES = 2_000
CONNECTIONS = 8
_CHARS = 1_024
_MODEL = "multilingual-e5-small"


async def small_documents(folder: Path, files: int) -> list[Row]:
    """Upload `files` files over a few connections, and wait until none is being processed."""
    texts = [article(number, 4)[:_CHARS].strip() for number in range(files)]
    async with engine_alone(folder, _MODEL, "auto", "auto") as engine, platform(folder / "home") as served:
        token = await account(served)
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(served.url, headers=headers) as session:
            base = await _base(session)
            await upload_all(session, base, ["A first text, which loads the engine."])
            await settled(session, base)
            before = await engine.seconds(texts[: files // 2])
            watched = Watched(served)
            started = time.perf_counter()
            await upload_all(session, base, texts)
            uploaded = time.perf_counter() - started
            await settled(session, base)
            seconds = time.perf_counter() - started
            shares = watched.milliseconds(files)
            peak = watched.peak
            passages = await _passages(session, base)
        # Half of them before and half after: the machine's speed may have changed meanwhile.
        own = len(passages) / (before + await engine.seconds(passages[len(passages) // 2 :]))
    rate = len(passages) / seconds
    return [
        Row(
            "B20",
            f"{files} files of 1 KB against the engine",
            f"{rate / own:.2f} ({files / seconds:.0f} files/s; {rate:.0f} of {own:.0f} passages/s)",
            ">= 0.8",
            rate >= 0.8 * own,
        ),
        Row("B20", "upload alone", f"{files / uploaded:.0f} files/s", "", True),
        Row("B20", "processor time per file", shares, "", True),
        Row("B20", "worker's peak memory", f"{peak:.0f} MB", "bounded", peak < 2048),
    ]


class Watched:
    """Processor time and memory of the server's processes from now on, by what they do."""

    def __init__(self, served: Served) -> None:
        api = psutil.Process(served.process.pid)
        children = api.children()
        self.worker = max(children, key=lambda child: child.memory_info().rss)
        self._processes = {"API": api, "worker": self.worker}
        self._before = {name: _seconds(process) for name, process in self._processes.items()}
        self._parsers_before = self._parsers()

    def milliseconds(self, files: int) -> str:
        spent = {name: _seconds(process) - self._before[name] for name, process in self._processes.items()}
        spent["parsers"] = self._parsers() - self._parsers_before
        return ", ".join(f"{name} {1000 * seconds / files:.1f} ms" for name, seconds in spent.items())

    @property
    def peak(self) -> float:
        """The most memory that the worker ever had, in megabytes."""
        status = Path(f"/proc/{self.worker.pid}/status").read_text("utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def _parsers(self) -> float:
        return sum(_seconds(child, ended=True) for child in self.worker.children(recursive=True))


def _seconds(process: psutil.Process, *, ended: bool = False) -> float:
    times = process.cpu_times()
    own = times.user + times.system
    return float(own + times.children_user + times.children_system if ended else own)


async def _base(session: aiohttp.ClientSession) -> str:
    body = {"name": "bench", "embedding_model": _MODEL}
    async with session.post("/v1/rag/knowledge-bases", json=body) as answer:
        return str((await answer.json())["id"])


async def upload_all(session: aiohttp.ClientSession, base: str, texts: list[str]) -> None:
    """A document for each text."""
    waiting = iter(enumerate(texts))

    async def some() -> None:
        for number, text in waiting:
            form = aiohttp.FormData()
            form.add_field("file", text.encode(), filename=f"{number}.txt")
            async with session.post(f"/v1/rag/knowledge-bases/{base}/upload", data=form) as answer:
                assert answer.status == 202, await answer.text()

    await asyncio.gather(*(some() for _ in range(CONNECTIONS)))


async def settled(session: aiohttp.ClientSession, base: str) -> None:
    """Until no document of the knowledge base is being processed."""
    path = f"/v1/rag/knowledge-bases/{base}/documents?status=processing&limit=1"
    while True:
        async with session.get(path) as answer:
            if not (await answer.json())["total"]:
                return
        await asyncio.sleep(0.1)


async def _passages(session: aiohttp.ClientSession, base: str) -> list[str]:
    texts: list[str] = []
    path = f"/v1/rag/knowledge-bases/{base}/documents"
    async with session.get(path) as answer:
        documents = (await answer.json())["items"]
    assert all(document["status"] == "completed" for document in documents)
    for document in documents:
        async with session.get(f"{path}/{document['document_id']}/chunks") as answer:
            texts += [chunk["text"] for chunk in (await answer.json())["items"]]
    return texts


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        print_table(await small_documents(Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else FILES))


if __name__ == "__main__":
    asyncio.run(main())
