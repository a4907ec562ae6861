"""The methods with a scripted model behind a real socket: what they ask, what they do with the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from builtin_plugins.inference.api import Embedded
from kernel.sdk import hookimpl
from kernel.testing import Actor, Reply, Running, platforms, postgres_database
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    somebody,
)
from tests.builtin_plugins.rag.scripted import Brain, decided, grade, judged
from tests.builtin_plugins.rag.test_generation import events_of
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.model_server import SECRET_TEXT, Refusal, model_server

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOTEL = "How much may a hotel cost per night?"
ANSWER = "A hotel may cost up to 130 EUR a night [1]."
OFFICES = """# Offices

The branch in Bergen is open from nine to five. Visitors report at the desk.

# Cars

Company cars are washed on Fridays. The key hangs beside the door.
"""
THINKING = ("hyde", "self_rag", "corrective", "auto")
CALLS = 5


class Remembering(HashEmbeddings):
    """Keeps what it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        self.texts += texts
        return await super().embed_texts(model, texts)


@dataclass
class Stage:
    """A platform with a scripted model, and an account with a pipeline over two documents."""

    running: Running
    brain: Brain
    ann: Actor
    base: str
    pipeline: str
    embeddings: Remembering

    async def ask(self, method: str, question: str = HOTEL, **fields: object) -> dict[str, Any]:
        return await ask(self.ann, self.pipeline, question, method=method, **fields)

    async def raw(self, method: str, **fields: object) -> Reply:
        return await ask_raw(self.ann, self.pipeline, HOTEL, method=method, **fields)

    def stream(self, method: str, **fields: object) -> Any:
        return self.running.session.post(
            f"{self.running.url}/v1/rag/pipeline/{self.pipeline}/query",
            json={"question": HOTEL, "method": method, **fields},
            headers={"Authorization": f"Bearer {self.ann.token}", "Accept": "text/event-stream"},
        )

    async def events(self, method: str, **fields: object) -> list[tuple[str, Any]]:
        async with self.stream(method, **fields) as answer:
            assert answer.status == 200, await answer.text()
            return events_of(await answer.text())


@pytest_asyncio.fixture(
    scope="module", loop_scope="session", params=["openai", pytest.param("ollama", marks=pytest.mark.long)]
)
async def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    """Ollama's protocol over SQLite, OpenAI's over PostgreSQL."""
    address = {"ollama": "OLLAMA_BASE_URL", "openai": "OPENAI_BASE_URL"}[request.param]
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(model_server())
        start = await stack.enter_async_context(platforms(tmp_path_factory.mktemp("methods")))
        url = stack.enter_context(postgres_database()) if request.param == "openai" else None
        env = {
            "DATABASE_URL": url,
            address: server.url,
            "PLATFORM_RAG_QUESTION_MODEL_CALLS": str(CALLS),
            "PLATFORM_RAG_STEP_SECONDS": "1",
            "PLATFORM_MODELS_SILENCE_SECONDS": "3",
        }
        embeddings = Remembering()
        running = await start("models", "rag_methods", "extractive_answers", embeddings, env=env)
        ann = await somebody(running)
        base = await make_base(ann, chunk_size=120, chunk_overlap=0)
        await ingest(running, ann, base, "handbook.md", HANDBOOK)
        await ingest(running, ann, base, "offices.md", OFFICES)
        yield Stage(running, Brain(server), ann, base, await make_pipeline(ann, base), embeddings)


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """The stage with a model that answers, and agrees with everything."""
    shared.brain.play(
        grade=grade("correct"), judge=judged(1, 1), decide=decided(), imagine="It costs 99 EUR."
    )
    return shared


def notes(answer: dict[str, Any]) -> str:
    return " ".join(answer["method_details"].get("degraded", []))


@pytest.mark.parametrize("method", ["hyde", "corrective"])
async def test_what_was_found_is_not_embedded_again(stage: Stage, method: str) -> None:
    """Its distance to the question comes from the store, also where something else was searched for."""
    stage.brain.play(grade=grade("ambiguous"), rewrite="lodging cost night")
    stage.embeddings.texts.clear()
    answer = await stage.ask(method, "What may a room in a hotel cost per night?", top_k=4)
    assert len(answer["sources"]) == 4
    assert not {source["text"] for source in answer["sources"]}.intersection(stage.embeddings.texts)


async def test_helper_model_that_one_may_not_use(stage: Stage) -> None:
    """Who may not call the administrators' model for helping work is helped by the one that answers."""
    admin = await somebody(stage.running, role="admin")
    limits = {"allowed_roles": ["admin"]}
    assert (await admin.post("/v1/models/small/constraints", json=limits)).status in (200, 201)
    chosen = {"answers": None, "helpers": "small"}
    assert (await admin.put("/v1/models/defaults", json=chosen)).status == 200
    try:
        assert (await stage.ask("hyde"))["method"] == "hyde"
        assert [body["model"] for body in stage.brain.bodies] == ["llama3.2", "llama3.2"]
    finally:
        await admin.put("/v1/models/defaults", json={**chosen, "helpers": None})


class TestHyde:
    async def test_searches_for_what_the_model_imagines(self, stage: Stage) -> None:
        stage.brain.play(imagine="Company cars are washed on Fridays beside the door.")
        plain = await stage.ask("standard", top_k=4)
        answer = await stage.ask("hyde", top_k=4)
        assert (answer["method"], answer["model_calls"], answer["tokens_used"]) == ("hyde", 2, 36)
        assert answer["method_details"]["hyde"] == {"hypothetical_chars": 51}
        assert stage.brain.calls == ["answer", "imagine", "answer"]

        def rank(found: dict[str, Any]) -> int:
            texts = [source["text"] for source in found["sources"]]
            return next((at for at, text in enumerate(texts) if "washed" in text), len(texts))

        assert rank(answer) < rank(plain)

    @pytest.mark.parametrize("text", ["", "  \n"])
    async def test_nothing_imagined(self, stage: Stage, text: str) -> None:
        """Without it, the method is `standard`."""
        stage.brain.play(imagine=text)
        answer = await stage.ask("hyde")
        assert (answer["method"], answer["answer"]) == ("standard", ANSWER)
        assert "hyde" in notes(answer) and "hyde" not in answer["method_details"]


class TestSelfRag:
    async def test_a_good_draft_is_the_answer(self, stage: Stage) -> None:
        answer = await stage.ask("self_rag")
        assert (answer["answer"], answer["method"], answer["model_calls"]) == (ANSWER, "self_rag", 2)
        assert answer["method_details"]["self_rag"] == {
            "iterations": 1,
            "evaluated": True,
            "threshold_met": True,
            "refined": False,
        }

    async def test_a_weak_one_is_written_again(self, stage: Stage) -> None:
        stage.brain.play(
            answer=["I think 5 EUR [1].", ANSWER],
            judge=[judged(0.2, 0.9, "branch in Bergen open"), judged(0.9, 0.8)],
        )
        answer = await stage.ask("self_rag", top_k=2)
        assert answer["answer"] == ANSWER and stage.brain.calls == ["answer", "judge", "answer", "judge"]
        details = answer["method_details"]["self_rag"]
        assert details == {"iterations": 2, "evaluated": True, "threshold_met": True, "refined": True}
        assert any("Bergen" in source["text"] for source in answer["sources"])

    async def test_the_better_draft_wins(self, stage: Stage) -> None:
        stage.brain.play(answer=[ANSWER, "No idea."], judge=[judged(0.6, 0.6, "prices"), judged(0.1, 0.1)])
        answer = await stage.ask("self_rag")
        assert answer["answer"] == ANSWER
        assert answer["method_details"]["self_rag"]["threshold_met"] is False

    async def test_without_a_verdict(self, stage: Stage) -> None:
        """Two answers that are not JSON: the draft stands, unjudged."""
        stage.brain.play(judge="Looks fine to me!")
        answer = await stage.ask("self_rag")
        assert answer["answer"] == ANSWER and stage.brain.calls == ["answer", "judge", "judge"]
        assert answer["method_details"]["self_rag"] == {
            "iterations": 1,
            "evaluated": False,
            "threshold_met": None,
            "refined": False,
        }
        assert "JSON" in notes(answer)

    async def test_the_budget_ends_it(self, stage: Stage) -> None:
        """No more calls than a question may have; the best draft so far is the answer, and says why."""
        low = judged(0.3, 0.3, "prices")
        stage.brain.play(judge=["{", low, "{", low])
        answer = await stage.ask("self_rag")
        assert (answer["model_calls"], len(stage.brain.calls)) == (CALLS, CALLS)
        assert answer["answer"] == ANSWER and f"{CALLS} model calls" in notes(answer)


class TestCorrective:
    async def test_good_passages(self, stage: Stage) -> None:
        answer = await stage.ask("corrective")
        assert answer["method_details"]["corrective"] == {
            "grade": "correct",
            "score": 1.0,
            "corrected": False,
        }
        assert (answer["method"], stage.brain.calls) == ("corrective", ["grade", "answer"])

    async def test_weak_ones_are_searched_again(self, stage: Stage) -> None:
        query = "How much may a hotel cost per night? lodging"
        stage.brain.play(grade=grade("incorrect"), rewrite=f'"{query}"\nSecond line.')
        answer = await stage.ask("corrective")
        details = answer["method_details"]["corrective"]
        assert details["grade"] == "ambiguous" and details["score"] == 0.5
        assert details["refined_query_chars"] == len(query) and details["corrected"] is True
        assert stage.brain.calls == ["grade", "rewrite", "answer"]

    async def test_a_worse_second_search_is_dropped(self, stage: Stage) -> None:
        stage.brain.play(grade=grade("ambiguous"), rewrite="company cars washed Fridays")
        answer = await stage.ask("corrective", top_k=1)
        details = answer["method_details"]["corrective"]
        assert details["corrected"] is False and details["still_insufficient"] is True
        assert "130 EUR" in answer["sources"][0]["text"]

    async def test_the_model_moves_the_measure_by_one_step(self, stage: Stage) -> None:
        answer = await stage.ask("corrective", "Who won the chess olympiad of 1972?")
        assert answer["method_details"]["corrective"]["grade"] == "ambiguous"


class TestAuto:
    async def test_applies_the_models_decision(self, stage: Stage) -> None:
        """Number of passages, hyde and self_rag are done; without a reranker, nothing is reranked."""
        choice = {"use_hyde": True, "use_self_rag": True, "use_reranking": True, "top_k": 3}
        stage.brain.play(
            decide=decided(retrieval_strategy="hierarchical", complexity="complex", **choice),
            imagine="A night costs 99 EUR.",
            judge=judged(1, 1),
        )
        answer = await stage.ask("auto")
        details = answer["method_details"]
        assert (answer["method"], details["requested"]) == ("auto", "auto")
        assert details["decision"]["applied"] == {"hyde": True, "self_rag": True, "top_k": 3, "rerank": False}
        assert set(details["decision"]) == {
            *("complexity", "intent", "use_hyde", "use_self_rag", "retrieval_strategy", "top_k"),
            *("use_reranking", "use_query_expansion", "applied"),
        }
        assert {"hyde", "self_rag"} <= set(details) and "hierarchical" in notes(answer)
        assert stage.brain.calls == ["decide", "imagine", "answer", "judge"] and len(answer["sources"]) == 3

    async def test_what_was_asked_for_stands(self, stage: Stage) -> None:
        stage.brain.play(decide=decided(top_k=9))
        answer = await stage.ask("auto", top_k=1)
        assert len(answer["sources"]) == 1
        assert answer["method_details"]["decision"]["applied"]["top_k"] == 1

    async def test_unsure_looks_further(self, stage: Stage) -> None:
        """Below a confidence of 0.5: five more passages, and the answer is judged."""
        stage.brain.play(decide=decided(confidence=0.3, top_k=2), judge=judged(1, 1))
        applied = (await stage.ask("auto"))["method_details"]["decision"]["applied"]
        assert (applied["top_k"], applied["self_rag"]) == (7, True)

    @pytest.mark.parametrize(
        ("question", "complexity", "top_k"),
        [
            ("Hotel price per night?", "simple", 5),
            (HOTEL, "moderate", 10),
            (f"{HOTEL} And who pays for the breakfast of visitors?", "complex", 15),
        ],
    )
    async def test_by_rules(self, stage: Stage, question: str, complexity: str, top_k: int) -> None:
        """A model that gives no decision leaves it to the number of words."""
        stage.brain.play(decide='{"complexity": "simple"}')
        decision = (await stage.ask("auto", question))["method_details"]["decision"]
        assert (decision["complexity"], decision["top_k"]) == (complexity, top_k)
        assert decision["use_reranking"] is (complexity != "simple")

    async def test_statistics_count_the_models_decisions(self, stage: Stage) -> None:
        before = (await stage.ann.get("/v1/rag/decision-stats")).json()
        stage.brain.play(decide=decided(confidence=0.8, retrieval_strategy="hybrid"))
        await stage.ask("auto")
        stage.brain.play(decide="no")
        await stage.ask("auto")
        after = (await stage.ann.get("/v1/rag/decision-stats")).json()
        assert after["available"] is True and after["total_decisions"] == before["total_decisions"] + 1
        hybrid = before["strategy_distribution"].get("hybrid", 0)
        assert after["strategy_distribution"]["hybrid"] == hybrid + 1
        assert sum(after["complexity_distribution"].values()) == after["total_decisions"]
        assert 0 < after["avg_confidence"] <= 1


class TestVerdicts:
    async def test_asked_for_by_schema(self, stage: Stage) -> None:
        await stage.ask("corrective")
        body = stage.brain.bodies[0]
        schema = body["format"] if "format" in body else body["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["grade"]["enum"] == ["incorrect", "ambiguous", "correct"]
        assert "format" not in stage.brain.bodies[1] and "response_format" not in stage.brain.bodies[1]

    @pytest.mark.parametrize(
        "broken",
        [
            '{"grade": "corr',
            '```json\n{"grade": "correct"}\n```',
            '{"grade": "correct"} Done.',
            '{"grade": "perfect"}',
            '{"grade": "correct", "why": "x"}',
            '{"grade": 1}',
            "[" * 100_000,
            "",
        ],
        ids=range(8),
    )
    async def test_one_repair(self, stage: Stage, broken: str) -> None:
        """What is not the object asked for is asked for again."""
        stage.brain.play(grade=[broken, grade("correct")])
        answer = await stage.ask("corrective")
        assert stage.brain.calls == ["grade", "grade", "answer"]
        assert answer["method_details"]["corrective"]["grade"] == "correct"

    async def test_then_the_fallback(self, stage: Stage) -> None:
        """Without a verdict the retrieval's own measure grades."""
        stage.brain.play(grade="I'd rather not.")
        answer = await stage.ask("corrective")
        assert answer["answer"] == ANSWER and "JSON" in notes(answer)

    @pytest.mark.parametrize("kind", ["grade", "imagine"])
    async def test_ten_megabytes(self, stage: Stage, kind: str) -> None:
        """The model is stopped, and what it wrote so far is all that counts."""
        stage.brain.play(**{"grade": grade("correct"), kind: "x" * 10_000_000})
        async with asyncio.timeout(20):
            answer = await stage.ask("corrective" if kind == "grade" else "hyde")
        assert answer["answer"] == ANSWER and "too much" in notes(answer)
        assert stage.brain.server.disconnected.is_set()

    async def test_an_answer_of_ten_megabytes(self, stage: Stage) -> None:
        stage.brain.play(answer="word " * 2_000_000)
        refused = await stage.raw("standard")
        assert refused.status == 503 and "max_tokens" in refused.detail

    async def test_one_that_never_ends(self, stage: Stage) -> None:
        stage.brain.play(grade=grade("correct"), faults={"grade": "hang"})
        async with asyncio.timeout(20):
            answer = await stage.ask("corrective")
        assert answer["answer"] == ANSWER and "longer than 1 second" in notes(answer)

    async def test_a_runtime_that_knows_no_schemas(self, stage: Stage) -> None:
        def without(body: dict[str, Any]) -> str:
            assert "format" not in body and "response_format" not in body
            return grade("correct")

        stage.brain.play(grade=[Refusal(400), without])
        assert (await stage.ask("corrective"))["method_details"]["corrective"]["grade"] == "correct"


class TestFaults:
    @pytest.mark.parametrize(
        ("method", "kind"),
        [("hyde", "imagine"), ("self_rag", "judge"), ("corrective", "grade"), ("auto", "decide")],
    )
    @pytest.mark.parametrize("how", ["refuses", "drops"])
    async def test_a_runtime_that_dies_on_the_way(
        self, stage: Stage, method: str, kind: str, how: str
    ) -> None:
        """503, or `error` in the stream, without the runtime's words; the next question is answered."""
        for _ in range(2):
            if how == "refuses":
                stage.brain.play(**{kind: Refusal(500)})
            else:
                stage.brain.play(**{kind: grade("correct")}, faults={kind: "drop"})
            refused = await stage.raw(method)
            assert refused.status == 503 and SECRET_TEXT.encode() not in refused.body
            events = await stage.events(method)
            assert events[-1][0] == "error" and "done" not in [name for name, _ in events]
            assert SECRET_TEXT not in json.dumps(events)
        stage.brain.play(
            grade=grade("correct"), judge=judged(1, 1), decide=decided(), imagine="It costs 99 EUR."
        )
        assert (await stage.ask(method))["answer"] == ANSWER

    @pytest.mark.parametrize(
        ("method", "kind"), [("hyde", "imagine"), ("corrective", "grade"), ("self_rag", "answer")]
    )
    async def test_a_client_that_leaves(self, stage: Stage, method: str, kind: str) -> None:
        stage.brain.play(**{kind: "word " * 4000}, faults={kind: "hang"})
        async with stage.stream(method) as answer:
            await stage.brain.server.streaming.wait()
            answer.close()
        async with asyncio.timeout(0.9):
            await stage.brain.server.disconnected.wait()


class TestStreams:
    @pytest.mark.parametrize("method", THINKING)
    async def test_steps_come_first(self, stage: Stage, method: str) -> None:
        events = await stage.events(method)
        names = [name for name, _ in events]
        steps = names.count("step")
        assert steps >= 2 and names[:steps] == ["step"] * steps
        assert names[steps] == "sources" and names[-1] == "done"
        assert set(events[0][1]) == {"step", "message"} and events[0][1]["message"]
        plain = await stage.ask(method)
        assert events[-1][1]["answer"] == plain["answer"] == ANSWER
        assert events[-1][1]["method_details"] == plain["method_details"]

    @pytest.mark.parametrize("method", ["standard", "raptor"])
    async def test_others_have_none(self, stage: Stage, method: str) -> None:
        """A method that asks the model once is a stream as it always was."""
        names = {name for name, _ in await stage.events(method)}
        assert names == {"sources", "token", "done"}


async def test_explain(stage: Stage) -> None:
    """Each step with its time, each source with its scores; without the wish neither is there."""
    answer = await stage.ask("corrective", explain=True)
    steps = {step["step"]: step["ms"] for step in answer["explain"]["steps"]}
    assert {"search", "grade", "answer"} <= set(steps) and all(ms >= 0 for ms in steps.values())
    for source in answer["sources"]:
        assert set(source["scores"]) == {"dense", "text", "fused"}
    plain = await stage.ask("corrective")
    assert "explain" not in plain and not any("scores" in source for source in plain["sources"])
