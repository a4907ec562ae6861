"""How well each method answers a public set, by a run of the plugin `evaluation`; prints its table.

python -m tests.benchmarks.method_quality                     # all 62 questions, without a model
python -m tests.benchmarks.method_quality --model -n 6        # six of them, with the small real model
python -m tests.benchmarks.method_quality --scripted          # a model that answers at once: the longest ways
python -m tests.benchmarks.method_quality --set nordlys       # the small set
python -m tests.benchmarks.method_quality --chunk-size 300    # with trees, which need six passages
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from builtin_plugins.embeddings.plugin import EmbeddingsPlugin
from builtin_plugins.evaluation.plugin import EvaluationPlugin
from kernel.testing import Actor, Running, platforms
from tests.benchmarks.methods import QuickModel
from tests.builtin_plugins.evaluation.evaluation_support import API, SETS, documents_of, make_set, measure
from tests.fakes.small_model import SmallModel, serving

METHODS = ("standard", "hyde", "self_rag", "corrective", "raptor", "auto")
STRATEGIES: tuple[dict[str, Any], ...] = (
    {"hybrid": False},
    {"parent_context": True},
    {"rerank": True},
)


def questions(name: str, count: int | None) -> list[dict[str, Any]]:
    """So many questions of a set, spread over it."""
    lines = [json.loads(line) for line in (SETS / name / "questions.jsonl").read_text().splitlines()]
    return lines if count is None else lines[:: max(1, len(lines) // count)][:count]


async def table(
    running: Running, ann: Actor, base: str, asked: list[dict[str, Any]], *, strategies: bool
) -> str:
    """The measures of all methods as a table."""
    trees = await ann.post(f"/v1/rag/knowledge-bases/{base}/trees")
    assert trees.status == 202, trees.body
    await running.run_jobs()
    set_id = await make_set(ann, base, asked)
    ways = [{"method": method} for method in METHODS] + list(STRATEGIES if strategies else ())
    run = await measure(running, ann, set_id, *ways)
    assert run["status"] == "done", run
    answer = await ann.get(f"{API}/runs/{run['id']}/table.md")
    return answer.body.decode()


async def bench(
    folder: Path,
    env: Mapping[str, str],
    name: str,
    count: int | None,
    chunk_size: int | None,
    *,
    scripted: bool,
) -> str:
    """A platform with the set's documents, and its figures."""
    fields: dict[str, Any] = {"embedding_model": "multilingual-e5-small"}
    if chunk_size is not None:
        fields.update(chunk_size=chunk_size, chunk_overlap=0)
    plugins = [EmbeddingsPlugin, EvaluationPlugin, "rag", *(["models"] if env else [])]
    plugins += [QuickModel()] if scripted else []
    async with platforms(folder) as start:
        running = await start(*plugins, env=dict(env))
        ann, base = await documents_of(running, name, **fields)
        return await table(running, ann, base, questions(name, count), strategies=not env and not scripted)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    model_of = parser.add_mutually_exclusive_group()
    model_of.add_argument("--model", action="store_true", help="with the small real model")
    model_of.add_argument("--scripted", action="store_true", help="with a model that answers at once")
    parser.add_argument("--set", default="brattvik", help="folder in tests/benchmarks/data")
    parser.add_argument("-n", type=int, help="number of questions; all by default")
    parser.add_argument("--chunk-size", type=int, help="characters; trees need six passages of a document")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with serving(folder) if wanted.model else nullcontext() as model:
            env = model.env if isinstance(model, SmallModel) else {}
            asked = (wanted.set, wanted.n, wanted.chunk_size)
            print(asyncio.run(bench(folder / "home", env, *asked, scripted=wanted.scripted)))


if __name__ == "__main__":
    main()
