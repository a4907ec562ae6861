"""Model runtimes: generation and embeddings through Ollama or an OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from builtin_plugins.models import hookspecs
from builtin_plugins.models.purposes import Purpose
from builtin_plugins.models.service import Models, Pieces, open_runtime
from builtin_plugins.models.settings import ModelsSettings
from kernel.sdk import Embedded, HealthCheck, Platform, Plugin, Resource, ResourceKey, Unhealthy, hookimpl

MODELS: ResourceKey[Models | None] = ResourceKey("model runtime")


class ModelsPlugin(Plugin):
    """Brings the hook `generate_text`; answers it and `embed_texts` where a runtime is configured."""

    name = "models"
    version = "0.1.0"
    description = "Model runtimes: Ollama and OpenAI-compatible servers"
    author = "Platform"

    def __init__(self) -> None:
        self._models: Models | None = None

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [hookspecs]

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
        messages: Sequence[Mapping[str, str]],
        model: str | None,
        temperature: float,
        max_tokens: int,
        options: Mapping[str, Any],
    ) -> Pieces | None:
        if self._models is None:
            return None
        return self._models.generate(messages, model, temperature, max_tokens, options)

    @hookimpl
    async def check_model_runtime(self) -> bool | None:
        return None if self._models is None else await self._models.runtime.healthy()

    @hookimpl(optionalhook=True, trylast=True)
    async def embed_texts(self, model: str, texts: Sequence[str], purpose: Purpose) -> Embedded | None:
        return None if self._models is None else await self._models.embed(model, texts, purpose)

    @hookimpl(optionalhook=True)
    async def list_embedding_models(self) -> Sequence[str]:
        return [] if self._models is None else await self._models.embedding_models()

    @asynccontextmanager
    async def _open(self, platform: Platform) -> AsyncIterator[Models | None]:
        settings = platform.settings_of(ModelsSettings)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            found = open_runtime(session, settings)
            if found is None:
                yield None
                return
            durations = platform.metrics.histogram(
                "llm_generation_duration_seconds", "Time of one generation.", ("model",)
            )
            self._models = Models(*found, settings, durations)
            yield self._models

    async def _check(self) -> None:
        if self._models is not None and not await self._models.runtime.healthy():
            raise Unhealthy("the model runtime does not answer; check its address and that it runs")
