"""`rerank`: score more passages than requested again, by a reranker.

There is none by words alone: over the 62 questions of `brattvik` it brought 0.002 of nDCG@10 and cost 0.015
of the answers' quality, as it refused more; of 100 others it lifted five passages and cost first places.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from builtin_plugins.rag.passages import DEPTH, Passage, RetrievedPassages
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.rerankers import RERANKER, RerankFailed, within

log = logging.getLogger("platform.rag.reranking")


async def reranked(inquiry: Inquiry, retrieved: RetrievedPassages, pool: int) -> RetrievedPassages:
    """All in their new order; fewer than two stay as they are, as do all if the reranker fails.

    Whether there is an answer is decided by the best of the first `pool` found, so that it doesn't depend on
    the number of sources requested.
    """
    if len(retrieved.passages) < 2:
        return retrieved
    scores = await _scored(inquiry, retrieved.passages)
    if scores is None:
        return retrieved
    inquiry.trace.details["reranker"] = "cross_encoder"
    return replace(
        retrieved,
        passages=_best(retrieved.passages, within(scores)),
        first=_best(retrieved.passages, within(scores[:pool]))[:DEPTH],
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
        inquiry.trace.degrade(f"rerank: {reranker.name} failed, passages stay in the search's order")
        return None


def _best(items: Sequence[Passage], scores: Sequence[float]) -> list[Passage]:
    """The items that have scores, the highest first; `scores` may cover only the first items."""
    order = sorted(range(len(scores)), key=lambda at: -round(scores[at], 6))
    return [items[at].scored(scores[at], rerank=round(scores[at], 6)) for at in order]
