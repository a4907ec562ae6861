"""Embed texts with the plugin that implements `embed_texts`."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.errors import EngineChanged, ModelUnavailable
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.vectors.api import EngineMismatch
from kernel.sdk import Platform, Unprocessable


async def embed(platform: Platform, model: str, texts: Sequence[str], purpose: inference.Purpose) -> Embedded:
    """One vector for each text. Raises ModelUnavailable, or what the answering plugin raises for clients."""
    return await inference.embed(platform, model, texts, purpose, ModelUnavailable)


def engine_changed(model: str, error: EngineMismatch) -> EngineChanged:
    """The error for vectors that don't match those of a knowledge base."""
    return EngineChanged(
        f"This knowledge base was embedded with {error.stored}, but '{model}' now runs on {error.current}. "
        "Switch back to the former engine (PLATFORM_EMBEDDINGS_PRECISION may be enough), or embed the "
        f"documents again: POST /v1/rag/knowledge-bases/{{id}}/reembed with '{model}'."
    )


async def check_embedding_model(platform: Platform, requested_model: str | None) -> str:
    """The model to embed with. Raises Unprocessable, which names the available models, and Unavailable."""
    default = platform.settings_of(RagSettings).embedding_model
    model = requested_model or default
    hooks = platform.hooks
    listed = await hooks.ask(inference.list_embedding_models, platform=platform)
    available = [name for names in listed for name in names]
    if model == default and model in available:  # for any other, a test vector proves that its settings work
        return model
    probe = await hooks.ask(
        inference.embed_texts, platform=platform, model=model, texts=["probe"], purpose="query"
    )
    if probe is not None:
        return model
    there_are = (
        ", ".join(sorted(available)) or "none; install the embeddings plugin or configure a model runtime"
    )
    raise Unprocessable.field(
        ("body", "embedding_model"), f"'{model}' is not available here; available: {there_are}", model
    )
