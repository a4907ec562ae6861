"""Asking a pipeline: who may, over which knowledge bases, by which method."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from builtin_plugins.rag.errors import KnowledgeBaseGone
from builtin_plugins.rag.methods import standard
from builtin_plugins.rag.methods.events import Done, Event, Found, Piece
from builtin_plugins.rag.models import KnowledgeBase, Pipeline
from builtin_plugins.rag.schemas import GenerationConfig, QueryAnswer, QueryRequest, RetrievalConfig
from builtin_plugins.rag.services import pipelines
from kernel.sdk import Platform, Principal, scope_of


@dataclass(frozen=True)
class Asked:
    """A question that the caller may ask: the pipeline and its knowledge bases as they are now."""

    pipeline: Pipeline
    bases: list[KnowledgeBase]
    request: QueryRequest


async def prepare(platform: Platform, principal: Principal, pipeline_id: str, request: QueryRequest) -> Asked:
    """Check pipeline and knowledge bases. Raises PipelineNotFound, KnowledgeBaseGone.

    A knowledge base that the caller may not see is as gone as a deleted one: the others answer. An answer
    that spoke of it would say that it is there.
    """
    scope = await scope_of(platform, principal)
    async with platform.database.read() as session:
        pipeline = await pipelines.find(session, scope, pipeline_id)
        bases = await pipelines.sources_of(session, scope, pipeline_id)
    if not bases:
        raise KnowledgeBaseGone()
    return Asked(pipeline, bases, _completed(request, pipeline))


def _completed(request: QueryRequest, pipeline: Pipeline) -> QueryRequest:
    """The question with the pipeline's defaults for what it leaves out."""
    defaults = RetrievalConfig.model_validate(pipeline.retrieval_config).model_dump(
        include={"top_k", "hybrid"}, exclude_none=True
    )
    missing = {key: value for key, value in defaults.items() if key not in request.model_fields_set}
    return request.model_copy(update=missing)


def stream(platform: Platform, asked: Asked) -> AsyncGenerator[Event, None]:
    """The answer as it comes: sources, pieces of text, the whole."""
    config = GenerationConfig.model_validate(asked.pipeline.generation_config)
    return standard.answer(platform, asked.bases, asked.request, config)


async def answer(platform: Platform, asked: Asked) -> QueryAnswer:
    """The whole answer at once. Raises Unavailable when embedding or generation fails."""
    async with aclosing(stream(platform, asked)) as events:
        async for event in events:
            if isinstance(event, Done):
                return event.answer
    raise AssertionError("a method ends with Done")


async def as_server_events(events: AsyncGenerator[Event, None]) -> AsyncGenerator[tuple[str, Any], None]:
    """Events by the names of decisions.md: `sources`, `token`…, `done`.

    The sources wait for the first piece of text, so that a runtime that fails before it is still a 503.
    """
    async with aclosing(events):
        sources: Found | None = None
        async for event in events:
            if isinstance(event, Found):
                sources = event
                continue
            if sources is not None:
                yield "sources", {"sources": [source.model_dump() for source in sources.sources]}
                sources = None
            yield ("token", {"text": event.text}) if isinstance(event, Piece) else ("done", event.answer)
