"""Embed texts with the plugin that implements `embed_texts`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from builtin_plugins.rag.errors import EngineChanged, ModelUnavailable
from kernel.sdk import Embedded, EngineMismatch, Platform, PlatformError, contracts

log = logging.getLogger("platform.rag.embedding")


async def embed(platform: Platform, model: str, texts: Sequence[str], purpose: contracts.Purpose) -> Embedded:
    """One vector for each text. Raises ModelUnavailable, or what the answering plugin raises for clients."""
    try:
        found = await platform.hooks.ask(
            contracts.embed_texts, platform=platform, model=model, texts=texts, purpose=purpose
        )
    except PlatformError:
        raise
    except Exception:  # boundary: another plugin's engine may fail in any way
        log.exception("embedding with '%s' failed", model)
        raise ModelUnavailable(f"Embedding with '{model}' failed; the server's log says why") from None
    if found is None:
        raise ModelUnavailable(
            f"The embedding model '{model}' is not available: no plugin or model runtime has it"
        )
    if len(found.vectors) != len(texts):
        raise ModelUnavailable(
            f"The embedding model '{model}' returned {len(found.vectors)} vectors for {len(texts)} texts"
        )
    return found


def engine_changed(model: str, error: EngineMismatch) -> EngineChanged:
    """The error for vectors that don't match those of a knowledge base."""
    return EngineChanged(
        f"This knowledge base was embedded with {error.stored}, but '{model}' now runs on {error.given}. "
        "Switch back to the former engine (PLATFORM_EMBEDDINGS_PRECISION may be enough), or embed the "
        f"documents again: POST /v1/rag/knowledge-bases/{{id}}/reembed with '{model}'."
    )
