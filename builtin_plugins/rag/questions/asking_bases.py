"""Asking knowledge bases without a pipeline, for other plugins."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from builtin_plugins.inference import api as inference
from builtin_plugins.rag import api
from builtin_plugins.rag.filters.binding import FilterSource, bound
from builtin_plugins.rag.questions.asking import run
from builtin_plugins.rag.questions.attachments import with_attachments
from builtin_plugins.rag.questions.conversing import turns_of
from builtin_plugins.rag.questions.methods import METHODS
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.reporting import AnswerBasis, AnswerPiece, Done, Event
from builtin_plugins.rag.schemas import GenerationConfig, QueryRequest
from builtin_plugins.rag.services import loading
from builtin_plugins.rag.services.reading import pipeline_answer
from builtin_plugins.tools.api import arguments_from_object
from kernel.sdk import Caller


async def ask_bases(
    caller: Caller,
    base_ids: Sequence[str],
    question: str,
    history: Sequence[inference.ChatMessage],
    options: Mapping[str, Any],
    generation: Mapping[str, Any],
) -> api.BaseAnswerEvents:
    """Implements the hook `ask_knowledge_bases`."""
    bases = [await loading.knowledge_base(caller, one) for one in dict.fromkeys(base_ids)]
    request = arguments_from_object(QueryRequest, {**options, "question": question})
    config = arguments_from_object(GenerationConfig, dict(generation))
    filters = [FilterSource(request.metadata_filter)]
    asked, sources = await with_attachments(caller, request, bases, filters)
    documents = await bound(caller, [base.id for base in asked], *sources)
    inquiry = Question(
        caller,
        asked,
        request,
        documents,
        requests_hybrid=request.hybrid is not None,
        config=config,
        history=turns_of(history),
    )
    return _events(caller, run(caller.platform.resource(METHODS).named(request.method), inquiry))


async def _events(caller: Caller, events: AsyncGenerator[Event, None]) -> api.BaseAnswerEvents:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AnswerBasis):
                yield api.AnswerPassages(event.passages)
            elif isinstance(event, AnswerPiece):
                yield event.text
            elif isinstance(event, Done):
                yield await pipeline_answer(caller, event)
