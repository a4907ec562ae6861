"""Knowledge bases with embedding models of a model runtime, alone and beside the local one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running, Start, platforms
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    problems,
    somebody,
)
from tests.fakes.loaded_once import LoadedOnce
from tests.fakes.model_server import ModelServer, Refusal, Script, model_server, word_vector

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"
HOTEL = "How much may a hotel cost per night?"
NOMIC = "nomic-embed-text"
MODELS = (NOMIC, "mxbai-embed-large", "llama3.2")
ADDRESS = {"ollama": "OLLAMA_BASE_URL", "openai": "OPENAI_BASE_URL"}


@dataclass
class Stage:
    """A platform with a model runtime that embeds, and an account."""

    running: Running
    server: ModelServer
    ann: Actor

    def play(self, **script: Any) -> None:
        self.server.script = Script(**{"models": MODELS, "answer": "It costs 130 EUR [1].", **script})
        self.server.requests.clear()

    @property
    def embedded(self) -> list[str]:
        paths = ("/api/embed", "/v1/embeddings")
        return [text for one in self.server.requests if one.path in paths for text in one.body["input"]]


@pytest_asyncio.fixture(
    scope="module", loop_scope="session", params=["openai", pytest.param("ollama", marks=pytest.mark.long)]
)
async def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    async with model_server() as server, platforms(tmp_path_factory.mktemp("models")) as start:
        running = await start(
            LoadedOnce, "models", "rag", "extractive_answers", env={ADDRESS[request.param]: server.url}
        )
        yield Stage(running, server, await somebody(running))


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """The stage with a runtime that is well."""
    shared.play()
    return shared


async def test_a_model_of_the_runtime(stage: Stage) -> None:
    base = await make_base(stage.ann, embedding_model=NOMIC)
    document = await ingest(stage.running, stage.ann, base)
    assert document["status"] == "completed"
    answer = await ask(stage.ann, await make_pipeline(stage.ann, base), HOTEL)
    assert answer["sources"][0]["source"] == "handbook.md"
    assert any("Breakfast is paid" in text for text in stage.embedded)


async def test_passages_and_questions_are_told_apart(stage: Stage) -> None:
    for model, passage, query in (
        (NOMIC, "search_document: ", "search_query: "),
        ("mxbai-embed-large", "", "Represent this sentence for searching relevant passages: "),
    ):
        base = await make_base(stage.ann, embedding_model=model)
        stage.play()
        await ingest(stage.running, stage.ann, base)
        assert all(text.startswith(passage) for text in stage.embedded)
        stage.play()
        await ask(stage.ann, await make_pipeline(stage.ann, base), HOTEL)
        assert stage.embedded[0] == query + HOTEL


async def test_an_unknown_model_names_those_there_are(stage: Stage) -> None:
    answer = await stage.ann.post(BASES, json={"name": "n", "embedding_model": "magic-embed"})
    said = problems(answer)["body.embedding_model"]
    assert all(name in said for name in ("all-minilm", NOMIC, "mxbai-embed-large"))
    assert "llama3.2" not in said


async def test_a_runtime_that_is_away(stage: Stage) -> None:
    stage.play(start=Refusal(500))
    refused = await stage.ann.post(BASES, json={"name": "n", "embedding_model": NOMIC})
    assert refused.status == 503 and "model runtime" in refused.detail
    assert (await stage.ann.post(BASES, json={"name": "n", "embedding_model": "all-minilm"})).status == 200
    assert (await stage.ann.post(BASES, json={"name": "n"})).status == 200


async def test_questions_while_the_runtime_is_away(stage: Stage) -> None:
    base = await make_base(stage.ann, embedding_model=NOMIC)
    await ingest(stage.running, stage.ann, base)
    pipeline = await make_pipeline(stage.ann, base)
    for start in (Refusal(500), "drop", "garbage"):
        stage.play(start=start)
        assert (await ask_raw(stage.ann, pipeline, HOTEL)).status == 503
    stage.play(models=("llama3.2",))
    refused = await ask_raw(stage.ann, pipeline, HOTEL)
    assert refused.status == 503 and f"'{NOMIC}'" in refused.detail
    stage.play()
    assert (await ask(stage.ann, pipeline, HOTEL))["sources"]


async def test_a_model_that_changed_its_vectors(stage: Stage) -> None:
    """Another length under the same name is another engine: the remedy is told, nothing is compared."""
    base = await make_base(stage.ann, embedding_model=NOMIC)
    await ingest(stage.running, stage.ann, base)
    pipeline = await make_pipeline(stage.ann, base)
    stage.play(embedding=lambda text: word_vector(text, 32))
    refused = await ask_raw(stage.ann, pipeline, HOTEL)
    failed = await ingest(stage.running, stage.ann, base, "b.txt", "Another text.")
    assert (refused.status, refused.json()["code"], failed["status"]) == (503, "engine_changed", "failed")
    for said in (refused.detail, failed["error"]):
        assert "[16]" in said and "[32]" in said and "reembed" in said


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("local_first", [False, True])
async def test_two_models_in_one_pipeline(stage: Stage, hybrid: bool, local_first: bool) -> None:
    local, remote = await make_base(stage.ann), await make_base(stage.ann, embedding_model=NOMIC)
    await ingest(
        stage.running, stage.ann, local, "pumps.md", "The filter of the pump is changed every April."
    )
    await ingest(stage.running, stage.ann, remote, "travel.md", HANDBOOK)
    bases = (local, remote) if local_first else (remote, local)
    pipeline = await make_pipeline(stage.ann, *bases)
    answer = await ask(stage.ann, pipeline, HOTEL, hybrid=hybrid)
    names = [source["source"] for source in answer["sources"]]
    assert names[0] == "travel.md" and set(names) == {"travel.md", "pumps.md"}
    assert all(-1 <= source["score"] <= 1.001 for source in answer["sources"])


@pytest.mark.asyncio(loop_scope="function")
async def test_a_model_whose_plugin_is_gone(start_platform: Start) -> None:
    """Without the plugin that embeds, questions and new knowledge bases say what is missing."""
    running = await start_platform(LoadedOnce, "rag", "extractive_answers")
    ann = await somebody(running)
    base = await make_base(ann)
    await ingest(running, ann, base)
    pipeline = await make_pipeline(ann, base)
    without = await start_platform("rag", "extractive_answers")
    ann.running = without
    refused = await ask_raw(ann, pipeline, HOTEL)
    assert refused.status == 503 and "multilingual-e5-small" in refused.detail
    said = problems(await ann.post(BASES, json={"name": "n"}))["body.embedding_model"]
    assert "embeddings plugin" in said
