"""B14: what each method costs in our own code, beyond the search and the model.

python -m tests.benchmarks.methods
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import uvloop

from builtin_plugins.rag.questions import asking
from builtin_plugins.rag.schemas import QueryRequest
from kernel.sdk import Caller, Plugin, Principal, contracts, hookimpl
from kernel.testing import Running, platforms, somebody
from tests.benchmarks.table import Row, print_table
from tests.benchmarks.texts import article
from tests.builtin_plugins.rag.rag_support import ingest, make_base, make_pipeline
from tests.fakes.hash_embeddings import HashEmbeddings

METHODS = ("standard", "hyde", "self_rag", "corrective", "raptor", "auto")
QUESTIONS = 100
DOCUMENTS = 20

_SAID = {
    "Write one short paragraph": "The engineer in Aarhus repairs the turbine of the harbour.",
    "You grade search results": json.dumps({"grade": "ambiguous"}),
    "Rewrite the question": "engineer Aarhus turbine repair harbour",
    "You judge a draft": json.dumps({"grounded": 0.5, "complete": 0.5, "search": "turbine repair"}),
    "You plan a search": json.dumps(
        {
            "complexity": "complex",
            "intent": "who",
            "retrieval_strategy": "hybrid",
            "top_k": 10,
            "use_hyde": True,
            "use_self_rag": True,
            "use_reranking": True,
            "use_query_expansion": False,
            "confidence": 0.9,
        }
    ),
}


class QuickModel(Plugin):
    """A model that answers at once; every method takes its longest way with it."""

    name = "quick_model"

    @hookimpl
    def generate_text(
        self, messages: Sequence[contracts.ChatMessage], options: Mapping[str, Any]
    ) -> contracts.Generation:
        return self._text(messages)

    async def _text(self, messages: Sequence[contracts.ChatMessage]) -> contracts.Generation:
        start = messages[0].content
        text = next((said for known, said in _SAID.items() if start.startswith(known)), "It is repaired [1].")
        yield text
        yield contracts.Generated(text, 100, "quick", "stop")


async def measured(caller: Caller, pipeline: str, method: str) -> tuple[list[float], int]:
    """Milliseconds of our own code for each question, and the calls of the last one."""
    spent, calls = [], 0
    for number in range(QUESTIONS):
        question = f"Which turbine does the engineer in Aarhus repair, number {number}?"
        request = QueryRequest(question=question, method=method, explain=True)
        started = time.perf_counter()
        answer = await asking.answer(await asking.prepare(caller, pipeline, request))
        whole = (time.perf_counter() - started) * 1000
        assert answer.explain is not None and answer.method == method, answer
        spent.append(whole - sum(one.ms for one in answer.explain.steps if one.step == "search"))
        calls = answer.model_calls
    return spent, calls


async def bench(folder: Path) -> list[Row]:
    """Each method over the same documents."""
    rows = []
    async with platforms(folder) as start:
        running: Running = await start("rag", HashEmbeddings(), QuickModel())
        ann = await somebody(running)
        base = await make_base(ann)
        for number in range(DOCUMENTS):
            await ingest(running, ann, base, f"{number}.txt", article(number, 60))
        pipeline = await make_pipeline(ann, base)
        caller = Caller(running.platform, Principal("user", ann.user["username"], ann.user["id"]))
        for method in METHODS:
            await measured(caller, pipeline, method)
            spent, calls = await measured(caller, pipeline, method)
            p95 = quantiles(spent, n=20)[-1]
            figure = f"{median(spent):.2f} ms, p95 {p95:.2f} ms, {calls} model calls"
            rows.append(Row("B14", f"{method}, beyond search and model", figure, "< 5 ms", median(spent) < 5))
    return rows


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        print_table(uvloop.run(bench(Path(folder))))


if __name__ == "__main__":
    main()
