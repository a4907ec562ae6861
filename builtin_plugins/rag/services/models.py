"""Embedding models by name: which one a new knowledge base gets."""

from __future__ import annotations

from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Platform, Unprocessable, contracts


async def check_embedding_model(platform: Platform, wanted: str | None) -> str:
    """The model to embed with. Raises Unprocessable, which names the available models, and Unavailable."""
    default = platform.settings_of(RagSettings).embedding_model
    model = wanted or default
    hooks = platform.hooks
    listed = await hooks.ask(contracts.list_embedding_models, platform=platform)
    known = [name for names in listed for name in names]
    if model == default and model in known:  # for any other, a test vector proves that its settings work
        return model
    found = await hooks.ask(
        contracts.embed_texts, platform=platform, model=model, texts=["probe"], purpose="query"
    )
    if found is not None:
        return model
    there_are = ", ".join(sorted(known)) or "none; install the embeddings plugin or configure a model runtime"
    raise Unprocessable.field(
        ("body", "embedding_model"), f"'{model}' is not available here; available: {there_are}", model
    )
