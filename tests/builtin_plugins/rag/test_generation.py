"""Asking with a model runtime, by both protocols, on a real socket: cited, streamed, and failing honestly."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from builtin_plugins.rag.answering.refusal_texts import NOT_SUPPORTED
from kernel.testing import Actor, Reply, Running, platforms
from tests.builtin_plugins.documents.sample_documents import pdf
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    path_of,
    somebody,
)
from tests.fakes.loaded_once import LoadedOnce
from tests.fakes.model_server import SECRET_TEXT, ModelServer, Refusal, Script, model_server

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOTEL = "How much may a hotel cost per night?"
ANSWER = "A hotel may cost up to 130 EUR a night [1]."
MODELS = ("llama3.2", "tiny", "small", "large")
ADDRESS = {"ollama": "OLLAMA_BASE_URL", "openai": "OPENAI_BASE_URL"}


@dataclass
class Stage:
    """A platform with a scripted runtime behind it, and an account with a pipeline over one document."""

    running: Running
    server: ModelServer
    kind: str
    ann: Actor
    base: str
    pipeline: str

    def play(self, **script: Any) -> None:
        """Have the runtime answer like this from now on."""
        self.server.script = Script(**{"models": MODELS, "answer": ANSWER, **script})
        self.server.requests.clear()
        self.server.streaming.clear()
        self.server.disconnected.clear()

    @property
    def prompts(self) -> list[dict[str, Any]]:
        """The bodies of the generations that were asked for."""
        return [one.body for one in self.server.requests if one.path in ("/api/chat", "/v1/chat/completions")]

    async def ask(self, question: str = HOTEL, **fields: object) -> dict[str, Any]:
        return await ask(self.ann, self.pipeline, question, **fields)

    async def ask_raw(self, question: str = HOTEL, **fields: object) -> Reply:
        return await ask_raw(self.ann, self.pipeline, question, **fields)

    def stream(self, question: str = HOTEL, **fields: object) -> Any:
        """A streamed answer that has begun."""
        return self.running.session.post(
            f"{self.running.url}/v1/rag/pipeline/{self.pipeline}/query",
            json={"question": question, **fields},
            headers={"Authorization": f"Bearer {self.ann.token}", "Accept": "text/event-stream"},
        )

    async def streamed(self) -> Reply:
        async with self.stream() as answer:
            return Reply(answer.status, answer.headers, await answer.read())

    async def events(self, question: str = HOTEL, **fields: object) -> list[tuple[str, Any]]:
        async with self.stream(question, **fields) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.content_type == "text/event-stream"
            return events_of(await answer.text())


def events_of(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest_asyncio.fixture(
    scope="module", loop_scope="session", params=["openai", pytest.param("ollama", marks=pytest.mark.long)]
)
async def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    async with model_server() as server, platforms(tmp_path_factory.mktemp("generation")) as start:
        env = {
            ADDRESS[request.param]: server.url,
            "PLATFORM_MODELS_SILENCE_SECONDS": "1",
            "PLATFORM_MODELS_TOTAL_SECONDS": "20",
        }
        running = await start(LoadedOnce, "models", "rag", "extractive_answers", env=env)
        ann = await somebody(running)
        base = await make_base(ann)
        await ingest(running, ann, base)
        pipeline = await make_pipeline(ann, base)
        yield Stage(running, server, request.param, ann, base, pipeline)


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """The stage with a runtime that answers well."""
    shared.play()
    return shared


class TestAnswer:
    async def test_is_the_models(self, stage: Stage) -> None:
        """Text, model and token count are the runtime's; nothing is degraded; the sources are those cited."""
        answer = await stage.ask()
        assert answer["answer"] == ANSWER
        assert (answer["model_used"], answer["tokens_used"], answer["method"]) == ("llama3.2", 18, "standard")
        assert "130 EUR" in answer["sources"][0]["text"]
        assert answer["method_details"] == {"retrieval": "hybrid"}
        assert answer["confidence"] > 0

    async def test_invented_citations_are_dropped(self, stage: Stage) -> None:
        """Numbers without a passage go; forms of true ones are made alike; this holds in pieces too."""
        stage.play(answer="Up to 130 EUR [1, 9] a night【7】. See [1-1] and list[0].", pieces=1)
        expected = "Up to 130 EUR [1] a night. See [1] and list[0]."
        assert (await stage.ask())["answer"] == expected
        events = await stage.events()
        assert "".join(data["text"] for name, data in events if name == "token") == expected

    async def test_prompt(self, stage: Stage) -> None:
        """The passages stand between marks with a key that no document knows; the question comes last."""
        await stage.ask()
        (body,) = stage.prompts
        system, user = body["messages"]
        assert (system["role"], user["role"]) == ("system", "user")
        assert "130 EUR" in user["content"] and user["content"].endswith(HOTEL)
        assert 'source="handbook.md, Travel handbook"' in user["content"]

    async def test_page_of_what_is_cited(self, stage: Stage, tmp_path: Path) -> None:
        """Of a passage over several short pages, the one that says it; all of them where none is found."""
        lines = ["Rooms cost 90 EUR.", "A bike costs 15 EUR a day.", "A dog costs 12 EUR a night."]
        file = pdf(tmp_path / "prices.pdf", [[line] for line in lines])
        base = await make_base(stage.ann)
        await ingest(stage.running, stage.ann, base, file.name, file.read_bytes())
        asked = replace(stage, base=base, pipeline=await make_pipeline(stage.ann, base))
        for text, place in (("A dog costs 12 EUR [1].", (3, None)), ("Little enough [1].", (1, 3))):
            stage.play(answer=text)
            (source,) = (await asked.ask("What does a dog cost a night?"))["sources"]
            assert (source["page"], source.get("last_page")) == place
            told = dict(await asked.events("What does a dog cost a night?"))
            assert told["sources"]["sources"][0]["page"] == 1
            assert told["done"]["sources"] == [{**source, "score": _about(source["score"])}]
        assert 'source="prices.pdf, page 1 to 3"' in stage.prompts[-1]["messages"][-1]["content"]


class TestParameters:
    async def test_model_by_order(self, stage: Stage) -> None:
        """The question's model, else the pipeline's, else the first knowledge base's, else the default."""
        base = await make_base(stage.ann, llm_model="small")
        other = await make_base(stage.ann, llm_model="large")
        await ingest(stage.running, stage.ann, base)
        plain = await make_pipeline(stage.ann, base, other)
        chosen = await make_pipeline(stage.ann, base, generation_config={"model": "tiny"})
        assert (await ask(stage.ann, chosen, HOTEL, llm_model="large"))["model_used"] == "large"
        assert (await ask(stage.ann, chosen, HOTEL))["model_used"] == "tiny"
        assert (await ask(stage.ann, plain, HOTEL))["model_used"] == "small"
        assert (await stage.ask())["model_used"] == "llama3.2"
        change = {"generation_config": {"model": "large"}}
        assert (await stage.ann.patch(f"/v1/rag/pipeline/{chosen}", json=change)).status == 200
        assert (await ask(stage.ann, chosen, HOTEL))["model_used"] == "large"
        assert [body["model"] for body in stage.prompts] == ["large", "tiny", "small", "llama3.2", "large"]

    async def test_configuration_reaches_the_runtime(self, stage: Stage) -> None:
        """Temperature, length and further options, under the names of the protocol; defaults otherwise."""
        config = {"temperature": 0, "max_tokens": 77, "seed": 5}
        pipeline = await make_pipeline(stage.ann, stage.base, generation_config=config)
        await ask(stage.ann, pipeline, HOTEL)
        await stage.ask()
        name = "num_predict" if stage.kind == "ollama" else "max_tokens"
        sent = [body.get("options", body) for body in stage.prompts]
        assert (sent[0]["temperature"], sent[0][name], sent[0]["seed"]) == (0, 77, 5)
        assert (sent[1]["temperature"], sent[1][name]) == (0.7, 2000)


class TestStream:
    async def test_events_in_order(self, stage: Stage) -> None:
        events = await stage.events()
        names = [name for name, _ in events]
        assert names[0] == "sources" and names[-1] == "done" and set(names[1:-1]) == {"token"}
        assert len(names) > 5
        assert "".join(data["text"] for name, data in events if name == "token") == ANSWER
        plain = await stage.ask()
        assert events[-1][1] == plain
        unwritten = [{key: one[key] for key in one if key != "quotes"} for one in plain["sources"]]
        assert events[0][1]["sources"] == unwritten

    async def test_pieces_come_as_they_are_made(self, stage: Stage) -> None:
        stage.play(middle="hang", middle_after=4)
        async with asyncio.timeout(10), stage.stream() as answer:
            seen = ""
            async for chunk in answer.content.iter_any():
                seen += chunk.decode()
                if "event: token" in seen:
                    break
            assert "event: sources" in seen and "event: done" not in seen
            assert not stage.server.disconnected.is_set()

    async def test_without_a_runtimes_words(self, stage: Stage) -> None:
        """What is told without the model, that nothing was found, is streamed in the same events."""
        events = await stage.events("Who won the chess olympiad of 1972?")
        assert [name for name, _ in events] == ["sources", "token", "done"]
        assert events[0][1]["sources"] == [] == events[-1][1]["sources"]
        assert stage.prompts == []

    async def test_headers_for_proxies(self, stage: Stage) -> None:
        """No cache and no reverse proxy holds the stream back."""
        async with stage.stream() as answer:
            assert answer.headers["Cache-Control"] == "no-cache"
            assert answer.headers["X-Accel-Buffering"] == "no"
            await answer.read()


class TestNotSupported:
    async def test_no_model_is_asked_about_nothing(self, stage: Stage) -> None:
        answer = await stage.ask("Who won the chess olympiad of 1972?")
        assert (answer["answer"], answer["sources"], answer["confidence"]) == (NOT_SUPPORTED, [], 0.0)
        assert stage.prompts == []

    @pytest.mark.parametrize("after", ["", " Ask the travel desk.", "\n"])
    async def test_a_model_that_finds_none(self, stage: Stage, after: str) -> None:
        stage.play(answer=NOT_SUPPORTED + after, pieces=3)
        answer = await stage.ask()
        assert (answer["sources"], answer["confidence"]) == ([], 0.0)
        assert answer["answer"] == (NOT_SUPPORTED + after).strip()
        assert answer["model_used"] == "llama3.2"
        events = await stage.events()
        assert [data["sources"] for name, data in events if name in ("sources", "done")] == [[], []]
        assert "".join(d["text"] for name, d in events if name == "token").strip() == answer["answer"]

    async def test_an_answer_that_only_begins_like_it(self, stage: Stage) -> None:
        """A beginning that could become the refusal is held back no longer than needed, and lost never."""
        text = NOT_SUPPORTED[:12] + " a price: 130 EUR [1]."
        stage.play(answer=text, pieces=2)
        events = await stage.events()
        assert events[0][1]["sources"] and events[-1][1]["answer"] == text
        assert "".join(data["text"] for name, data in events if name == "token") == text


BEFORE: list[dict[str, Any]] = [
    {"start": Refusal(500)},
    {"start": Refusal(429, headers={"Retry-After": "3"})},
    {"start": "hang"},
    {"models": ("another",)},
    {"answer": ""},
    {"answer": "[7]"},
    {"middle": "drop", "middle_after": 0},
]


@pytest.mark.parametrize("script", BEFORE, ids=lambda script: str(script)[:40])
async def test_failure_before_the_first_word(stage: Stage, script: dict[str, Any]) -> None:
    stage.play(**script)
    async with asyncio.timeout(20):
        answers = await asyncio.gather(stage.ask_raw(), stage.streamed())
    for refused in answers:
        assert refused.status == 503, refused.body
        assert refused.headers["Content-Type"].startswith("application/json")
        assert isinstance(refused.detail, str) and len(refused.detail) > 20
        assert SECRET_TEXT.encode() not in refused.body and stage.server.url.encode() not in refused.body


@pytest.mark.parametrize("middle", ["error", "hang", "end"])
async def test_failure_in_the_middle(stage: Stage, middle: str) -> None:
    """A plain answer is 503; a stream ends with `error` and without `done`: no half answer passes for one."""
    stage.play(middle=middle, middle_after=3)
    async with asyncio.timeout(20):
        plain, events = await asyncio.gather(stage.ask_raw(), stage.events())
    assert plain.status == 503 and SECRET_TEXT.encode() not in plain.body
    names = [name for name, _ in events]
    assert names[0] == "sources" and names[-1] == "error" and "done" not in names
    assert set(events[-1][1]) == {"detail", "code"}
    assert SECRET_TEXT not in json.dumps(events)


class TestClientThatLeaves:
    async def test_in_mid_stream(self, stage: Stage) -> None:
        """The runtime's connection is closed, on which it stops generating."""
        stage.play(middle="hang", middle_after=4)
        async with stage.stream() as answer:
            await answer.content.readany()
            answer.close()
        async with asyncio.timeout(0.9):
            await stage.server.disconnected.wait()

    async def test_before_the_answer(self, stage: Stage) -> None:
        stage.play(middle="hang", middle_after=4)
        asking = asyncio.create_task(stage.ask_raw())
        await stage.server.streaming.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        async with asyncio.timeout(0.9):
            await stage.server.disconnected.wait()


class TestSecrecy:
    async def test_the_prompt_holds_only_what_the_caller_sees(self, stage: Stage) -> None:
        """Not the neighbour's document, however near; not what a filter leaves out; not what was deleted."""
        marks = [f"mark{secrets.token_hex(4)}" for _ in range(4)]
        ben = await somebody(stage.running)
        theirs, mine = await make_base(ben), await make_base(stage.ann)
        await ingest(stage.running, ben, theirs, "b.md", f"A hotel may cost 999 EUR a night. {marks[0]}")
        for name, mark in zip(("seen.md", "left-out.md", "deleted.md"), marks[1:], strict=True):
            text = f"A hotel may cost 130 EUR a night. {mark}"
            document = await ingest(stage.running, stage.ann, mine, name, text)
        assert (await stage.ann.delete(path_of(mine, document["document_id"]))).status == 200
        pipeline = await make_pipeline(stage.ann, mine)
        await ask(stage.ann, pipeline, HOTEL, top_k=100, hybrid=True, metadata_filter={"source": "seen.md"})
        sent = json.dumps(stage.prompts[-1])
        assert [mark in sent for mark in marks] == [False, True, False, False]


async def test_what_the_service_tells_of_the_runtime(stage: Stage) -> None:
    """Root and health say that a runtime answers; when it does not, the platform is degraded, and goes on."""
    assert (await stage.ann.get("/v1/rag")).json()["ollama_available"] is True
    assert (await stage.ann.post("/v1/rag/initialize")).status == 200
    stage.play(start=Refusal(500))
    assert (await stage.ann.get("/v1/rag")).json()["ollama_available"] is False
    health = await stage.running.anonymous.get("/health")
    assert (health.status, health.json()["status"]) == (200, "degraded")
    refused = await stage.ann.post("/v1/rag/initialize")
    assert refused.status == 503 and "model runtime" in refused.detail


async def test_a_dead_runtime(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nobody listens at the address: 503, with what to check; documents are still taken in."""
    async with platforms(tmp_path_factory.mktemp("dead")) as start:
        running = await start(
            LoadedOnce, "models", "rag", "extractive_answers", env={ADDRESS[stage.kind]: "http://127.0.0.1:9"}
        )
        ann = await somebody(running)
        base = await make_base(ann)
        assert (await ingest(running, ann, base, "a.md", HANDBOOK))["status"] == "completed"
        refused = await ask_raw(ann, await make_pipeline(ann, base), HOTEL)
    assert refused.status == 503 and "address" in refused.detail and b"127.0.0.1" not in refused.body


MUSEUM = """# Museum

The museum opens at nine. Admission costs 12 EUR, for children 5 EUR. It was founded in 1897 by Anna Lorenz.
"""
ASKED = (HOTEL, "Who founded the museum?", "What is the daily allowance for meals?", "When does it open?")


async def shelf(running: Running, ann: Actor) -> str:
    """A pipeline over two documents."""
    base = await make_base(ann)
    for name, text in (("handbook.md", HANDBOOK), ("museum.md", MUSEUM)):
        await ingest(running, ann, base, name, text)
    return await make_pipeline(ann, base)


async def test_confidence_is_that_of_an_answer_without_a_model(
    stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Over the same passages, whatever the model says: the measure is theirs, and so are the scores."""
    async with platforms(tmp_path_factory.mktemp("quoting")) as start:
        running = await start(LoadedOnce, "rag", "extractive_answers")
        ann = await somebody(running)
        pipeline = await shelf(running, ann)
        quoted = [await ask(ann, pipeline, question) for question in ASKED]
    asked = replace(stage, pipeline=await shelf(stage.running, stage.ann))
    assert len({one["confidence"] for one in quoted}) > 1
    for question, expected in zip(ASKED, quoted, strict=True):
        assert expected["model_used"] == "extractive" and 0.0 < expected["confidence"] <= 1.0
        for said in (ANSWER, "I am not sure at all [2]."):
            stage.play(answer=said)
            whole, done = await asked.ask(question), dict(await asked.events(question))["done"]
            assert whole["model_used"] == done["model_used"] == "llama3.2"
            assert [whole["confidence"], done["confidence"]] == [_about(expected["confidence"])] * 2
            assert _scores(whole) == [(name, _about(score)) for name, score in _scores(expected)]


def _scores(answer: dict[str, Any]) -> list[tuple[str, float]]:
    return [(one["source"], one["score"]) for one in answer["sources"]]


def _about(score: float) -> Any:
    """The score, up to rounding: in int8, a text's vector depends a little on those computed beside it."""
    return pytest.approx(score, abs=0.01)
