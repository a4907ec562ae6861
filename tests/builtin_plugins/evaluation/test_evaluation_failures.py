"""A model that makes no answer of a question, or refuses it, fails that question, and not the run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from builtin_plugins.evaluation.plugin import EvaluationPlugin
from builtin_plugins.evaluation.services.running import RUN, RunPayload
from kernel.sdk import Progress, Unavailable
from kernel.testing import Start
from tests.builtin_plugins.evaluation.evaluation_support import API, call, make_set, measure, nordlys
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.model_server import ModelServer, Refusal, Script, Turn, model_server

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


@dataclass
class Runtime:
    """Refuses what `refuses` says, from its `dies_after`th question on everything; counts its questions."""

    server: ModelServer
    refuses: Callable[[str], bool]
    dies_after: int | None = None
    asked: Counter[str] = field(default_factory=Counter)

    def turn(self, body: dict[str, Any]) -> Turn | Refusal:
        """What the server is to say."""
        text = body["messages"][-1]["content"].rsplit("Question: ", 1)[-1].strip()
        self.asked[text] += 1
        gone = self.dies_after is not None and self.asked.total() > self.dies_after
        return Refusal(500) if gone or self.refuses(text) else Turn("The hotel may cost 130 EUR [1].")


@asynccontextmanager
async def refusing(start_platform: Start, refuses: Callable[[str], bool]) -> AsyncIterator[tuple[Any, ...]]:
    async with model_server() as server:
        runtime = Runtime(server, refuses)
        server.script = Script(turn=runtime.turn, models=("llama3.2",))
        env = {"OPENAI_BASE_URL": server.url}
        running = await start_platform("rag", "models", HashEmbeddings(), EvaluationPlugin, env=env)
        yield (runtime, running, *(await nordlys(running)))


def hotels(*cases: str) -> list[dict[str, Any]]:
    """Questions that differ in their last words."""
    return [{"question": f"{HARD} In case {case}", "answers": ["130 EUR"]} for case in cases]


def bad(text: str) -> bool:
    """Whether it is the question that is refused."""
    return text.endswith("bad")


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_one_question_is_refused(start_platform: Start, place: int) -> None:
    """It counts as failed wherever it stands, in each configuration, with the reason."""
    cases = ["one", "two"]
    cases.insert(place, "bad")
    async with refusing(start_platform, bad) as (_, running, ann, base):
        set_id = await make_set(ann, base, hotels(*cases))
        run = await measure(running, ann, set_id, {"top_k": 3}, {"top_k": 5})
        assert (run["status"], run["done"], run["error"]) == ("done", 6, None)
        for at, summary in enumerate(run["summaries"]):
            path = f"/runs/{run['id']}/results?configuration={at}"
            worst, *others = (await call(ann, "get", path))["items"]
            assert bad(worst["question"]) and worst["values"]["failed"] == 1
            assert worst["values"]["quality"] == 0 and "runtime" in worst["failure"]
            assert [(one["values"]["failed"], one["failure"]) for one in others] == [(0, None)] * 2
            assert summary["failures"] == {worst["failure"]: 1}
        table = (await ann.get(f"{API}/runs/{run['id']}/table.md")).body.decode()
        assert table.count(f"1 failed. {worst['failure']}") == 2


async def test_a_runtime_that_goes_away(start_platform: Start) -> None:
    """The run waits for it after three questions; nothing fails, and what was answered stays."""
    async with refusing(start_platform, lambda text: False) as (runtime, running, ann, base):
        runtime.dies_after = 2
        body = {"set_id": await make_set(ann, base, hotels(*"abcdefg")), "configurations": [{}]}
        made = await call(ann, "post", "/runs", 202, json=body)
        with pytest.raises(Unavailable):
            await RUN.handler(running.platform, RunPayload(run_id=made["id"]), Progress())
        assert runtime.asked.total() == 2 + 3 + 1  # the last one was answered before
        runtime.dies_after = None
        await running.run_jobs()
        run = await call(ann, "get", f"/runs/{made['id']}")
    assert (run["status"], run["done"]) == ("done", 7)
    assert run["summaries"][0]["measures"]["failed"]["mean"] == 0


async def test_a_runtime_that_was_never_there(start_platform: Start) -> None:
    async with refusing(start_platform, lambda text: True) as (runtime, running, ann, base):
        body = {"set_id": await make_set(ann, base, hotels("one")), "configurations": [{}]}
        made = await call(ann, "post", "/runs", 202, json=body)
        with pytest.raises(Unavailable):
            await RUN.handler(running.platform, RunPayload(run_id=made["id"]), Progress())
        runtime.refuses = lambda text: False
        await running.run_jobs()
        run = await call(ann, "get", f"/runs/{made['id']}")
    assert (run["status"], run["done"], run["summaries"][0]["failures"]) == ("done", 1, {})


async def test_a_worker_that_dies_among_refusals(start_platform: Start) -> None:
    """What it has stored is not asked again by the next one, but once to see whether the runtime answers."""
    async with refusing(start_platform, bad) as (runtime, running, ann, base):
        body = {"set_id": await make_set(ann, base, hotels("bad", "one", "two")), "configurations": [{}]}
        made = await call(ann, "post", "/runs", 202, json=body)

        def dies(text: str) -> bool:
            if text.endswith("two"):
                working.cancel()
            return bad(text)

        runtime.refuses = dies
        payload = RunPayload(run_id=made["id"])
        working = asyncio.create_task(RUN.handler(running.platform, payload, Progress()))
        with pytest.raises(asyncio.CancelledError):
            await working
        runtime.refuses = bad
        runtime.asked.clear()
        await running.run_jobs()
        run = await call(ann, "get", f"/runs/{made['id']}")
    assert (run["status"], run["done"]) == ("done", 3)
    assert sorted(runtime.asked.values()) == [1, 1, 2]
    assert runtime.asked[f"{HARD} In case one"] == 1
