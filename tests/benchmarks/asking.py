"""B21: searches and answers without a model over HTTP, by a server in its own process with all its plugins.

The paragraphs are the real ones of `answer_sets` in ten languages, embedded by the default model; every
question is answered by one of them. More passages can be had with articles that are about something else.

python -m tests.benchmarks.asking [PASSAGES]
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from tests.benchmarks.answer_sets import Case, collections
from tests.benchmarks.serving import account, platform
from tests.benchmarks.small_documents import settled, upload_all
from tests.benchmarks.table import Row, print_table
from tests.benchmarks.texts import article

QUESTIONS = 200
CLIENTS = 8
_CHARS = 1_400
_BUDGETS = {"search": (20, 60), "answer without a model": (40, 100)}
"""p50 and p99 in milliseconds, one question at a time."""
_LEAST_RATE = 30
"""Answers a second to several clients."""


@dataclass(frozen=True)
class Asker:
    """A knowledge base on a running server, and a pipeline over it."""

    session: aiohttp.ClientSession
    base: str
    pipeline: str

    async def search(self, question: str) -> dict[str, Any]:
        return await self._post(f"/v1/rag/knowledge-bases/{self.base}/search", question)

    async def answer(self, question: str) -> dict[str, Any]:
        return await self._post(f"/v1/rag/pipeline/{self.pipeline}/query", question)

    async def _post(self, path: str, question: str) -> dict[str, Any]:
        async with self.session.post(path, json={"question": question}) as answer:
            assert answer.status == 200, await answer.text()
            return dict(await answer.json())


async def asker(session: aiohttp.ClientSession, texts: list[str], model: str | None = None) -> Asker:
    """A knowledge base by that model or the default one, a document for each text, and a pipeline over it."""
    named = {"name": "bench"} if model is None else {"name": "bench", "embedding_model": model}
    async with session.post("/v1/rag/knowledge-bases", json=named) as answer:
        base = str((await answer.json())["id"])
    await upload_all(session, base, texts)
    await settled(session, base)
    body = {"name": "bench", "knowledge_base_ids": [base]}
    async with session.post("/v1/rag/pipeline", json=body) as answer:
        return Asker(session, base, str((await answer.json())["pipeline_id"]))


def labelled() -> tuple[list[str], list[Case]]:
    """The paragraphs, each once, and some questions that they answer in words that are known."""
    sets = list(collections())
    paragraphs = dict.fromkeys(text for one in sets for text in one.paragraphs)
    cases = [case for one in sets for case in one.cases if case.kind == "there" and case.expected]
    return list(paragraphs), random.Random(0).sample(cases, QUESTIONS)


async def asking(folder: Path, passages: int) -> list[Row]:
    paragraphs, cases = labelled()
    others = [article(number, 4)[:_CHARS] for number in range(passages - len(paragraphs))]
    async with platform(folder / "home") as served:
        headers = {"Authorization": f"Bearer {await account(served)}"}
        async with aiohttp.ClientSession(served.url, headers=headers) as session:
            asked = await asker(session, paragraphs + others)
            rows = list[Row]()
            size = f"{len(paragraphs) + len(others):,} passages"
            for (what, (p50, p99)), call in zip(_BUDGETS.items(), (asked.search, asked.answer), strict=True):
                await call(cases[0].question)
                took = [await milliseconds(call, case.question) for case in cases]
                rows += [_within(f"{what}, {size}, p{n}", np.percentile(took, n), most)
                         for n, most in ((50, p50), (99, p99))]  # fmt: skip
            right, seconds = await crowd(asked, cases)
    rate = len(cases) / seconds
    return [
        *rows,
        Row("B21", f"answers to {CLIENTS} clients, {size}", f"{rate:.0f}/s", f">= {_LEAST_RATE}/s",
            rate >= _LEAST_RATE),
        Row("B21", "the expected words are in the answer", f"{right / len(cases):.2f}", "-", True),
    ]  # fmt: skip


async def milliseconds(call: Callable[[str], Awaitable[Any]], question: str) -> float:
    started = time.perf_counter()
    await call(question)
    return 1000 * (time.perf_counter() - started)


def _within(what: str, figure: float, most: float) -> Row:
    return Row("B21", what, f"{figure:.1f} ms", f"<= {most} ms", bool(figure <= most))


async def crowd(asked: Asker, cases: list[Case]) -> tuple[int, float]:
    """How many answers to several clients at once are right, and the seconds that all took."""
    waiting, right = iter(cases), 0

    async def some() -> None:
        nonlocal right
        for case in waiting:
            answer = await asked.answer(case.question)
            right += case.is_answered(answer["answer"], ())

    started = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(CLIENTS)))
    return right, time.perf_counter() - started


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        print_table(await asking(Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else 0))


if __name__ == "__main__":
    asyncio.run(main())
