"""`rerank`: a closer look at more passages than asked for, by a reranker or by their words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from builtin_plugins.rag.answering.extractive import DEPTH
from builtin_plugins.rag.questions.closeness import closeness
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.ranked import Ranked, Retrieved
from builtin_plugins.rag.questions.rerankers import RERANKER, RerankFailed, within

log = logging.getLogger("platform.rag.reranking")

LEXICAL_SHARE = 0.3
"""How much the words count beside the search's own score: enough to part near equals, which it leaves."""


async def reranked(inquiry: Inquiry, found: Retrieved, pool: int) -> Retrieved:
    """All passages in their new order; fewer than two stay as they are.

    What decides whether there is an answer are the best of the first `pool` that the search found: how many
    more are looked at follows the number of sources that was asked for.
    """
    if len(found.items) < 2:
        return found
    everything = await _scored(inquiry, found.items)
    few = found.items[:pool]
    if everything is not None:
        inquiry.trace.details["reranker"] = "cross_encoder"
        items, first = _ordered(found.items, within(everything)), _ordered(few, within(everything[:pool]))
    else:
        inquiry.trace.details["reranker"] = "lexical"
        question = inquiry.request.question
        items = first = await asyncio.to_thread(_by_words, question, found.items)
        if len(few) < len(items):  # how rare a word is depends on what it is counted in
            first = await asyncio.to_thread(_by_words, question, few)
    return replace(found, items=items, first=first[:DEPTH])


async def _scored(inquiry: Inquiry, items: Sequence[Ranked]) -> list[float] | None:
    """What the reranker says; None where there is none, or it fails."""
    reranker = inquiry.platform.resource(RERANKER)
    if reranker is None:
        return None
    try:
        return await reranker.scores(inquiry.request.question, [item.passage.text for item in items])
    except RerankFailed as error:
        log.warning("%s failed: %s", reranker.name, error)
        inquiry.trace.degrade(f"rerank: {reranker.name} failed; passages were reranked by their words")
        return None


def _by_words(question: str, items: Sequence[Ranked]) -> list[Ranked]:
    near = closeness(question, [item.passage.text for item in items])
    mixed = [
        (1.0 - LEXICAL_SHARE) * max(item.passage.score, 0.0) + LEXICAL_SHARE * one
        for item, one in zip(items, near, strict=True)
    ]
    return _ordered(items, mixed)


def _ordered(items: Sequence[Ranked], scores: Sequence[float]) -> list[Ranked]:
    best = sorted(zip(items, scores, strict=True), key=lambda pair: -round(pair[1], 6))
    return [item.scored(score, rerank=round(score, 6)) for item, score in best]
