"""How well each method answers the public set, by a run of the plugin `evaluation`; prints its table.

python -m tests.benchmarks.method_quality                     # all 24 questions, without a model
python -m tests.benchmarks.method_quality --model -n 6        # six of them, with the small real model
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
from tests.builtin_plugins.evaluation.evaluation_support import API, QUESTIONS, make_set, measure, nordlys
from tests.fakes.small_model import SmallModel, serving

METHODS = ("standard", "hyde", "self_rag", "corrective", "raptor", "auto")
STRATEGIES: tuple[dict[str, Any], ...] = (
    {"hybrid": False},
    {"parent_context": True},
    {"rerank": True},
)


def questions(count: int) -> list[dict[str, Any]]:
    """So many questions of the set, spread over it."""
    lines = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
    return lines[:: max(1, len(lines) // count)][:count]


async def table(running: Running, ann: Actor, base: str, count: int, *, strategies: bool) -> str:
    """The measures of all methods as a table."""
    trees = await ann.post(f"/v1/rag/knowledge-bases/{base}/trees")
    assert trees.status == 202, trees.body
    await running.run_jobs()
    set_id = await make_set(ann, base, questions(count))
    ways = [{"method": method} for method in METHODS] + list(STRATEGIES if strategies else ())
    run = await measure(running, ann, set_id, *ways)
    assert run["status"] == "done", run
    answer = await ann.get(f"{API}/runs/{run['id']}/table.md")
    return answer.body.decode()


async def bench(folder: Path, env: Mapping[str, str], count: int) -> str:
    """A platform with the three documents, and its figures."""
    plugins = [EmbeddingsPlugin, EvaluationPlugin, "rag", *(["models"] if env else [])]
    async with platforms(folder) as start:
        running = await start(*plugins, env=dict(env))
        ann, base = await nordlys(running, embedding_model="multilingual-e5-small")
        return await table(running, ann, base, count, strategies=not env)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", action="store_true", help="with the small real model")
    parser.add_argument("-n", type=int, default=24, help="number of questions")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder) if wanted.model else nullcontext() as model:
            env = model.env if isinstance(model, SmallModel) else {}
            print(asyncio.run(bench(folder / "home", env, wanted.n)))


if __name__ == "__main__":
    main()
