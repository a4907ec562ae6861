"""Retrieval without an answer: ranked passages with the scores of each part of the search."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from builtin_plugins.rag import api
from builtin_plugins.rag.filters.binding import IN_BODY, FilterSource, bound, parse_filter
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.passages import Passage, RetrievedPassages
from builtin_plugins.rag.questions.asking import filters_of, sources_of, with_defaults
from builtin_plugins.rag.questions.history import look_back
from builtin_plugins.rag.questions.periods import limit_by_period
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.reporting import found_item
from builtin_plugins.rag.questions.retrieval_stages import find
from builtin_plugins.rag.questions.support import is_supported
from builtin_plugins.rag.schemas import SearchAnswer, SearchRequest
from builtin_plugins.rag.services import loading
from builtin_plugins.rag.services.reading import searched_bases
from builtin_plugins.tools.api import arguments_from_object
from kernel.sdk import Caller, scope_of


async def search_base(caller: Caller, kb_id: str, request: SearchRequest) -> SearchAnswer:
    """The best passages of one knowledge base. Raises KnowledgeBaseNotFound."""
    base = await loading.knowledge_base(caller, kb_id)
    return await _search(caller, [base], request, FilterSource(request.metadata_filter))


async def search_pipeline(caller: Caller, pipeline_id: str, request: SearchRequest) -> SearchAnswer:
    """The best passages of a pipeline's knowledge bases. Raises PipelineNotFound, KnowledgeBaseGone."""
    pipeline, bases = await sources_of(caller, pipeline_id)
    return await _search(caller, bases, with_defaults(request, pipeline), *filters_of(request, pipeline))


async def search_passages(
    caller: Caller,
    question: str,
    top_k: int,
    knowledge_base_ids: Sequence[str] | None,
    metadata_filter: Mapping[str, Any] | None = None,
    as_of: datetime | str | None = None,
    use_period: bool = True,
) -> list[Passage]:
    """Implements the hook of the same name."""
    sent = {"question": question, "top_k": top_k, "as_of": as_of, "use_period": use_period}
    request = arguments_from_object(SearchRequest, sent)
    scope = await scope_of(caller.platform, caller.principal)
    bases = await caller.platform.database.read(searched_bases, scope, knowledge_base_ids)
    if not bases:
        return []
    parsed_filter = None if metadata_filter is None else parse_filter(metadata_filter, IN_BODY)
    _, retrieved = await search_inquiry(caller, bases, request, FilterSource(parsed_filter))
    return list(retrieved.passages)


async def search_inquiry(
    caller: Caller, bases: Sequence[KnowledgeBase], request: SearchRequest, *filters: FilterSource
) -> tuple[Inquiry, RetrievedPassages]:
    """What a search finds, with its time and its period. Raises Unprocessable for a filter that can't be."""
    documents = await bound(caller, [base.id for base in bases], *filters)
    inquiry = Inquiry(caller, bases, request, documents)
    if request.as_of is not None:
        await look_back(inquiry, request.as_of)
    await limit_by_period(inquiry)
    return inquiry, await find(inquiry, api.SearchPlan(request.question))


async def _search(
    caller: Caller, bases: Sequence[KnowledgeBase], request: SearchRequest, *filters: FilterSource
) -> SearchAnswer:
    started = time.perf_counter()
    inquiry, retrieved = await search_inquiry(caller, bases, request, *filters)
    items = [found_item(item) for item in retrieved.passages]
    supported = await is_supported(inquiry, retrieved)
    took = round((time.perf_counter() - started) * 1000, 2)
    return SearchAnswer(
        items=items,
        total=len(items),
        took_ms=took,
        supported=supported,
        period=None if inquiry.period is None else inquiry.period.item,
        degraded=inquiry.trace.degraded or None,
    )
