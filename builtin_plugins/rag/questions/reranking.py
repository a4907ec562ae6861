"""`rerank`: a closer look at more passages than asked for, by a reranker or by their words."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from builtin_plugins.rag.answering.extractive import DEPTH
from builtin_plugins.rag.answering.reading import places_of
from builtin_plugins.rag.questions.closeness import Closeness
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.ranked import Ranked, Retrieved
from builtin_plugins.rag.questions.rerankers import RERANKER, RerankFailed, within
from builtin_plugins.rag.questions.thread import in_thread

log = logging.getLogger("platform.rag.reranking")

LEXICAL_SHARE = 0.3
"""How much the words count next to the search's own score: enough to separate the near equals it leaves."""


async def reranked(inquiry: Inquiry, found: Retrieved, pool: int, top_k: int) -> Retrieved:
    """The best `top_k` in their new order; fewer than two stay as they are.

    What decides whether there is an answer are the best of the first `pool` that the search found: how many
    more are looked at follows the number of sources that was asked for.
    """
    if len(found.items) < 2:
        return found
    scores = await _scored(inquiry, found.items)
    if scores is not None:
        inquiry.trace.details["reranker"] = "cross_encoder"
        everything, few = within(scores), within(scores[:pool])
    else:
        inquiry.trace.details["reranker"] = "lexical"
        question = inquiry.request.question
        everything, few = await in_thread(inquiry.platform, _by_words, question, found.items, pool)
    return replace(found, items=_best(found.items, everything, top_k), first=_best(found.items, few, DEPTH))


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


def _by_words(question: str, items: Sequence[Ranked], pool: int) -> tuple[list[float], list[float]]:
    """Scores of all, and of the first `pool` by themselves: how rare a word is depends on what it is counted
    in.
    """
    near = Closeness(question, [places_of(item.passage) for item in items])
    return _mixed(items, near.scores()), _mixed(items[:pool], near.scores(pool))


def _mixed(items: Sequence[Ranked], near: Sequence[float]) -> list[float]:
    return [
        (1.0 - LEXICAL_SHARE) * max(item.passage.score, 0.0) + LEXICAL_SHARE * one
        for item, one in zip(items, near, strict=True)
    ]


def _best(items: Sequence[Ranked], scores: Sequence[float], most: int) -> list[Ranked]:
    """The first of the items have scores."""
    order = sorted(range(len(scores)), key=lambda at: -round(scores[at], 6))[:most]
    return [items[at].scored(scores[at], rerank=round(scores[at], 6)) for at in order]
