"""What one question may cost in tokens and in seconds; calls are counted in `test_methods`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builtin_plugins.rag.questions import question
from kernel.testing import platforms
from tests.builtin_plugins.rag.rag_support import ingest, make_base, make_pipeline, somebody
from tests.builtin_plugins.rag.scripted import Brain, judged
from tests.builtin_plugins.rag_methods.test_methods import ANSWER, Remembering, Stage, notes
from tests.fakes.model_server import model_server


@asynccontextmanager
async def staged(folder: Path, **env: str) -> AsyncIterator[Stage]:
    """A stage with these settings."""
    async with model_server() as server, platforms(folder) as start:
        embeddings = Remembering()
        running = await start(
            "models",
            "rag_methods",
            "extractive_answers",
            embeddings,
            env={"OPENAI_BASE_URL": server.url, **env},
        )
        ann = await somebody(running)
        base = await make_base(ann)
        await ingest(running, ann, base)
        yield Stage(running, Brain(server), ann, base, await make_pipeline(ann, base), embeddings)


async def test_tokens(tmp_path: Path) -> None:
    """Calls on the way are left out while too little would be left for the answer, which gets the rest."""
    async with staged(tmp_path, PLATFORM_RAG_QUESTION_TOKENS="1000") as stage:
        stage.brain.play(imagine="It costs 99 EUR.")
        for method in ("hyde", "corrective", "auto"):
            answer = await stage.ask(method)
            assert (answer["answer"], answer["model_calls"]) == (ANSWER, 1), method
            assert "at most 1000 tokens" in notes(answer)
        assert set(stage.brain.calls) == {"answer"}
        assert all(64 <= body["max_tokens"] < 1000 for body in stage.brain.bodies)


async def test_seconds(tmp_path: Path) -> None:
    """A call on the way is stopped when half of the time is over; an answer that never comes is a 503."""
    async with staged(tmp_path, PLATFORM_RAG_QUESTION_SECONDS="2") as stage:
        stage.brain.play(imagine="It costs 99 EUR.", faults={"imagine": "hang"})
        answer = await stage.ask("hyde")
        assert (answer["answer"], answer["method"]) == (ANSWER, "standard")
        assert "longer than 1 second" in notes(answer)
        stage.brain.play(faults={"answer": "hang"})
        refused = await stage.raw("standard")
        assert (refused.status, refused.json()["code"]) == (503, "generation_failed")


@pytest.mark.parametrize(
    ("method", "kind"),
    [("hyde", "imagine"), ("corrective", "grade"), ("self_rag", "judge"), ("auto", "decide")],
)
async def test_silence(tmp_path: Path, method: str, kind: str) -> None:
    """The answer does without a model that falls silent on the way; during the answer that is a 503."""
    async with staged(tmp_path, PLATFORM_MODELS_SILENCE_SECONDS="0.5") as stage:
        stage.brain.play(faults={kind: "hang"})
        answer = await stage.ask(method)
        assert answer["answer"] == ANSWER
        assert f"{method}: " in notes(answer)
        stage.brain.play(faults={"answer": "hang"})
        assert (await stage.raw("standard")).status == 503


async def test_silence_in_a_second_draft(tmp_path: Path) -> None:
    async with staged(tmp_path, PLATFORM_MODELS_SILENCE_SECONDS="0.5") as stage:

        def weak(_: dict[str, Any]) -> str:
            stage.brain.faults["answer"] = "hang"
            return judged(0.2, 0.2, "hotel")

        stage.brain.play(judge=weak)
        answer = await stage.ask("self_rag")
        assert (answer["answer"], stage.brain.calls) == (ANSWER, ["answer", "judge", "answer"])
        assert "self_rag: " in notes(answer)


async def test_seconds_of_an_embedding_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that waits for its model to be loaded takes nothing from the language model's time."""
    passed = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + sum(passed))
    monkeypatch.setattr(question, "time", clock)
    async with staged(tmp_path, PLATFORM_RAG_QUESTION_SECONDS="20") as stage:
        stage.brain.play()
        stage.embeddings.before = lambda: passed.append(30)
        answer = await stage.ask("standard")
        assert (answer["answer"], answer["model_calls"]) == (ANSWER, 1)
        assert len(passed) > 1
