"""An answer without a model runtime: the passages' own best sentences, cited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial

import numpy as np

from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.answering.calibration import calibration_of
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.questions.events import Found, Piece
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Retrieved, told
from builtin_plugins.rag.questions.rendering import Draft
from builtin_plugins.rag.services.sentence_vectors import SENTENCE_VECTORS, PassageSentence
from kernel.sdk import Embedded, Platform


async def extracted(
    question: Question, found: Retrieved, passages: Sequence[Passage]
) -> AsyncGenerator[Found | Piece | Draft, None]:
    """Yields Found, a Piece, the Draft. `passages` are those of `found`, perhaps shortened."""
    with question.trace.step("answer", "Choosing the sentences that answer"):
        judged = _judged(question, found, passages)
        language = await asyncio.to_thread(lambda: question.language)
        choose = partial(extractive.candidates, question.text, judged, language=language)
        candidates = await asyncio.to_thread(choose)
        model = question.bases[0].embedding_model
        sentences = [PassageSentence(judged[one.passage - 1].chunk_id, one.text) for one in candidates]
        similarities = await _similarities(question.platform, model, found.question, sentences)
        compose = partial(
            extractive.compose, calibration=calibration_of(model), shown=len(found.items), language=language
        )
        made = await asyncio.to_thread(compose, question.text, judged, candidates, similarities)
    kept = told(found.items, made.confidence) if made.supported else []
    yield Found(kept, question.request.explain)
    yield Piece(made.text)
    yield Draft(made.text, kept)


def _judged(question: Question, found: Retrieved, passages: Sequence[Passage]) -> Sequence[Passage]:
    """The passages to answer from: the best few, as they are shown if they were shortened or widened."""
    if question.request.compress or question.request.parent_context:
        return passages[: extractive.DEPTH]
    return [item.passage for item in found.judged]


async def _similarities(
    platform: Platform, model: str, asked: Embedded, sentences: list[PassageSentence]
) -> list[float] | None:
    if not sentences:
        return None
    vectors = await platform.resource(SENTENCE_VECTORS).of(platform, model, asked.engine, sentences)
    return [asked.similarity(cosine) for cosine in np.dot(vectors, asked.vectors[0]).tolist()]
