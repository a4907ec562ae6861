"""Hooks that the embeddings plugin brings. Any plugin may call them, and any may answer first."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Literal

from kernel.sdk import Embedded, hookspec

Purpose = Literal["passage", "query"]


@hookspec(firstresult=True)
def embed_texts(model: str, texts: Sequence[str], purpose: Purpose) -> Awaitable[Embedded | None] | None:
    """Vectors of `texts` by the embedding model called `model`.

    None means "not a model of mine". `purpose` tells a question from a passage, for models that treat them
    differently. Raises Unavailable when the model is known and can't be used now. A caller that finds no
    answer tells its client which model is missing.
    """


@hookspec
def list_embedding_models() -> Awaitable[Sequence[str]] | Sequence[str]:
    """Names of the embedding models that this plugin can serve now."""
