"""Local embeddings: all-MiniLM-L6-v2 from a package, with no network and no model server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from builtin_plugins.embeddings import hookspecs
from builtin_plugins.embeddings.service import MODEL, LocalEmbeddings
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from kernel.sdk import Embedded, HealthCheck, Platform, Plugin, Resource, ResourceKey, Unhealthy, hookimpl

EMBEDDINGS: ResourceKey[LocalEmbeddings] = ResourceKey("embeddings")


class EmbeddingsPlugin(Plugin):
    """Brings the hook `embed_texts` and answers it for the local model."""

    name = "embeddings"
    version = "0.1.0"
    description = "Local text embeddings (all-MiniLM-L6-v2)"
    author = "Platform"

    def __init__(self) -> None:
        self._service: LocalEmbeddings | None = None

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [hookspecs]

    @hookimpl
    def register_settings(self) -> type[EmbeddingsSettings]:
        return EmbeddingsSettings

    @hookimpl
    def register_resources(self) -> Sequence[Resource[LocalEmbeddings]]:
        return [Resource(EMBEDDINGS, self._open)]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("embeddings", self._check, service="rag-pipeline")]

    @asynccontextmanager
    async def _open(self, platform: Platform) -> AsyncIterator[LocalEmbeddings]:
        durations = platform.metrics.histogram(
            "embedding_generation_duration_seconds", "Time to embed one batch of texts.", ("model",)
        )
        self._service = LocalEmbeddings(platform.settings_of(EmbeddingsSettings), durations)
        try:
            yield self._service
        finally:
            self._service.close()

    @hookimpl(trylast=True)
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        return None if self._service is None else await self._service.embed(model, texts)

    @hookimpl
    def list_embedding_models(self) -> Sequence[str]:
        return [MODEL]

    async def _check(self) -> None:
        problem = None if self._service is None else await self._service.problem()
        if problem is not None:
            raise Unhealthy(problem)
