"""Answers from the files in vector stores, for responses with the tool `file_search`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from builtin_plugins.openai_files.names import row_in
from builtin_plugins.openai_files.schemas import Id, RankingOptions
from builtin_plugins.openai_files.services.searching import moved, results_of
from builtin_plugins.orchestrator import api as orchestrator
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Unavailable, Unprocessable


class FileSearchTool(BaseModel):
    """OpenAI's tool `file_search`."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["file_search"]
    vector_store_ids: list[Id] = Field(min_length=1, max_length=50)
    filters: dict[str, Any] | None = None
    max_num_results: int | None = Field(None, ge=1, le=50)
    ranking_options: RankingOptions | None = None


async def answer_from_files(
    caller: Caller, file_query: orchestrator.FileQuestion
) -> orchestrator.FileAnswerEvents:
    """Implements the hook of the same name."""
    place = ("body", "tools", file_query.place)
    try:
        tool = FileSearchTool.model_validate(dict(file_query.tool))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        raise Unprocessable([{**one, "loc": [*place, *one["loc"]]} for one in problems]) from None
    options = {"top_k": tool.max_num_results, "metadata_filter": tool.filters, "llm_model": file_query.model}
    sent = {name: value for name, value in options.items() if value is not None}
    base_ids = [row_in(one) for one in tool.vector_store_ids]
    try:
        events = await caller.platform.hooks.ask(
            *(rag.ask_knowledge_bases, caller, base_ids, file_query.question),
            *(file_query.history, sent, file_query.generation),
        )
    except Unprocessable as error:
        is_filter = all(list(one["loc"][:2]) == ["body", "metadata_filter"] for one in error.detail)
        raise (moved(error, *place, "filters") if is_filter else error) from None
    if events is None:
        raise Unavailable("Documents can't be searched now; try again later")
    return _events(caller, file_query.question, events, _left_out(tool))


def _left_out(tool: FileSearchTool) -> list[str]:
    if tool.ranking_options is None or not tool.ranking_options.score_threshold:
        return []
    return ["ranking_options.score_threshold: an answer measures by itself which passages support it"]


async def _events(
    caller: Caller, question: str, events: rag.BaseAnswerEvents, left_out: Sequence[str]
) -> orchestrator.FileAnswerEvents:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, rag.AnswerPassages):
                yield orchestrator.FileHits([question], await _hits(caller, event.passages))
            elif isinstance(event, rag.PipelineAnswer):
                yield orchestrator.FileAnswer(event, await _hits(caller, event.passages), left_out)
            else:
                yield event


async def _hits(caller: Caller, passages: Sequence[rag.Passage]) -> list[orchestrator.FileHit]:
    """The files of passages, in their order; one that was deleted meanwhile has no id."""
    results = await results_of(caller, passages)
    by_document = {one.document_id: result for one, result in results}
    return [
        orchestrator.FileHit(
            "" if (result := by_document.get(one.document_id)) is None else result.file_id,
            one.source,
            min(1.0, max(0.0, one.score)),
            one.text,
            {} if result is None else result.attributes,
        )
        for one in passages
    ]
