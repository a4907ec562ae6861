"""The engine that asks a model, with a scripted runtime."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from kernel.testing import Running, platforms, somebody
from tests.builtin_plugins.graph_rag.graph_support import (
    API,
    call,
    construct,
    documents,
    ingest,
    make_base,
    names,
)
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.model_server import ModelServer, Refusal, model_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "Ada Lindqvist runs the station. The station Senja belongs to NRI, said Ada Lindqvist."
ANSWER = {
    "entities": [
        {"text": "Ada Lindqvist", "label": "PERSON"},
        {"text": "Senja", "label": "ISLAND"},
        {"text": "NRI", "label": "ORG"},
        {"text": "Atlantis", "label": "GPE"},
    ],
    "relations": [
        {"subject": "Senja", "predicate": "belongs to", "object": "NRI"},
        {"subject": "Ada Lindqvist", "predicate": "rules", "object": "Atlantis"},
    ],
}


@dataclass(frozen=True)
class Stage:
    running: Running
    server: ModelServer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with model_server() as server, platforms(tmp_path_factory.mktemp("modelled")) as start:
        env = {
            "OPENAI_BASE_URL": server.url,
            "PLATFORM_GRAPH_RAG_ENGINE": "model",
            "PLATFORM_GRAPH_RAG_LLM_MODEL": "tiny",
        }
        yield Stage(
            await start("models", "rag", "extractive_answers", "graph_rag", HashEmbeddings(), env=env), server
        )


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """A model that answers as it should."""
    shared.server.script.start = None
    shared.server.script.answer = json.dumps(ANSWER)
    shared.server.requests.clear()
    return shared


async def test_names_and_relations(stage: Stage) -> None:
    """Every place of every name, with a label that is known; what the text does not have is dropped."""
    ann = await somebody(stage.running)
    found = await call(ann, "extract", text=TEXT)
    assert [(one["text"], one["label"]) for one in found["entities"]] == [
        ("Ada Lindqvist", "PERSON"),
        ("Senja", "NOUN_PHRASE"),
        ("NRI", "ORG"),
        ("Ada Lindqvist", "PERSON"),
    ]
    assert all(TEXT[one["start"] : one["end"]] == one["text"] for one in found["entities"])
    expected = {"subject": "Senja", "predicate": "belongs to", "object": "NRI", "type": "SVO"}
    assert found["relationships"] == [expected]
    asked = stage.server.requests[-1].body
    assert asked["model"] == "tiny" and asked["response_format"]["type"] == "json_schema"
    assert TEXT in asked["messages"][-1]["content"]


async def test_in_the_graph(stage: Stage) -> None:
    """Graphs of texts and of knowledge bases are built by it, and walked over its relations."""
    ann = await somebody(stage.running)
    await construct(ann, "a", TEXT)
    related = await call(ann, "retrieve", query="What belongs to NRI?")
    assert names(related, "related_entities") == ["Senja"]
    base = await make_base(ann, graph=True)
    document = await ingest(stage.running, ann, base, "a.txt", TEXT)
    assert document in await documents(ann)


@pytest.mark.parametrize("answer", ["I found nothing, sorry.", '{"entities": "none"}', "{" * 100, ""])
async def test_answers_that_can_not_be_read(stage: Stage, answer: str) -> None:
    stage.server.script.answer = answer
    ann = await somebody(stage.running)
    found = await call(ann, "extract", text=TEXT)
    assert "Ada Lindqvist" in names(found)
    assert len(stage.server.requests) == 2


async def test_words_around_the_object(stage: Stage) -> None:
    stage.server.script.answer = f"Here it is:\n```json\n{json.dumps(ANSWER)}\n```"
    ann = await somebody(stage.running)
    assert "Senja" in names(await call(ann, "extract", text=TEXT))


async def test_a_failing_runtime(stage: Stage) -> None:
    """It is 503 without the runtime's own words; graphs that are there still answer."""
    stage.server.script.start = Refusal(500)
    ann = await somebody(stage.running)
    refused = await ann.post(f"{API}/extract", json={"text": TEXT})
    assert refused.status == 503
    assert "gpu-7" not in refused.detail
    assert names(await call(ann, "graph/search", query="Senja")) == []


async def test_no_runtime(tmp_path: Path) -> None:
    """The remedy names the settings, and /health says so."""
    async with platforms(tmp_path) as start:
        running = await start("models", "graph_rag", env={"PLATFORM_GRAPH_RAG_ENGINE": "model"})
        ann = await somebody(running)
        refused = await ann.post(f"{API}/extract", json={"text": TEXT})
        assert refused.status == 503 and "OPENAI_BASE_URL" in refused.detail
        checks = (await running.anonymous.get("/health")).json()["checks"]
        assert "OPENAI_BASE_URL" in checks["entity_extractor"]
