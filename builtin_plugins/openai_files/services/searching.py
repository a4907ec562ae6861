"""Searches in vector stores."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.openai_files.names import file_of, row_in
from builtin_plugins.openai_files.schemas import SearchPage, StoreSearch, StoreSearchResult, TextContent
from builtin_plugins.openai_files.services.store_files import attributes_of
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Unprocessable


async def search(caller: Caller, store_id: str, request: StoreSearch) -> SearchPage:
    """The best passages for one question or several. Raises KnowledgeBaseNotFound, Unprocessable."""
    queries = [request.query] if isinstance(request.query, str) else list(dict.fromkeys(request.query))
    best: dict[str, rag.Passage] = {}
    for query in queries:
        for passage in await _passages(caller, store_id, query, request):
            if passage.chunk_id not in best or best[passage.chunk_id].score < passage.score:
                best[passage.chunk_id] = passage
    ranked = sorted(best.values(), key=lambda passage: -passage.score)[: request.max_num_results]
    enough = [passage for passage in ranked if passage.score >= request.ranking_options.score_threshold]
    return SearchPage(search_query=queries, data=[result for _, result in await results_of(caller, enough)])


async def _passages(caller: Caller, store_id: str, query: str, request: StoreSearch) -> Sequence[rag.Passage]:
    base_ids = [row_in(store_id)]
    try:
        passages = await caller.platform.hooks.ask(
            rag.search_passages, caller, query, request.max_num_results, base_ids, request.filters
        )
    except Unprocessable as error:
        raise moved(error, "body", "filters") from None
    return passages or ()


def moved(error: Unprocessable, *place: str | int) -> Unprocessable:
    """The same about a filter that is at this place of the request."""
    return Unprocessable([{**one, "loc": [*place, *one["loc"][2:]]} for one in error.detail])


async def results_of(
    caller: Caller, passages: Sequence[rag.Passage]
) -> list[tuple[rag.Passage, StoreSearchResult]]:
    """Passages with the files that they are from, without those whose document was deleted meanwhile."""
    entries = await caller.platform.resource(rag.CATALOG).by_ids(
        caller, list({one.document_id for one in passages})
    )
    return [
        (
            one,
            StoreSearchResult(
                file_id=file_of(entry.key, entry.id),
                filename=entry.filename,
                score=one.score,
                attributes=attributes_of(entry.metadata),
                content=[TextContent(text=one.text)],
            ),
        )
        for one in passages
        if (entry := entries.get(one.document_id)) is not None
    ]
