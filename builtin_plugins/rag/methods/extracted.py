"""An answer without a model runtime: the passages' own best sentences, cited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import numpy as np

from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.methods.events import Done, Event, Found, Piece
from builtin_plugins.rag.methods.rendering import DraftAnswer, render, sources
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.schemas import QueryRequest
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.rag.services.retrieval import Retrieved
from kernel.sdk import Embedded, Platform

_SENTENCES = 24
_NOTE = "generation: no model runtime is configured, the answer quotes the passages"


async def extracted(
    platform: Platform, bases: Sequence[KnowledgeBase], request: QueryRequest, retrieved: Retrieved
) -> AsyncGenerator[Event, None]:
    """Yields Found, a Piece, Done; told apart from a model by `model_used` and a degraded note."""
    question, passages = request.question, retrieved.passages
    found = await asyncio.to_thread(extractive.candidates, question, passages, _SENTENCES)
    sentences = [sentence.text for sentence in found]
    similarities = await _similarities(platform, bases[0].embedding_model, retrieved.question, sentences)
    made = await asyncio.to_thread(extractive.compose, question, passages, found, similarities)
    kept = passages if made.supported else []
    yield Found(sources(kept))
    yield Piece(made.text)
    yield Done(render(request, DraftAnswer(made.text, kept, notes=[_NOTE])))


async def _similarities(
    platform: Platform, model: str, asked: Embedded, sentences: list[str]
) -> list[float] | None:
    if not sentences:
        return None
    vectors = (await embed(platform, model, sentences, "passage")).vectors
    return [asked.similarity(cosine) for cosine in np.dot(vectors, asked.vectors[0]).tolist()]
