"""Asking a pipeline: who may ask, over which knowledge bases, by which method.

`prepare` makes all checks that can refuse, `stream` answers piece by piece, `answer` all at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from builtin_plugins.rag.answering.prompting import Turn
from builtin_plugins.rag.errors import KnowledgeBaseGone
from builtin_plugins.rag.methods.method import Method
from builtin_plugins.rag.methods.registry import METHODS
from builtin_plugins.rag.models import KnowledgeBase, Pipeline
from builtin_plugins.rag.questions.conversing import kept, open_turn
from builtin_plugins.rag.questions.events import Done, Event, Found, Piece, Step
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.running import run
from builtin_plugins.rag.schemas import (
    GenerationConfig,
    QueryAnswer,
    QueryRequest,
    RetrievalConfig,
    SearchRequest,
)
from builtin_plugins.rag.services import loading
from kernel.sdk import Caller, contracts

AnySearch = TypeVar("AnySearch", bound=SearchRequest)


@dataclass(frozen=True)
class Asked:
    """A question that the caller may ask, the method that will answer it, its turn in a conversation."""

    pipeline: Pipeline
    question: Question
    method: Method
    turn: contracts.OpenTurn | None = None


async def prepare(
    caller: Caller, pipeline_id: str, request: QueryRequest, history: Sequence[Turn] = ()
) -> Asked:
    """Check method, pipeline and knowledge bases; `history` is what was said before, oldest first.

    A knowledge base that the caller may not see is skipped like a deleted one; mentioning it would reveal
    that it exists. Raises Unprocessable, PipelineNotFound, KnowledgeBaseGone.
    """
    method = caller.platform.resource(METHODS).named(request.method)
    pipeline, bases = await sources_of(caller, pipeline_id)
    full = with_defaults(request, pipeline)
    config = GenerationConfig.model_validate(pipeline.generation_config)
    question = Question(
        caller,
        bases,
        full,
        hybrid_said="hybrid" in full.model_fields_set and full.hybrid is not None,
        config=config,
        history=history,
    )
    turn = await _open_turn(question, pipeline_id)
    return Asked(pipeline, question, method, turn)


async def _open_turn(question: Question, pipeline_id: str) -> contracts.OpenTurn | None:
    """Open a turn in the question's conversation, whose history replaces the given one."""
    conversation_id = question.request.conversation_id
    if conversation_id is None:
        return None
    turn = await open_turn(question.caller, pipeline_id, question.text, conversation_id)
    if turn is None:
        question.trace.degrade("conversation: not available on this server")
        return None
    question.history = [Turn(past.question, past.answer) for past in turn.history]
    question.trace.details["conversation"] = {
        "conversation_id": conversation_id,
        "turn_id": turn.id,
        "turns": len(turn.history),
    }
    return turn


async def sources_of(caller: Caller, pipeline_id: str) -> tuple[Pipeline, list[KnowledgeBase]]:
    """A pipeline and those of its knowledge bases that the caller may see.

    Raises PipelineNotFound, KnowledgeBaseGone.
    """
    pipeline, bases = await loading.pipeline(caller, pipeline_id)
    if not bases:
        raise KnowledgeBaseGone()
    return pipeline, bases


def with_defaults(request: AnySearch, pipeline: Pipeline) -> AnySearch:
    """The question, completed with the pipeline's defaults."""
    defaults = RetrievalConfig.model_validate(pipeline.retrieval_config).model_dump(
        include={"top_k", "hybrid"}, exclude_none=True
    )
    said = request.model_dump(include={"top_k", "hybrid"}, exclude_unset=True, exclude_none=True)
    return request.model_copy(update={**defaults, **said})


def stream(asked: Asked) -> AsyncGenerator[Event, None]:
    """The events of an answer: steps, sources, pieces of text, the whole. Closing the stream stops the model.

    A conversation's turn is stored before the last event.
    """
    events = run(asked.method, asked.question)
    return events if asked.turn is None else kept(asked.question.caller, asked.turn, events)


async def answer(asked: Asked) -> QueryAnswer:
    """The whole answer at once. Raises Unavailable when embedding or generation fails."""
    async with aclosing(stream(asked)) as events:
        async for event in events:
            if isinstance(event, Done):
                return event.answer
    raise AssertionError("a question ends with Done")


async def as_server_events(events: AsyncGenerator[Event, None]) -> AsyncGenerator[tuple[str, Any], None]:
    """Events for clients: `sources`, `token`…, `done`; also `step` while a method thinks.

    The sources are held back until the first piece of text, so that a runtime that fails before it still
    results in a 503 if no step was sent.
    """
    async with aclosing(events):
        sources: Found | None = None
        async for event in events:
            if isinstance(event, Step):
                yield "step", {"step": event.name, "message": event.message}
                continue
            if isinstance(event, Found):
                sources = event
                continue
            if sources is not None:
                yield "sources", {"sources": [source.model_dump() for source in sources.sources]}
                sources = None
            yield ("token", {"text": event.text}) if isinstance(event, Piece) else ("done", event.answer)
