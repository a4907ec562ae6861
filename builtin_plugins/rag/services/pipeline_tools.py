"""Pipelines for other plugins and as tools: listed, asked, offered as ``ask_<pipeline>`` (wire-facts 8.1)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from builtin_plugins.inference import api as inference
from builtin_plugins.rag import api
from builtin_plugins.rag.questions import asking
from builtin_plugins.rag.questions.conversing import turns_of
from builtin_plugins.rag.questions.reporting import AnswerPiece, Done, Event
from builtin_plugins.rag.schemas import QueryRequest
from builtin_plugins.rag.services.lookup import list_pipelines
from builtin_plugins.rag.services.reading import pipeline_answer
from builtin_plugins.tools.api import Tool, arguments_from_object
from kernel.sdk import Caller, Context

LONGEST_QUESTION = 8000
_LONGEST_SLUG = 51  # 64 with "ask_" before, and "_" and 8 characters after it


class PipelineQuestion(BaseModel):
    """The arguments of ``ask_<pipeline>``."""

    question: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_QUESTION)
    ] = Field(description="The complete question, understandable on its own.")


async def ask_pipeline(
    caller: Caller,
    pipeline_id: str,
    question: str,
    history: Sequence[inference.ChatMessage] = (),
    options: Mapping[str, Any] | None = None,
) -> api.PipelineEvents:
    """Implements the hook of the same name."""
    request = arguments_from_object(
        QueryRequest, {**(options or {}), "question": question[:LONGEST_QUESTION]}
    )
    prepared_question = await asking.prepare(caller, pipeline_id, request, turns_of(history))
    return _events(caller, asking.stream(prepared_question))


async def _events(caller: Caller, events: AsyncGenerator[Event, None]) -> api.PipelineEvents:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AnswerPiece):
                yield event.text
            elif isinstance(event, Done):
                yield await pipeline_answer(caller, event)


async def pipeline_tools(ctx: Context) -> list[Tool]:
    """``ask_<pipeline>`` for each pipeline of the caller's own."""
    if ctx.principal.kind == "anonymous":
        return []
    tools: dict[str, Tool] = {}
    for entry in await list_pipelines(ctx.caller):
        if entry.own:
            name = f"ask_{_slug(entry.name)}"
            name = f"{name}_{entry.id[:8]}" if name in tools else name
            tools[name] = _tool(name, entry)
    return list(tools.values())


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:_LONGEST_SLUG] or "pipeline"


def _tool(name: str, entry: api.PipelineEntry) -> Tool:
    async def run(ctx: Context, arguments: Mapping[str, Any]) -> dict[str, Any]:
        pipeline_question = arguments_from_object(PipelineQuestion, arguments)
        return await _ask(ctx.caller, entry.id, pipeline_question.question)

    return Tool(
        name,
        f"Ask the documents of '{entry.name}' a question; the answer cites its sources.",
        _PARAMETERS,
        run,
        "rag",
        action=name,
        kind="rag_pipeline",
        token_scopes=("ask",),
        endpoint=f"/v1/pipeline/{entry.id}/query",
        read_only=True,
        open_world=False,
        extra={"base_url": "/v1/rag", "result_field": "answer"},
    )


_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "description": PipelineQuestion.model_fields["question"].description}
    },
    "required": ["question"],
}


async def _ask(caller: Caller, pipeline_id: str, question: str) -> dict[str, Any]:
    events = await ask_pipeline(caller, pipeline_id, question)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, api.PipelineAnswer):
                return {"answer": event.text, "sources": _cited(event.passages)}
    raise AssertionError("a pipeline's stream must end with the complete answer")


def _cited(passages: Sequence[api.Passage]) -> list[dict[str, Any]]:
    """What each [n] in the answer refers to, without the passages' texts."""
    return [
        {
            "n": at,
            "source": passage.source,
            "page": passage.page,
            **({"section": passage.section_at(0)} if passage.sections else {}),
            "knowledge_base_id": passage.knowledge_base_id,
            "document_id": passage.document_id,
            "chunk_id": passage.chunk_id,
        }
        for at, passage in enumerate(passages, 1)
    ]
