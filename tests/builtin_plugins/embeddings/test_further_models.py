"""Models that an operator names: folders in sentence-transformers' format, endpoints, mistakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from pydantic import ValidationError

from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.inference import api as inference
from kernel.sdk import Unavailable
from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.rag.rag_support import (
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    problems,
    somebody,
)
from tests.fakes.llama_server import llama_server
from tests.fakes.model_server import ModelServer, Refusal, Script, model_server, word_vector
from tests.fakes.tiny_models import declared, sentence_transformer

session = pytest.mark.asyncio(loop_scope="session")
KEY = "far-secret"
TEXT = "A hotel costs 90 EUR a night. The pump of the station is oiled in May."
QUESTION = "What costs a night in the hotel?"


class Stage:
    """A platform with models of both kinds, and the endpoint of one."""

    def __init__(self, running: Running, server: ModelServer, ann: Actor, folder: Path) -> None:
        self.running, self.server, self.ann, self.folder = running, server, ann, folder

    async def embed(self, model: str, texts: list[str], purpose: str = "passage") -> Any:
        return await self.running.platform.hooks.ask(
            inference.embed_texts, self.running.platform, model=model, texts=texts, purpose=purpose
        )

    @property
    def sent(self) -> list[str]:
        return [
            text for one in self.server.requests if one.path == "/v1/embeddings" for text in one.body["input"]
        ]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    home = tmp_path_factory.mktemp("further")
    folder = sentence_transformer(home / "tiny", prompts={"query": "who ", "document": "the "})
    damaged = sentence_transformer(home / "damaged")
    for file in damaged.rglob("*.safetensors"):
        file.write_bytes(b"no weights")
    async with model_server() as server, platforms(home) as start:
        server.script = Script(models=("far",), reverse_embeddings=True)
        far: dict[str, object] = {"url": f"{server.url}/v1", "model": "far", "dimension": 16}
        models = declared(
            tiny={"folder": folder, "dimension": 16},
            other_tiny={"folder": folder, "dimension": 16, "passage_prefix": "a ", "max_tokens": 16},
            wrong={"folder": folder, "dimension": 384},
            long={"folder": folder, "dimension": 16, "max_tokens": 512},
            gone={"folder": home / "nowhere", "dimension": 16},
            damaged={"folder": damaged, "dimension": 16},
            far={**far, "passage_prefix": "p: ", "query_prefix": "q: ", "max_chars": 100, "batch": 2},
            far_wrong={**far, "dimension": 8},
        )
        env = {"PLATFORM_EMBEDDINGS_MODELS": models, "PLATFORM_EMBEDDINGS_KEYS": f"far={KEY}"}
        running = await start("embeddings", "rag", "extractive_answers", env=env)
        yield Stage(running, server, await somebody(running), folder)


@pytest.mark.long
@session
async def test_a_folder(stage: Stage) -> None:
    """Its vectors are those of the published library, with the prompts that its makers wrote down."""
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(str(stage.folder), device="cpu", local_files_only=True)
    for purpose, prefix in (("passage", "the "), ("query", "who ")):
        found = await stage.embed("tiny", ["hotel night", ""], purpose)
        expected = reference.encode([f"{prefix}hotel night", prefix], normalize_embeddings=True)
        assert np.abs(found.vectors - expected).max() < 1e-5
        assert found.engine.startswith("sentence-transformers/tiny/fp32/")


@session
async def test_the_prefix_of_passages_is_part_of_the_engine(stage: Stage) -> None:
    one, other = await stage.embed("tiny", ["hotel"]), await stage.embed("other-tiny", ["hotel"])
    assert one.engine.rpartition("/")[2] != other.engine.rpartition("/")[2]
    assert not np.allclose(one.vectors, other.vectors)


@session
async def test_an_endpoint(stage: Stage) -> None:
    """Prefixes, the greatest length, batches in the right order, and the key."""
    stage.server.requests.clear()
    texts = ["hotel", "pump " * 100, "", "station"]
    found = await stage.embed("far", texts)
    assert stage.sent == ["p: hotel", "p: " + "pump " * 20, "p: ", "p: station"]
    expected = np.array([word_vector(text) for text in stage.sent], np.float32)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(found.vectors, expected / np.where(lengths > 0, lengths, 1), atol=1e-6)
    assert {one.headers.get("Authorization") for one in stage.server.requests} == {f"Bearer {KEY}"}
    stage.server.requests.clear()
    assert (await stage.embed("FAR", ["hotel"], "query")).engine == found.engine and stage.sent == [
        "q: hotel"
    ]


@session
@pytest.mark.parametrize("model", ["tiny", "far"])
async def test_from_the_knowledge_base_to_the_answer(stage: Stage, model: str) -> None:
    base = await make_base(stage.ann, embedding_model=model)
    assert (await ingest(stage.running, stage.ann, base, "a.txt", TEXT))["status"] == "completed"
    found = await stage.ann.post(f"/v1/rag/knowledge-bases/{base}/search", json={"question": QUESTION})
    assert found.status == 200 and "hotel" in found.json()["items"][0]["text"]


@session
@pytest.mark.parametrize(
    ("model", "reason"),
    [("wrong", "'dimension'.*is 384"), ("long", "reads 64 tokens"), ("far-wrong", "vectors of 16 numbers")],
)
async def test_a_setting_that_does_not_fit_the_model(stage: Stage, model: str, reason: str) -> None:
    refused = await stage.ann.post("/v1/rag/knowledge-bases", json={"name": "n", "embedding_model": model})
    assert refused.status == 503
    with pytest.raises(Unavailable, match=reason):
        await stage.embed(model, ["x"])


@session
@pytest.mark.parametrize("model", ["gone", "damaged"])
async def test_a_folder_that_cannot_be_read(stage: Stage, model: str) -> None:
    with pytest.raises(Unavailable, match=f" {model} ") as refused:
        await stage.embed(model, ["x"])
    assert "/" not in str(refused.value.detail)
    health = (await stage.running.anonymous.get("/health")).json()
    assert health["checks"]["embeddings"] != "healthy"


@session
async def test_all_are_listed(stage: Stage) -> None:
    """Whoever names an unknown model reads the names of all."""
    answer = await stage.ann.post("/v1/rag/knowledge-bases", json={"name": "n", "embedding_model": "magic"})
    assert (
        "tiny" in problems(answer)["body.embedding_model"]
        and "far" in problems(answer)["body.embedding_model"]
    )


@session
async def test_it_does_not_fit_what_a_collection_holds(stage: Stage, tmp_path: Path) -> None:
    """Another folder under the same name: questions and documents are refused, with both identities."""
    async with platforms(tmp_path) as start:
        for prefix in ("the ", "a "):
            models = declared(mine={"folder": stage.folder, "dimension": 16, "passage_prefix": prefix})
            running = await start(
                "embeddings", "rag", "extractive_answers", env={"PLATFORM_EMBEDDINGS_MODELS": models}
            )
            if prefix == "the ":
                ann = await somebody(running)
                base = await make_base(ann, embedding_model="mine")
                await ingest(running, ann, base, "a.txt", TEXT)
                pipeline = await make_pipeline(ann, base)
        ann.running = running
        refused = await ask_raw(ann, pipeline, QUESTION)
        assert (refused.status, refused.json()["code"]) == (503, "engine_changed")
        failed = await ingest(running, ann, base, "b.txt", "The pump.")
        assert failed["status"] == "failed"
        for said in (refused.detail, failed["error"]):
            assert said.count("sentence-transformers/mine/fp32/") == 2


@asynccontextmanager
async def far_away(folder: Path) -> AsyncIterator[tuple[ModelServer, Running, Actor, str]]:
    async with model_server() as server, platforms(folder) as start:
        server.script = Script(models=("far",))
        models = declared(far={"url": server.url, "dimension": 16})
        running = await start(
            "embeddings", "rag", "extractive_answers", env={"PLATFORM_EMBEDDINGS_MODELS": models}
        )
        ann = await somebody(running)
        yield server, running, ann, await make_base(ann, embedding_model="far")


async def test_an_endpoint_that_asks_for_patience(tmp_path: Path) -> None:
    async with far_away(tmp_path) as (server, running, ann, base):
        busy = Refusal(429, headers={"Retry-After": "0"})
        begun = len(server.requests)
        server.script = Script(models=("far",), start=busy, start_times=begun + 7)
        assert (await ingest(running, ann, base, "a.txt", TEXT))["status"] == "completed"
        assert len(server.requests) == begun + 8
        server.script = Script(models=("far",), start=busy)
        refused = await ann.post(f"/v1/rag/knowledge-bases/{base}/search", json={"question": QUESTION})
        assert refused.status == 503 and "status 429" in refused.detail
        assert len(server.requests) == begun + 9


async def test_an_endpoint_that_asks_for_too_much_patience(tmp_path: Path) -> None:
    """Nobody waits for the quota of tomorrow inside a job: it is tried again like any that failed."""
    async with far_away(tmp_path) as (server, running, ann, base):
        exhausted = Refusal(429, headers={"Retry-After": "3600"})
        begun = len(server.requests)
        server.script = Script(models=("far",), start=exhausted, start_times=begun + 2)
        async with asyncio.timeout(20):
            assert (await ingest(running, ann, base, "a.txt", TEXT))["status"] == "completed"
        assert len(server.requests) == begun + 3


async def test_a_real_server(tmp_path: Path) -> None:
    """llama.cpp's own server, by its address and the name of its model."""
    with llama_server("mean") as url:
        models = declared(llama={"url": url, "model": "smollm2", "dimension": 576})
        async with platforms(tmp_path) as start:
            running = await start("embeddings", env={"PLATFORM_EMBEDDINGS_MODELS": models})
            found = await running.platform.hooks.ask(
                inference.embed_texts,
                running.platform,
                model="llama",
                texts=["A hotel by the sea.", "A hotel at the sea.", "Pumps are oiled in May."],
                purpose="passage",
            )
    alike, other = float(found.vectors[0] @ found.vectors[1]), float(found.vectors[0] @ found.vectors[2])
    assert found.vectors.shape == (3, 576) and alike > other


@pytest.mark.parametrize(
    ("models", "reason"),
    [
        ('{"a": {"dimension": 8}}', "'folder' or 'url'"),
        ('{"a": {"folder": "/x"}}', "dimension"),
        ('{"a": {"folder": "/x", "dimension": 8, "model": "m"}}', "'url'"),
        ('{"a": {"url": "http://h", "dimension": 8, "max_tokens": 99}}', "max_chars"),
        ('{"a": {"url": "ftp://h", "dimension": 8}}', "url"),
        ('{"A b": {"folder": "/x", "dimension": 8}}', "lower-case"),
        ('{"all-minilm": {"folder": "/x", "dimension": 8}}', "'all-minilm'"),
        ("{", "models"),
    ],
)
def test_settings_that_make_no_sense(models: str, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        EmbeddingsSettings.model_validate({"models": models})


def test_a_key_without_a_model() -> None:
    with pytest.raises(ValidationError, match="'far'"):
        EmbeddingsSettings.model_validate({"keys": "far=secret"})
