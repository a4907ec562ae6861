"""The models plugin in a platform: its hooks, its settings, what it tells of a runtime that is away."""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import Any

import pytest

from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from builtin_plugins.models.settings import ModelsSettings
from kernel.sdk import StartupError, Unavailable
from kernel.settings.loading import SettingsLoader
from kernel.testing import Running, Start
from tests.fakes.model_server import Refusal, Script, model_server

KEY = "sk-0123456789-very-secret"
REQUEST: dict[str, Any] = {
    "messages": [inference.ChatMessage("user", "Hi?")],
    "model": None,
    "temperature": 0.2,
    "max_tokens": 50,
    "options": {},
}


async def collect(running: Running, **options: Any) -> list[Any]:
    stream = running.platform.hooks.ask_now(
        inference.generate_text, platform=running.platform, **{**REQUEST, **options}
    )
    assert stream is not None
    async with aclosing(stream):
        return [item async for item in stream]


async def test_without_a_runtime(start_platform: Start) -> None:
    """Every question is answered with "not mine", and nothing is unwell."""
    running = await start_platform("embeddings", "models")
    platform, hooks = running.platform, running.platform.hooks
    assert hooks.ask_now(inference.generate_text, platform=platform, **REQUEST) is None
    assert await hooks.ask(inference.check_model_runtime, platform) is None
    assert (
        await hooks.ask(
            inference.embed_texts, platform, model="nomic-embed-text", texts=["a"], purpose="query"
        )
        is None
    )
    health = (await running.anonymous.get("/health")).json()
    assert (health["status"], health["checks"]["ollama"]) == ("healthy", "not configured")


async def test_made_up_models_are_counted_as_one(start_platform: Start) -> None:
    """A question may name any model; a series or a row for each name would grow without end."""
    async with model_server(Script(models=("llama3.2",))) as server:
        running = await start_platform("models", env={"OLLAMA_BASE_URL": server.url})
        for name in ("made-up", "made-up-too"):
            with pytest.raises(Unavailable, match=name):
                await collect(running, model=name)
        assert b"made-up" not in (await running.anonymous.get("/metrics")).body
        admin = await running.user(role="admin")
        used = {name: await admin.get(f"/v1/models/{name}/metrics") for name in ("unknown", "made-up")}
        assert {name: reply.json()["errors"] for name, reply in used.items()} == {"unknown": 2, "made-up": 0}


async def test_hooks_reach_the_runtime(start_platform: Start) -> None:
    async with model_server(Script(answer="one two", models=("llama3.2", "nomic-embed-text"))) as server:
        running = await start_platform("embeddings", "models", env={"OLLAMA_BASE_URL": server.url})
        *texts, summary = await collect(running)
        assert "".join(texts) == "one two"
        assert summary == inference.Completion("one two", 18, "llama3.2", "stop", 7)
        platform, hooks = running.platform, running.platform.hooks
        assert await hooks.ask(inference.check_model_runtime, platform) is True
        found = await hooks.ask(
            inference.embed_texts, platform, model="nomic-embed-text", texts=["a", "b"], purpose="query"
        )
        assert isinstance(found, Embedded)
        assert (found.vectors.shape, found.engine) == ((2, 16), "ollama/nomic-embed-text")
        assert (
            await hooks.ask(inference.embed_texts, platform, model="unheard-of", texts=["a"], purpose="query")
            is None
        )
        names = [
            name for names in await hooks.ask(inference.list_embedding_models, platform) for name in names
        ]
        assert sorted(names) == ["all-minilm", "multilingual-e5-small", "nomic-embed-text"]
        metrics = (await running.anonymous.get("/metrics")).body.decode()
    assert re.search(r'llm_generation_duration_seconds_count\{model="llama3.2"\} 1', metrics)


async def test_the_default_model_is_a_setting(start_platform: Start) -> None:
    async with model_server(Script(models=("tiny",))) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OLLAMA_LLM_MODEL": "tiny"}
        running = await start_platform("models", env=env)
        assert (await collect(running))[-1].model == "tiny"
        with pytest.raises(Unavailable, match="no model 'large'"):
            await collect(running, model="large")


async def test_the_key_goes_to_the_runtime_and_nowhere_else(
    start_platform: Start, caplog: pytest.LogCaptureFixture
) -> None:
    async with model_server(Script(api_key=KEY, models=("llama3.2",))) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        running = await start_platform("models", env=env)
        assert (await collect(running))[-1].text
        server.script = Script(start=Refusal(401))
        with pytest.raises(Unavailable, match="API key") as refused:
            await collect(running)
        health = await running.anonymous.get("/health")
    assert KEY not in caplog.text + str(refused.value) + health.body.decode()
    assert KEY not in repr(running.platform.settings_of(ModelsSettings))


async def test_a_runtime_that_is_away(start_platform: Start) -> None:
    running = await start_platform("models", env={"OLLAMA_BASE_URL": "http://127.0.0.1:9"})
    assert await running.platform.hooks.ask(inference.check_model_runtime, running.platform) is False
    health = await running.anonymous.get("/health")
    assert (health.status, health.json()["status"]) == (200, "degraded")
    text = health.json()["checks"]["ollama"]
    assert text.startswith("unhealthy: ") and "127.0.0.1" not in text
    with pytest.raises(Unavailable):
        await collect(running)


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("OLLAMA_BASE_URL", "http://gpu:11434/", "http://gpu:11434"),
        ("OLLAMA_HOST", "gpu", "http://gpu:11434"),
        ("OLLAMA_HOST", "gpu:9000", "http://gpu:9000"),
        ("OLLAMA_HOST", "[::1]", "http://[::1]:11434"),
        ("OLLAMA_HOST", "0.0.0.0", "http://127.0.0.1:11434"),
        ("OLLAMA_HOST", ":9000", "http://127.0.0.1:9000"),
        ("OLLAMA_BASE_URL", "https://models.example.org/ollama", "https://models.example.org/ollama"),
        ("OLLAMA_BASE_URL", "", None),
    ],
)
def test_addresses(name: str, given: str, read: str | None) -> None:
    """Ollama's own variable is a host, perhaps with a port, perhaps what a server listens on."""
    loader = SettingsLoader({name: given, "PLATFORM_HOME": "/nowhere"})
    assert loader.load("models", ModelsSettings).ollama_url == read


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("OLLAMA_BASE_URL", "ftp://gpu"),
        ("OPENAI_BASE_URL", "file:///etc/passwd"),
        ("OPENAI_BASE_URL", "http://"),
        ("OLLAMA_HOST", "gpu:port"),
        ("PLATFORM_MODELS_SILENCE_SECONDS", "0"),
        ("PLATFORM_MODELS_CONTEXT_TOKENS", "12"),
    ],
)
def test_settings_that_do_not_fit(name: str, given: str) -> None:
    loader = SettingsLoader({name: given, "PLATFORM_HOME": "/nowhere"})
    with pytest.raises(StartupError, match=name):
        loader.load("models", ModelsSettings)
