"""Spans for embedding, by OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

from contextlib import AbstractContextManager

from kernel.sdk import TRACING, Platform, Span


def embedding_span(platform: Platform, model: str, provider: str) -> AbstractContextManager[Span]:
    """A span for a call of an embedding model; `provider` is ``platform`` if it runs in this process."""
    attributes = {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": provider,
        "gen_ai.system": provider,
        "gen_ai.request.model": model,
    }
    return platform.resource(TRACING).span(f"embeddings {model}", "client", attributes)
