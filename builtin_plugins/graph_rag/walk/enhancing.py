"""Adds what a walk over the graph reaches to a ranking of RAG (hook `enhance_ranking`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from builtin_plugins.graph_rag.walk.following import WALKS, BaseIndex
from builtin_plugins.graph_rag.walk.ranking import MOVED, raised
from builtin_plugins.graph_rag.walk.steps import SOURCES, RankedSource, WalkStep, steps
from builtin_plugins.rag import api as rag
from kernel.sdk import Platform


async def enhance(
    platform: Platform,
    question: str,
    passages: Sequence[rag.Passage],
    scope: rag.RankingScope,
) -> list[rag.RankedPassage]:
    """New scores for the passages that the walk reaches, with the way to each.

    Only the scope's documents, in the indexes of the scope's knowledge bases, are walked.
    """
    walks = platform.resource(WALKS)
    bases = [await walks.of(one) for one in scope.knowledge_base_ids]
    return await asyncio.to_thread(enhanced, bases, question, passages, scope)


def enhanced(
    bases: Sequence[BaseIndex],
    question: str,
    passages: Sequence[rag.Passage],
    scope: rag.RankingScope,
) -> list[rag.RankedPassage]:
    """The same, with indexes that are already up to date."""
    segments = [segment for base in bases for segment in base.index.segments]
    ranked = [RankedSource(one.document_id, one.chunk_id, one.score, one.text) for one in passages[:SOURCES]]
    walk = steps(segments, question, ranked, scope.document_ids, MOVED)
    places = {(one.document_id, one.chunk_id): at for at, one in enumerate(passages)}
    reached = [(places.get((step.group, step.passage_id)), step.worth) for step in walk]
    scores = raised([one.score for one in passages], reached)
    lifted = [_lifted(passages[place], score) for place, score in scores.lifted.items()]
    added = []
    for step, score in zip(walk, scores.reached, strict=True):
        base = next((one for one in bases if step.group in one.titles), None)
        if score is not None and base is not None:
            title = base.titles.get(step.group, step.group)
            path = _path(step, passages[step.source].source, title)
            added.append(
                rag.RankedPassage(
                    base.knowledge_base_id,
                    step.group,
                    step.passage_id,
                    min(1.0, score),
                    path,
                    chunk_index=step.position,
                )
            )
    return lifted + added


def _lifted(passage: rag.Passage, score: float) -> rag.RankedPassage:
    """Lift one of the first passages, so that it stays before the raised ones."""
    base = passage.knowledge_base_id or ""
    return rag.RankedPassage(base, passage.document_id, passage.chunk_id, min(1.0, score))


def _path(step: WalkStep, source: str, target: str) -> list[rag.PathStep]:
    relation = "names" if step.is_title else "is mentioned in"
    return [
        rag.PathStep(source, "mentions", step.entity),
        rag.PathStep(step.entity, relation, target),
    ]
