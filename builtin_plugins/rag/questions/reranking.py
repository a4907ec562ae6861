"""`rerank`: a closer look at more passages than asked for, by a reranker or by their words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from builtin_plugins.rag.questions.closeness import closeness
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.ranked import Ranked, Retrieved
from builtin_plugins.rag.questions.rerankers import RERANKER, RerankFailed

log = logging.getLogger("platform.rag.reranking")

LEXICAL_SHARE = 0.3
"""How much the words count beside the search's own score: enough to part near equals, which it leaves."""


async def reranked(inquiry: Inquiry, found: Retrieved, top_k: int) -> Retrieved:
    """The best passages in their new order; fewer than two stay as they are."""
    if len(found.items) < 2:
        return found
    reranker = inquiry.platform.resource(RERANKER)
    question, texts = inquiry.request.question, [passage.text for passage in found.passages]
    if reranker is not None:
        try:
            scores = await reranker.scores(question, texts)
        except RerankFailed as error:
            log.warning("%s failed: %s", reranker.name, error)
            inquiry.trace.degrade(f"rerank: {reranker.name} failed; passages were reranked by their words")
        else:
            inquiry.trace.details["reranker"] = "cross_encoder"
            return found.of(_ordered(found.items, scores, top_k))
    inquiry.trace.details["reranker"] = "lexical"
    near = await asyncio.to_thread(closeness, question, texts)
    mixed = [
        (1.0 - LEXICAL_SHARE) * max(item.passage.score, 0.0) + LEXICAL_SHARE * one
        for item, one in zip(found.items, near, strict=True)
    ]
    return found.of(_ordered(found.items, mixed, top_k))


def _ordered(items: Sequence[Ranked], scores: Sequence[float], top_k: int) -> list[Ranked]:
    best = sorted(zip(items, scores, strict=True), key=lambda pair: -round(pair[1], 6))[:top_k]
    return [item.scored(score, rerank=round(score, 6)) for item, score in best]
