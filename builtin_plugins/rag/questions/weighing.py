"""Whether the found passages answer a question: one measure for all answers and searches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from builtin_plugins.rag.answering import extractive
from builtin_plugins.rag.answering.calibration import calibration_of
from builtin_plugins.rag.answering.candidate import Candidate, Near
from builtin_plugins.rag.answering.coverage import read_ahead, subject_of
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.weighing import Weighed, weigh
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.ranked import Retrieved
from builtin_plugins.rag.questions.thread import in_thread
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.rag.services.sentence_vectors import SENTENCE_VECTORS, PassageSentence


async def weighed(inquiry: Inquiry, found: Retrieved) -> Weighed:
    """Weigh the deciding passages: the best few, however many are shown.

    Results are cached. Raises Unavailable.
    """
    passages = [item.passage for item in found.judged]
    key = (inquiry.request.question, tuple(passages))
    made = inquiry.weighed.get(key)
    if made is None:
        platform, language = inquiry.platform, await inquiry.language()
        candidates = await in_thread(platform, _candidates, inquiry, passages, language)
        near = await _near(inquiry, found, passages, candidates)
        made = _weighed(inquiry, passages, language, candidates, near)
        inquiry.weighed[key] = made
    return made


async def _near(
    inquiry: Inquiry, found: Retrieved, passages: Sequence[Passage], candidates: Sequence[Candidate]
) -> Near:
    import numpy as np

    if not candidates:
        return Near([])
    model, asked = inquiry.bases[0].embedding_model, found.question
    sentences = [PassageSentence(passages[one.passage - 1].chunk_id, one.whole) for one in candidates]
    known = inquiry.platform.resource(SENTENCE_VECTORS)
    subject, vectors = await asyncio.gather(
        _subject(inquiry, model, passages), known.of(inquiry.platform, model, asked.engine, sentences)
    )
    cosines = np.dot(np.array([asked.vectors[0], *subject]), vectors.T).tolist()
    return Near(*([asked.similarity(cosine) for cosine in row] for row in cosines))


async def _subject(inquiry: Inquiry, model: str, passages: Sequence[Passage]) -> Sequence[Any]:
    """The vector of the question's subject, as float32; none if it has no subject."""
    subject = subject_of(inquiry.request.question, passages)
    return list((await embed(inquiry.platform, model, [subject], "query")).vectors) if subject else []


async def is_supported(inquiry: Inquiry, found: Retrieved) -> bool:
    """Whether there would be an answer; no sentence is embedded if the passages' vectors decide.

    Raises Unavailable.
    """
    passages = [item.passage for item in found.judged]
    glanced = await in_thread(inquiry.platform, _glanced, inquiry, passages, await inquiry.language())
    if glanced.is_clear:
        return glanced.supported
    return (await weighed(inquiry, found)).supported


def _glanced(inquiry: Inquiry, passages: Sequence[Passage], language: str | None) -> Weighed:
    """Runs entirely in the question thread, so nothing has to be read ahead."""
    found = extractive.candidates(inquiry.request.question, passages, language=language)
    return _weighed(inquiry, passages, language, found, None)


def _weighed(
    inquiry: Inquiry,
    passages: Sequence[Passage],
    language: str | None,
    candidates: Sequence[Candidate],
    near: Near | None,
) -> Weighed:
    how = calibration_of(inquiry.bases[0].embedding_model)
    return weigh(inquiry.request.question, passages, candidates, near, how, language=language)


def _candidates(inquiry: Inquiry, passages: Sequence[Passage], language: str | None) -> list[Candidate]:
    """Reads the passages ahead, so that weighing the candidates needs no thread."""
    read_ahead(passages)
    return extractive.candidates(inquiry.request.question, passages, language=language)
