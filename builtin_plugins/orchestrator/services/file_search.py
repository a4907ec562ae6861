"""Responses that are answered from files (the tool `file_search`)."""

from __future__ import annotations

from contextlib import aclosing

from builtin_plugins.orchestrator import api
from builtin_plugins.orchestrator.events import Events, Finished, TokenUsage
from builtin_plugins.orchestrator.schemas import ChatBody
from builtin_plugins.orchestrator.schemas_responses import FileSearch
from builtin_plugins.orchestrator.services.pipelines import (
    PREFIX,
    question_and_history,
    requests_left_out,
)
from kernel.sdk import Context, Unprocessable


async def file_search_chat(ctx: Context, body: ChatBody, search: FileSearch) -> Events:
    """The answer from the files that the tool names. Raises Unprocessable and what the hook raises."""
    if (body.model or "").startswith(PREFIX):
        message = "a pipeline searches its own documents: name a model, or leave out file_search"
        raise Unprocessable.field(("body", "model"), message)
    question, history = question_and_history(body)
    limit = {"max_tokens": body.options["max_tokens"]} if body.options.get("max_tokens") else {}
    warmth = {"temperature": body.options["temperature"]} if "temperature" in body.options else {}
    file_question = api.FileQuestion(
        question, history, search.tool, search.place, body.model, {**limit, **warmth}
    )
    events = await ctx.platform.hooks.ask(api.answer_from_files, caller=ctx.caller, asked=file_question)
    if events is None:
        raise Unprocessable.field(("body", "tools", search.place), "file_search is not installed here")
    async with aclosing(events):
        async for event in events:
            yield _finished(body, event) if isinstance(event, api.FileAnswer) else event


def _finished(body: ChatBody, end: api.FileAnswer) -> Finished:
    tokens = TokenUsage()
    tokens.add_answer(end.answer)
    left_out = [one.replace("a pipeline", "file_search") for one in requests_left_out(body, end.answer)]
    if any(one.role in ("system", "developer") for one in body.messages):
        left_out.append("instructions: file_search answers by the platform's own instructions")
    return Finished(
        end.answer.model,
        end.answer.text,
        "stop",
        tokens,
        passages=end.answer.passages,
        files=end.hits,
        degraded=[*left_out, *end.degraded],
    )
