"""Embeddings in OpenAI's shape."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from builtin_plugins.inference import api as inference
from builtin_plugins.orchestrator.errors import ModelNotFound
from builtin_plugins.orchestrator.schemas import EmbeddingList, EmbeddingOut, EmbeddingsBody
from kernel.sdk import Context, Unprocessable

if TYPE_CHECKING:
    import numpy as np

MOST_TEXTS = 2048
LONGEST_TEXT = 100_000

_WORD = re.compile(r"\w+|[^\w\s]")


async def embed(ctx: Context, body: EmbeddingsBody) -> EmbeddingList:
    """The vectors of the texts. Raises Unprocessable, ModelNotFound, Unavailable."""
    import numpy as np

    texts = _texts(body)
    embedded = await ctx.platform.hooks.ask(
        inference.embed_texts, platform=ctx.platform, model=body.model, texts=texts, purpose=body.input_type
    )
    if embedded is None:
        raise ModelNotFound(f"There is no embedding model '{body.model}'")
    vectors = np.ascontiguousarray(embedded.vectors, dtype="<f4")
    if body.dimensions is not None and body.dimensions != vectors.shape[1]:
        raise Unprocessable.field(
            ("body", "dimensions"), f"must be {vectors.shape[1]} or left out for '{body.model}'"
        )
    tokens = sum(len(_WORD.findall(text)) for text in texts)
    return EmbeddingList(
        data=[
            EmbeddingOut(index=index, embedding=_written(vector, body.encoding_format))
            for index, vector in enumerate(vectors)
        ],
        model=body.model,
        usage={"prompt_tokens": tokens, "total_tokens": tokens},
    )


def _written(vector: np.ndarray, how: str | None) -> list[float] | str:
    return base64.b64encode(vector.tobytes()).decode() if how == "base64" else vector.tolist()


def _texts(body: EmbeddingsBody) -> list[str]:
    texts = [body.input] if isinstance(body.input, str) else body.input
    if not texts or len(texts) > MOST_TEXTS:
        raise Unprocessable.field(("body", "input"), f"must hold 1 to {MOST_TEXTS} texts")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise Unprocessable.field(
                ("body", "input", place),
                "must be a text; lists of token ids are meaningless to models other than OpenAI's "
                "(in LangChain: check_embedding_ctx_length=False)",
            )
        if not text or len(text) > LONGEST_TEXT:
            raise Unprocessable.field(("body", "input", place), f"must have 1 to {LONGEST_TEXT} characters")
    return texts
