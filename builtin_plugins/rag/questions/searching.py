"""Retrieval without an answer: ranked passages with the scores of each part of the search."""

from __future__ import annotations

import time
from collections.abc import Sequence

from builtin_plugins.rag import api
from builtin_plugins.rag.filters.binding import FilterSource, bound
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.questions.asking import filters_of, sources_of, with_defaults
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.reporting import found_item
from builtin_plugins.rag.questions.retrieval_stages import find
from builtin_plugins.rag.questions.support import is_supported
from builtin_plugins.rag.schemas import SearchAnswer, SearchRequest
from builtin_plugins.rag.services import loading
from kernel.sdk import Caller


async def search_base(caller: Caller, kb_id: str, request: SearchRequest) -> SearchAnswer:
    """The best passages of one knowledge base. Raises KnowledgeBaseNotFound."""
    base = await loading.knowledge_base(caller, kb_id)
    return await _search(caller, [base], request, FilterSource(request.metadata_filter))


async def search_pipeline(caller: Caller, pipeline_id: str, request: SearchRequest) -> SearchAnswer:
    """The best passages of a pipeline's knowledge bases. Raises PipelineNotFound, KnowledgeBaseGone."""
    pipeline, bases = await sources_of(caller, pipeline_id)
    return await _search(caller, bases, with_defaults(request, pipeline), *filters_of(request, pipeline))


async def _search(
    caller: Caller, bases: Sequence[KnowledgeBase], request: SearchRequest, *filters: FilterSource
) -> SearchAnswer:
    started = time.perf_counter()
    documents = await bound(caller, [base.id for base in bases], *filters)
    inquiry = Inquiry(caller, bases, request, documents)
    found = await find(inquiry, api.SearchPlan(request.question))
    items = [found_item(item) for item in found.passages]
    supported = await is_supported(inquiry, found)
    took = round((time.perf_counter() - started) * 1000, 2)
    return SearchAnswer(
        items=items,
        total=len(items),
        took_ms=took,
        supported=supported,
        degraded=inquiry.trace.degraded or None,
    )
