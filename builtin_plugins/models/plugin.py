"""Model runtimes: generation and embeddings through Ollama or an OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from builtin_plugins.models.service import Models, open_runtime
from builtin_plugins.models.settings import ModelsSettings
from kernel.sdk import (
    OUTGOING,
    Embedded,
    HealthCheck,
    NotConfigured,
    Platform,
    Plugin,
    Resource,
    ResourceKey,
    Unhealthy,
    contracts,
    hookimpl,
)

MODELS: ResourceKey[Models | None] = ResourceKey("model runtime")


class ModelsPlugin(Plugin):
    """Answers `generate_text` and `embed_texts` where a runtime is configured."""

    name = "models"
    version = "0.1.0"
    description = "Model runtimes: Ollama and OpenAI-compatible servers"
    author = "Platform"

    @hookimpl
    def register_settings(self) -> type[ModelsSettings]:
        return ModelsSettings

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Models | None]]:
        return [Resource(MODELS, self._open)]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("ollama", self._check, service="rag-pipeline")]

    @hookimpl
    def generate_text(
        self,
        platform: Platform,
        messages: Sequence[contracts.ChatMessage],
        model: str | None,
        temperature: float,
        max_tokens: int,
        options: Mapping[str, Any],
    ) -> contracts.Generation | None:
        models = platform.resource(MODELS)
        return None if models is None else models.generate(messages, model, temperature, max_tokens, options)

    @hookimpl
    def chat_with_model(
        self, platform: Platform, request: contracts.ChatRequest
    ) -> contracts.ChatEvents | None:
        models = platform.resource(MODELS)
        return None if models is None else models.chat(request)

    @hookimpl
    async def list_chat_models(self, platform: Platform) -> Sequence[str]:
        models = platform.resource(MODELS)
        return [] if models is None else await models.chat_models()

    @hookimpl
    async def check_model_runtime(self, platform: Platform) -> bool | None:
        models = platform.resource(MODELS)
        return None if models is None else await models.runtime.healthy()

    @hookimpl(trylast=True)
    async def embed_texts(
        self, platform: Platform, model: str, texts: Sequence[str], purpose: contracts.Purpose
    ) -> Embedded | None:
        models = platform.resource(MODELS)
        return None if models is None else await models.embed(model, texts, purpose)

    @hookimpl
    async def list_embedding_models(self, platform: Platform) -> Sequence[str]:
        models = platform.resource(MODELS)
        return [] if models is None else await models.embedding_models()

    @asynccontextmanager
    async def _open(self, platform: Platform) -> AsyncIterator[Models | None]:
        settings = platform.settings_of(ModelsSettings)
        named = [url for url in (settings.ollama_url, settings.openai_url) if url]
        async with platform.resource(OUTGOING).client("models", named=named) as client:
            found = open_runtime(client, settings)
            if found is None:
                yield None
                return
            durations = platform.metrics.histogram(
                "llm_generation_duration_seconds", "Time of one generation.", ("model",)
            )
            yield Models(*found, settings, durations)

    async def _check(self, platform: Platform) -> None:
        models = platform.resource(MODELS)
        if models is None:
            raise NotConfigured()
        if not await models.runtime.healthy():
            raise Unhealthy("the model runtime does not answer; check its address and that it runs")
