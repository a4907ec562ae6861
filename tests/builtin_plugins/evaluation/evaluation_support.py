"""What the tests share: the public set in a knowledge base, and a shelf of calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builtin_plugins.evaluation.plugin import EvaluationPlugin
from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.rag.rag_support import make_base, somebody, upload
from tests.fakes.hash_embeddings import HashEmbeddings

API = "/v1/rag/evaluation"
SETS = Path(__file__).parents[2] / "benchmarks" / "data"
QUESTIONS = SETS / "nordlys" / "questions.jsonl"


async def boot(start_platform: Start, url: str | None = None, *more: object) -> Running:
    """A platform without a model, with embeddings that hash words."""
    return await start_platform(
        "rag_methods",
        "extractive_answers",
        HashEmbeddings(),
        *(more or (EvaluationPlugin,)),
        env={"DATABASE_URL": url},
    )


async def nordlys(running: Running, **fields: object) -> tuple[Actor, str]:
    """Somebody with a knowledge base of the small set's three documents."""
    return await documents_of(running, "nordlys", **fields)


async def documents_of(running: Running, name: str, **fields: object) -> tuple[Actor, str]:
    """Somebody with a knowledge base of a set's documents."""
    ann = await somebody(running)
    base = await make_base(ann, **{"embedding_model": "all-minilm", **fields})
    for file in sorted((SETS / name).iterdir()):
        if file.name not in ("README.md", "questions.jsonl"):
            assert (await upload(ann, base, file.name, file.read_text())).status == 202
    await running.run_jobs()
    return ann, base


async def call(actor: Actor, method: str, path: str, expect: int = 200, **more: Any) -> Any:
    """The JSON of an answer with the expected status."""
    answer = await getattr(actor, method)(f"{API}{path}", **more)
    assert answer.status == expect, (answer.status, answer.body)
    return answer.json() if answer.body else None


async def make_set(actor: Actor, base: str, questions: list[dict[str, Any]] | None = None) -> str:
    """A set; without questions, that of the repository."""
    body = {"knowledge_base_id": base, "name": "Nordlys", "questions": questions or []}
    made = await call(actor, "post", "/sets", 201, json=body)
    if questions is None:
        headers = {"Content-Type": "application/jsonl"}
        path = f"/sets/{made['id']}/upload"
        added = await call(actor, "post", path, data=QUESTIONS.read_bytes(), headers=headers)
        assert added == {"added": 24, "question_count": 24}
    return str(made["id"])


async def measure(running: Running, actor: Actor, set_id: str, *configurations: dict[str, Any]) -> Any:
    """A run, done."""
    body = {"set_id": set_id, "configurations": list(configurations) or [{}]}
    made = await call(actor, "post", "/runs", 202, json=body)
    await running.run_jobs()
    return await call(actor, "get", f"/runs/{made['id']}")
