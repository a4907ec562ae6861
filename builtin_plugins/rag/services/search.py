"""Retrieval without an answer: ranked passages with what each leg said, and nothing hidden."""

from __future__ import annotations

import time
from collections.abc import Sequence

from builtin_plugins.rag.answering import support
from builtin_plugins.rag.methods.rendering import sources
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.schemas import LegScores, SearchAnswer, SearchItem, SearchRequest
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.query import sources_of, with_defaults
from builtin_plugins.rag.services.retrieval import Retrieved, retrieve
from kernel.sdk import Caller, Platform, scope_of


async def search_base(caller: Caller, kb_id: str, request: SearchRequest) -> SearchAnswer:
    """The best passages of one knowledge base. Raises KnowledgeBaseNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    base = await caller.platform.database.read(knowledge_bases.find, scope, kb_id)
    return await _search(caller.platform, [base], request)


async def search_pipeline(caller: Caller, pipeline_id: str, request: SearchRequest) -> SearchAnswer:
    """The best passages of a pipeline's knowledge bases. Raises PipelineNotFound, KnowledgeBaseGone."""
    pipeline, bases = await sources_of(caller, pipeline_id)
    return await _search(caller.platform, bases, with_defaults(request, pipeline))


async def _search(platform: Platform, bases: Sequence[KnowledgeBase], request: SearchRequest) -> SearchAnswer:
    started = time.perf_counter()
    found = await retrieve(
        platform,
        bases,
        request.question,
        request.top_k,
        hybrid=request.hybrid is not False,
        metadata_filter=request.metadata_filter,
    )
    items = _items(found)
    supported = support.assess(request.question, found.passages, cosines=found.similarities).supported
    took = round((time.perf_counter() - started) * 1000, 2)
    return SearchAnswer(items=items, total=len(items), took_ms=took, supported=supported)


def _items(found: Retrieved) -> list[SearchItem]:
    legs = zip(sources(found.passages), found.similarities, found.words, strict=True)
    return [
        SearchItem(
            **source.model_dump(),
            scores=LegScores(dense=round(dense, 6), text=words, fused=source.score),
        )
        for source, dense, words in legs
    ]
