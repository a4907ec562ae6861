"""`rerank`: score more passages than requested again, by a reranker or by their words."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from builtin_plugins.rag.answering.matching import places_of
from builtin_plugins.rag.passages import DEPTH, Passage, RetrievedPassages
from builtin_plugins.rag.questions.closeness import Closeness
from builtin_plugins.rag.questions.question import Inquiry, in_thread
from builtin_plugins.rag.questions.rerankers import RERANKER, RerankFailed, within

log = logging.getLogger("platform.rag.reranking")

LEXICAL_SHARE = 0.3
"""The weight of the words against the search's own score: enough to separate near ties."""


async def reranked(
    inquiry: Inquiry, retrieved: RetrievedPassages, pool: int, top_k: int
) -> RetrievedPassages:
    """The best `top_k` in their new order; fewer than two stay as they are.

    Whether there is an answer is decided by the best of the first `pool` found, so that it doesn't depend on
    the number of sources requested.
    """
    if len(retrieved.passages) < 2:
        return retrieved
    scores = await _scored(inquiry, retrieved.passages)
    if scores is not None:
        inquiry.trace.details["reranker"] = "cross_encoder"
        everything, few = within(scores), within(scores[:pool])
    else:
        inquiry.trace.details["reranker"] = "lexical"
        question = inquiry.request.question
        everything, few = await in_thread(inquiry.platform, _by_words, question, retrieved.passages, pool)
    return replace(
        retrieved,
        passages=_best(retrieved.passages, everything, top_k),
        first=_best(retrieved.passages, few, DEPTH),
    )


async def _scored(inquiry: Inquiry, items: Sequence[Passage]) -> list[float] | None:
    """The reranker's scores; None if there is none or it fails."""
    reranker = inquiry.platform.resource(RERANKER)
    if reranker is None:
        return None
    try:
        return await reranker.scores(inquiry.request.question, [item.text for item in items])
    except RerankFailed as error:
        log.warning("%s failed: %s", reranker.name, error)
        inquiry.trace.degrade(f"rerank: {reranker.name} failed; passages were reranked by their words")
        return None


def _by_words(question: str, items: Sequence[Passage], pool: int) -> tuple[list[float], list[float]]:
    """Scores of all items, and of the first `pool` alone: how rare a word is depends on which texts are
    counted.
    """
    near = Closeness(question, [places_of(item) for item in items])
    return _mixed(items, near.scores()), _mixed(items[:pool], near.scores(pool))


def _mixed(items: Sequence[Passage], near: Sequence[float]) -> list[float]:
    return [
        (1.0 - LEXICAL_SHARE) * max(item.score, 0.0) + LEXICAL_SHARE * one
        for item, one in zip(items, near, strict=True)
    ]


def _best(items: Sequence[Passage], scores: Sequence[float], most: int) -> list[Passage]:
    """The `most` items with the highest scores; `scores` may cover only the first items."""
    order = sorted(range(len(scores)), key=lambda at: -round(scores[at], 6))[:most]
    return [items[at].scored(scores[at], rerank=round(scores[at], 6)) for at in order]
