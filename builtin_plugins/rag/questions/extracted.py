"""An answer without a model runtime: the passages' own best sentences, cited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial

import numpy as np

from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.answering.calibration import calibration_of
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.questions.compressing import compressed
from builtin_plugins.rag.questions.events import Found, Piece
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Ranked, Retrieved, told
from builtin_plugins.rag.questions.rendering import Draft
from builtin_plugins.rag.questions.widening import place_of
from builtin_plugins.rag.services.sentence_vectors import SENTENCE_VECTORS, PassageSentence
from kernel.sdk import Embedded, Platform


async def extracted(question: Question, found: Retrieved) -> AsyncGenerator[Found | Piece | Draft, None]:
    """Yields Found, a Piece, the Draft."""
    with question.trace.step("answer", "Choosing the sentences that answer"):
        judged = _judged(question, found)
        language = await asyncio.to_thread(lambda: question.language)
        choose = partial(extractive.candidates, question.text, judged, language=language)
        candidates = await asyncio.to_thread(choose)
        model = question.bases[0].embedding_model
        sentences = [PassageSentence(judged[one.passage - 1].chunk_id, one.text) for one in candidates]
        similarities = await _similarities(question.platform, model, found.question, sentences)
        shown, how = found.items, calibration_of(model)
        given = (question.text, judged, candidates, similarities)
        compose = partial(extractive.compose, *given, calibration=how, language=language)
        made = await asyncio.to_thread(compose, places=_places(found, shown))
        if made.unshown is not None:
            # A source that answers is worth more to whoever sees few than the last of them.
            shown = [*shown[:-1], found.judged[made.unshown - 1]]
            made = await asyncio.to_thread(compose, places=_places(found, shown))
    kept = told(shown, made.confidence) if made.supported else []
    yield Found(kept, question.request.explain)
    yield Piece(made.text)
    yield Draft(made.text, kept)


def _places(found: Retrieved, shown: Sequence[Ranked]) -> list[int | None]:
    """As which of the shown sources each passage is cited."""
    return [place_of(item, shown) for item in found.judged]


def _judged(question: Question, found: Retrieved) -> list[Passage]:
    """The passages to answer from, however many are shown: the best few, with `compress` less of each."""
    passages = [item.passage for item in found.judged]
    return compressed(question.text, passages) if question.request.compress else passages


async def _similarities(
    platform: Platform, model: str, asked: Embedded, sentences: list[PassageSentence]
) -> list[float] | None:
    if not sentences:
        return None
    vectors = await platform.resource(SENTENCE_VECTORS).of(platform, model, asked.engine, sentences)
    return [asked.similarity(cosine) for cosine in np.dot(vectors, asked.vectors[0]).tolist()]
