"""Rankings that other plugins improve (hook `enhance_ranking`): new scores, and passages that were missed.

What a plugin returns is checked: a passage outside the knowledge bases and documents of the question is
dropped, and the text of an added passage is read here, never taken from the plugin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any

from builtin_plugins.rag import api
from builtin_plugins.rag.passages import Passage, RetrievedPassages
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.reporting import passage_of, plural
from builtin_plugins.rag.questions.retrieval import DocumentName, named
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.vectors.api import VECTORS, StoredPoint, searched_text
from kernel.sdk import ANY_ERROR, PLUGIN_STATES, Platform

MOST_ADDED = 20
_PAGE = 500


async def enhanced(inquiry: Inquiry, retrieved: RetrievedPassages, limit: int) -> RetrievedPassages:
    """The ranking as changed by plugins; one that fails or is late is skipped, and a note names it."""
    platform = inquiry.platform
    implementations = platform.hooks.implementations(api.enhance_ranking)
    if not implementations:
        inquiry.trace.degrade("graph: no plugin on this server ranks by a graph")
        return retrieved
    documents = inquiry.documents
    allowed = await platform.database.read(documents.document_ids) if documents.is_limited else None
    scope = api.RankingScope([base.id for base in inquiry.bases], allowed, limit)
    for implementation in implementations:
        answer = await _answer(inquiry, implementation, retrieved, scope)
        if answer:
            retrieved = await _applied(inquiry, retrieved, scope, answer)
    return retrieved


async def _answer(
    inquiry: Inquiry, implementation: Any, retrieved: RetrievedPassages, scope: api.RankingScope
) -> Sequence[api.RankedPassage]:
    seconds = inquiry.platform.settings_of(RagSettings).enhance_seconds
    arguments = {
        "caller": inquiry.caller,
        "question": inquiry.request.question,
        "passages": retrieved.passages,
        "scope": scope,
    }
    try:
        async with asyncio.timeout(seconds):
            pending = implementation.call(arguments)
            answer = await pending if hasattr(pending, "__await__") else pending
            return [one for one in answer or () if 0.0 <= one.score <= 1.0]
    except TimeoutError:
        inquiry.trace.degrade(
            f"graph: '{implementation.plugin}' took longer than {plural(seconds, 'second')}"
        )
    except ANY_ERROR as error:  # boundary: another plugin's code
        inquiry.platform.resource(PLUGIN_STATES).hook_failed(
            implementation.plugin, api.enhance_ranking.name, error
        )
        inquiry.trace.degrade(f"graph: '{implementation.plugin}' failed; the server's log says why")
    return ()


async def _applied(
    inquiry: Inquiry,
    retrieved: RetrievedPassages,
    scope: api.RankingScope,
    answer: Sequence[api.RankedPassage],
) -> RetrievedPassages:
    among = None if scope.document_ids is None else frozenset(scope.document_ids)
    passages_by_place = {(item.document_id, item.chunk_id): item for item in retrieved.passages}
    ranked_by_place = {(one.document_id, one.chunk_id): one for one in answer}
    passages = [
        _rescored(item, ranked_by_place[place]) if place in ranked_by_place else item
        for place, item in passages_by_place.items()
    ]
    missing = [
        one
        for place, one in ranked_by_place.items()
        if place not in passages_by_place and _within(scope, among, one)
    ]
    missing = sorted(missing, key=lambda one: -one.score)[:MOST_ADDED]
    added = await _added(inquiry, retrieved, missing)
    return retrieved.of(sorted([*passages, *added], key=lambda item: -item.score))


def _within(scope: api.RankingScope, among: Set[str] | None, passage: api.RankedPassage) -> bool:
    is_allowed = among is None or passage.document_id in among
    return passage.knowledge_base_id in scope.knowledge_base_ids and is_allowed


def _rescored(item: Passage, by: api.RankedPassage) -> Passage:
    score = round(by.score, 6)
    return replace(item.scored(score), graph=score, path=tuple(by.path))


async def _added(
    inquiry: Inquiry,
    retrieved: RetrievedPassages,
    missing: Sequence[api.RankedPassage],
) -> list[Passage]:
    """The added passages with their texts and similarities to the question; deleted ones are left out."""
    platform, bases = inquiry.platform, {base.id: base for base in inquiry.bases}
    documents = await named(platform, inquiry.documents.reader, {passage.document_id for passage in missing})
    points: list[tuple[api.RankedPassage, StoredPoint]] = []
    for passage in missing:
        place = documents.get(passage.document_id)
        if place is not None and place.knowledge_base_id == passage.knowledge_base_id:
            point = await _point(platform, bases[passage.knowledge_base_id].collection, passage)
            points += [(passage, point)] if point is not None else []
    if not points:
        return []
    model = next(iter(bases.values())).embedding_model
    texts = [searched_text(point.text, point.payload) for _, point in points]
    embedded = await embed(platform, model, texts, "passage")
    cosines = (embedded.vectors @ retrieved.question.vectors[0]).tolist()
    return [
        _ranked(passage, point, documents[passage.document_id], retrieved.question.similarity(cosine))
        for (passage, point), cosine in zip(points, cosines, strict=True)
    ]


async def _point(platform: Platform, collection: str, passage: api.RankedPassage) -> StoredPoint | None:
    """Read a passage: directly if its position is known, else by searching its document."""
    if passage.chunk_index is not None:
        rows, _ = await platform.resource(VECTORS).points(
            collection, passage.document_id, 1, passage.chunk_index
        )
        if rows and rows[0].id == passage.chunk_id:
            return rows[0]
    offset, total = 0, 1
    while offset < total:
        rows, total = await platform.resource(VECTORS).points(collection, passage.document_id, _PAGE, offset)
        for row in rows:
            if row.id == passage.chunk_id:
                return row
        offset += _PAGE
    return None


def _ranked(by: api.RankedPassage, point: StoredPoint, document: DocumentName, near: float) -> Passage:
    score, path = round(by.score, 6), tuple(by.path)
    kb_id, source, version = by.knowledge_base_id, document.filename, document.version
    return passage_of(point, kb_id, source, score, near, graph=score, path=path, version=version)
