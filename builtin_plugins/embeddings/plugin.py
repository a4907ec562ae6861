"""Local embeddings: models from packages, with no network and no model server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from builtin_plugins.embeddings.catalog import MODELS, LocalModel, is_left_out
from builtin_plugins.embeddings.further.endpoint import EndpointModel
from builtin_plugins.embeddings.further.opening import local_models, open_endpoints
from builtin_plugins.embeddings.service import LocalEmbeddings
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from kernel.sdk import (
    Diagnostic,
    HealthCheck,
    Platform,
    Plugin,
    Resource,
    ResourceKey,
    Unhealthy,
    hookimpl,
)

EMBEDDINGS: ResourceKey[LocalEmbeddings] = ResourceKey("embeddings")
ENDPOINTS: ResourceKey[Mapping[str, EndpointModel]] = ResourceKey("embedding endpoints")


class EmbeddingsPlugin(Plugin):
    """Implements `embed_texts` for the local models, and those named in the settings."""

    models: Sequence[LocalModel] = MODELS
    name = "embeddings"
    version = "0.1.0"
    description = "Local text embeddings (multilingual-e5-small, all-MiniLM-L6-v2)"
    author = "Platform"
    requires = ("inference",)
    may_start_slowly = True  # with PLATFORM_EMBEDDINGS_PRELOAD

    @hookimpl
    def register_settings(self) -> type[EmbeddingsSettings]:
        return EmbeddingsSettings

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [Resource(EMBEDDINGS, self._open), Resource(ENDPOINTS, open_endpoints)]

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        from builtin_plugins.embeddings.diagnostics import DIAGNOSTICS  # asked by the terminal alone

        return DIAGNOSTICS

    @hookimpl
    def describe_embedding_model(self, platform: Platform, model: str) -> inference.ModelDescription:
        from builtin_plugins.embeddings.diagnostics import describe_model  # asked by the terminal alone

        return describe_model(platform.settings_of(EmbeddingsSettings), model)

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("embeddings", self._check, service="rag-pipeline")]

    @hookimpl
    async def on_start(self, platform: Platform) -> None:
        if platform.role == "api":
            # Beyond the limit, the plugin would be taken out of service.
            await platform.resource(EMBEDDINGS).preload(0.9 * platform.settings.plugin_start_timeout)

    @asynccontextmanager
    async def _open(self, platform: Platform) -> AsyncIterator[LocalEmbeddings]:
        durations = platform.metrics.histogram(
            "embedding_generation_duration_seconds", "Time to embed one batch of texts.", ("model",)
        )
        settings = platform.settings_of(EmbeddingsSettings)
        models = [*self.models, *await local_models(settings)]
        service = LocalEmbeddings(platform, models, settings, durations)
        try:
            yield service
        finally:
            service.close()

    @hookimpl(trylast=True)
    async def embed_texts(
        self, platform: Platform, model: str, texts: Sequence[str], purpose: inference.Purpose
    ) -> Embedded | None:
        endpoint = platform.resource(ENDPOINTS).get(model.lower())
        if endpoint is not None:
            return await endpoint.embed(texts, purpose)
        return await platform.resource(EMBEDDINGS).embed(model, texts, purpose)

    @hookimpl
    def list_embedding_models(self, platform: Platform) -> Sequence[str]:
        settings = platform.settings_of(EmbeddingsSettings)
        here = [model.name for model in self.models if not is_left_out(model, settings)]
        return [*here, *settings.models]

    async def _check(self, platform: Platform) -> None:
        problem = await platform.resource(EMBEDDINGS).problem()
        if problem is not None:
            raise Unhealthy(problem)
