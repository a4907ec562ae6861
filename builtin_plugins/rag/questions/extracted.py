"""An answer without a model runtime: the passages' own best sentences, cited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import numpy as np

from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.questions.events import Found, Piece
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Retrieved
from builtin_plugins.rag.questions.rendering import Draft
from builtin_plugins.rag.services.embedding import embed
from kernel.sdk import Embedded, Platform

_SENTENCES = 24


async def extracted(
    question: Question, found: Retrieved, passages: Sequence[Passage]
) -> AsyncGenerator[Found | Piece | Draft, None]:
    """Yields Found, a Piece, the Draft. `passages` are those of `found`, perhaps shortened."""
    with question.trace.step("answer", "Choosing the sentences that answer"):
        candidates = await asyncio.to_thread(extractive.candidates, question.text, passages, _SENTENCES)
        sentences = [sentence.text for sentence in candidates]
        model = question.bases[0].embedding_model
        similarities = await _similarities(question.platform, model, found.question, sentences)
        made = await asyncio.to_thread(extractive.compose, question.text, passages, candidates, similarities)
    kept = found.items if made.supported else []
    yield Found(kept, question.request.explain)
    yield Piece(made.text)
    yield Draft(made.text, kept)


async def _similarities(
    platform: Platform, model: str, asked: Embedded, sentences: list[str]
) -> list[float] | None:
    if not sentences:
        return None
    vectors = (await embed(platform, model, sentences, "passage")).vectors
    return [asked.similarity(cosine) for cosine in np.dot(vectors, asked.vectors[0]).tolist()]
