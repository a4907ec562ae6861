"""A model that makes no answer of a question fails that question, and not the run."""

from __future__ import annotations

from typing import Any

import pytest

from builtin_plugins.evaluation.plugin import EvaluationPlugin
from kernel.testing import Start
from tests.builtin_plugins.evaluation.evaluation_support import call, make_set, measure, nordlys
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.model_server import ModelServer, Script, Turn, model_server

HARD = "How much may a hotel in Oslo cost per night?"
EASY = "What is the daily allowance for meals?"
QUESTIONS: list[dict[str, Any]] = [
    {"question": HARD, "answers": ["130 EUR"]},
    {"question": EASY, "answers": ["42 EUR"]},
]
LIMITS = {
    "overdue": {"PLATFORM_RAG_QUESTION_SECONDS": "1"},
    "silent": {"PLATFORM_MODELS_SILENCE_SECONDS": "0.5"},
    "empty": {},
    "endless": {},
}


def script(server: ModelServer, way: str) -> Script:
    """Answers every question but one."""

    def turn(body: dict[str, Any]) -> Turn:
        hard = HARD in body["messages"][-1]["content"]
        server.script.middle = "hang" if hard and way in ("overdue", "silent") else None
        if not hard:
            return Turn("The daily allowance for meals is 42 EUR [1].")
        return Turn({"empty": " ", "endless": "word " * 100_000}.get(way, "The hotel may cost 130 EUR [1]."))

    return Script(turn=turn, models=("llama3.2",), pieces=2000 if way == "endless" else 8)


@pytest.mark.parametrize("way", LIMITS)
async def test_one_question_fails(start_platform: Start, way: str) -> None:
    """It counts as failed, with the ranks of what was found for it; the others are measured."""
    async with model_server() as server:
        server.script = script(server, way)
        env = {"OPENAI_BASE_URL": server.url, **LIMITS[way]}
        running = await start_platform("rag", "models", HashEmbeddings(), EvaluationPlugin, env=env)
        ann, base = await nordlys(running)
        run = await measure(running, ann, await make_set(ann, base, QUESTIONS))
    assert (run["status"], run["done"], run["error"]) == ("done", 2, None)
    found = (await call(ann, "get", f"/runs/{run['id']}/results"))["items"]
    values = {one["question"]: one["values"] for one in found}
    hard, easy = values[HARD], values[EASY]
    assert (hard["failed"], hard["quality"], hard["contains"], hard["refused_wrong"]) == (1, 0, 0, None)
    assert hard["ndcg@10"] == 1 and hard["model_calls"] == 1
    assert (easy["failed"], easy["contains"], easy["refused_wrong"]) == (0, 1, 0)
    assert run["summaries"][0]["measures"]["failed"]["mean"] == 0.5
