"""Asking a pipeline: who may, over which knowledge bases, by which method."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import KnowledgeBaseGone
from builtin_plugins.rag.methods import standard
from builtin_plugins.rag.methods.events import Done, Event, Found, Piece
from builtin_plugins.rag.models import KnowledgeBase, Pipeline
from builtin_plugins.rag.schemas import (
    GenerationConfig,
    QueryAnswer,
    QueryRequest,
    RetrievalConfig,
    SearchRequest,
)
from builtin_plugins.rag.services import pipelines
from kernel.sdk import Caller, Platform, Scope, scope_of

AnySearch = TypeVar("AnySearch", bound=SearchRequest)


@dataclass(frozen=True)
class Asked:
    """A question that the caller may ask: the pipeline and its knowledge bases as they are now."""

    pipeline: Pipeline
    bases: list[KnowledgeBase]
    request: QueryRequest


async def prepare(caller: Caller, pipeline_id: str, request: QueryRequest) -> Asked:
    """Check pipeline and knowledge bases. Raises PipelineNotFound, KnowledgeBaseGone.

    A knowledge base that the caller may not see is as gone as a deleted one: the others answer. An answer
    that spoke of it would say that it is there.
    """
    pipeline, bases = await sources_of(caller, pipeline_id)
    return Asked(pipeline, bases, with_defaults(request, pipeline))


async def sources_of(caller: Caller, pipeline_id: str) -> tuple[Pipeline, list[KnowledgeBase]]:
    """A pipeline and those of its knowledge bases that the caller may see.

    Raises PipelineNotFound, KnowledgeBaseGone.
    """
    scope = await scope_of(caller.platform, caller.principal)
    pipeline, bases = await caller.platform.database.read(_sources_of, scope, pipeline_id)
    if not bases:
        raise KnowledgeBaseGone()
    return pipeline, bases


def _sources_of(session: Session, scope: Scope, pipeline_id: str) -> tuple[Pipeline, list[KnowledgeBase]]:
    pipeline = pipelines.find(session, scope, pipeline_id)
    return pipeline, pipelines.sources_of(session, scope, pipeline_id)


def with_defaults(request: AnySearch, pipeline: Pipeline) -> AnySearch:
    """The question with the pipeline's defaults for what it leaves out; hybrid unless somebody says no."""
    defaults = RetrievalConfig.model_validate(pipeline.retrieval_config).model_dump(
        include={"top_k", "hybrid"}, exclude_none=True
    )
    said = request.model_dump(include={"top_k", "hybrid"}, exclude_unset=True, exclude_none=True)
    return request.model_copy(update={"hybrid": True, **defaults, **said})


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
