"""How well each method answers a public set, by a run of the plugin `evaluation`; prints its table.

python -m tests.benchmarks.method_quality                     # all 62 questions, without a model
python -m tests.benchmarks.method_quality --model -n 6        # six of them, with the small real model
python -m tests.benchmarks.method_quality --scripted          # a model that answers at once: the longest ways
python -m tests.benchmarks.method_quality --set nordlys       # the small set
python -m tests.benchmarks.method_quality --chunk-size 300    # with trees, which need six passages
python -m tests.benchmarks.method_quality --model -n 6 --home DIR --minutes 5   # the same again goes on
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from builtin_plugins.embeddings.plugin import EmbeddingsPlugin
from builtin_plugins.evaluation.plugin import EvaluationPlugin
from kernel.auth.models import Account
from kernel.auth.tokens import TOKENS
from kernel.testing import Actor, Running, platforms
from tests.benchmarks.methods import QuickModel
from tests.builtin_plugins.evaluation.evaluation_support import API, SETS, call, documents_of, make_set
from tests.fakes.small_model import SmallModel, serving

METHODS = ("standard", "hyde", "self_rag", "corrective", "raptor", "auto")
STRATEGIES: tuple[dict[str, Any], ...] = ({"hybrid": False}, {"parent_context": True})

PATIENT = {"PLATFORM_RAG_QUESTION_SECONDS": "1800", "PLATFORM_RAG_STEP_SECONDS": "600"}
"""With a model on a shared core, the processor's load would decide which answers are cut off."""


def questions(name: str, count: int | None) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (SETS / name / "questions.jsonl").read_text().splitlines()]
    return lines if count is None else lines[:: max(1, len(lines) // count)][:count]


async def begin(running: Running, wanted: argparse.Namespace, *, strategies: bool) -> tuple[int, str]:
    """A run of all methods over the set's documents: the account that began it, and its id."""
    fields: dict[str, Any] = {"embedding_model": "multilingual-e5-small"}
    if wanted.chunk_size is not None:
        fields.update(chunk_size=wanted.chunk_size, chunk_overlap=0)
    ann, base = await documents_of(running, wanted.set, **fields)
    trees = await ann.post(f"/v1/rag/knowledge-bases/{base}/trees")
    assert trees.status == 202, trees.body
    await running.run_jobs()
    set_id = await make_set(ann, base, questions(wanted.set, wanted.n))
    ways = [{"method": method} for method in METHODS] + list(STRATEGIES if strategies else ())
    made = await call(ann, "post", "/runs", 202, json={"set_id": set_id, "configurations": ways})
    return int(ann.user["id"]), str(made["id"])


async def bench(home: Path, model: SmallModel | None, wanted: argparse.Namespace) -> str:
    """A platform with the set's documents, and the figures of its run so far.

    A home that has a run already continues with it.
    """
    plugins = [EmbeddingsPlugin, EvaluationPlugin, "rag_methods", *(["models"] if model else [])]
    plugins += [QuickModel()] if wanted.scripted else []
    env, begun = {**model.env, **PATIENT} if model else {}, home / "measured.json"
    async with platforms(home) as start:
        running = await start(*plugins, env=env)
        if not begun.exists():
            strategies = not model and not wanted.scripted
            begun.write_text(json.dumps(await begin(running, wanted, strategies=strategies)))
        account_id, run_id = json.loads(begun.read_text())
        with suppress(TimeoutError):
            async with asyncio.timeout(wanted.minutes and wanted.minutes * 60):
                await running.run_jobs()
        ann = await actor_of(running, account_id)
        run = await call(ann, "get", f"/runs/{run_id}")
        assert run["status"] != "failed", run
        answer = await ann.get(f"{API}/runs/{run_id}/table.md")
        return f"{answer.body.decode()}\n{run['done']} of {run['total']} asked"


async def actor_of(running: Running, account_id: int) -> Actor:
    account = await running.platform.database.read(lambda session: session.get(Account, account_id))
    assert account is not None
    return Actor(running, running.platform.resource(TOKENS).mint(account, {}))


def main() -> None:
    parser = argparse.ArgumentParser()
    model_of = parser.add_mutually_exclusive_group()
    model_of.add_argument("--model", action="store_true", help="with the small real model")
    model_of.add_argument("--scripted", action="store_true", help="with a model that answers at once")
    parser.add_argument("--set", default="brattvik", help="folder in tests/benchmarks/data")
    parser.add_argument("-n", type=int, help="number of questions; all by default")
    parser.add_argument("--chunk-size", type=int, help="characters; trees need six passages of a document")
    parser.add_argument("--home", type=Path, help="keep everything there, and go on with what is there")
    parser.add_argument("--minutes", type=float, help="stop then; with --home, the same command goes on")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with serving(folder) if wanted.model else nullcontext() as model:
            print(asyncio.run(bench(wanted.home or folder / "home", model, wanted)))


if __name__ == "__main__":
    main()
