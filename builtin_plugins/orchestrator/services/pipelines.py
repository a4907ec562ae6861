"""Pipelines as models: ``pipeline/<name>`` instead of a model's name, and answers without any model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from builtin_plugins.inference import api as inference
from builtin_plugins.orchestrator.errors import ModelNotFound, NoChatModel
from builtin_plugins.orchestrator.events import Events, Finished, TokenUsage, ToolStep
from builtin_plugins.orchestrator.schemas import ChatBody, ChatMessageIn
from kernel.sdk import Context, PlatformError, Unprocessable

try:
    from builtin_plugins.rag import api as rag
except ModuleNotFoundError:  # not installed: there are no pipelines
    rag = None  # type: ignore[assignment]

PREFIX = "pipeline/"

_MOST_ASKED = 8
_LIMITS = ("max_tokens", "max_completion_tokens")
_ROLES: dict[str, inference.ChatRole] = {"user": "user", "assistant": "assistant", "system": "system"}


@dataclass(frozen=True)
class PipelineModel:
    """A pipeline under its name among models."""

    id: str
    entry: rag.PipelineEntry


async def pipeline_models(ctx: Context) -> list[PipelineModel]:
    """The pipelines that the caller may ask, own ones first; of two with one name, the later has its id."""
    if rag is None:
        return []
    entries = await ctx.platform.hooks.ask(rag.list_pipelines, caller=ctx.caller) or ()
    entries_by_name: dict[str, rag.PipelineEntry] = {}
    for entry in sorted(entries, key=lambda entry: not entry.own):
        name = PREFIX + entry.name
        entries_by_name[PREFIX + entry.id if name in entries_by_name else name] = entry
    return [PipelineModel(name, entry) for name, entry in entries_by_name.items()]


async def find_pipeline(ctx: Context, model: str) -> PipelineModel:
    """The pipeline of this name or id, with the prefix. Raises ModelNotFound."""
    for candidate in await pipeline_models(ctx):
        if model in (candidate.id, PREFIX + candidate.entry.id):
            return candidate
    raise ModelNotFound(f"There is no model '{model}'")


async def pipeline_chat(ctx: Context, body: ChatBody) -> Events:
    """Ask the pipeline that the body names as its model. Raises ModelNotFound, and what asking raises."""
    model = await find_pipeline(ctx, body.model or "")
    question, history = question_and_history(body)
    events = await _ask(ctx, model.entry, question, history)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, rag.PipelineAnswer):
                tokens = TokenUsage()
                tokens.add_answer(event)
                yield _finished(model.id, event, tokens, degraded=requests_left_out(body, event))
            else:
                yield event


def requests_left_out(body: ChatBody, answer: rag.PipelineAnswer) -> list[str]:
    """What the client requested but a pipeline doesn't do."""
    notices = []
    if body.tools:
        notices.append("tools: a pipeline calls no functions of the client")
    if any(_has_more_than_text(message) for message in body.messages):
        notices.append("messages: a pipeline reads texts, and no pictures or files")
    response_format = body.options.get("response_format")
    if isinstance(response_format, dict) and response_format.get("type") != "text":
        notices.append("response_format: a pipeline answers in plain text")
    for name in _LIMITS:
        most = body.options.get(name)
        if isinstance(most, int) and (answer.output_tokens or 0) > most:
            notices.append(f"{name}: a pipeline's own settings bound its answers")
    return notices


async def chat_without_model(ctx: Context, body: ChatBody) -> Events:
    """Ask the caller's pipelines and give the best answer, quoted from its passages. Raises NoModel.

    Only for chats with `platform_tools`, where the caller has requested the platform's knowledge.
    """
    models = (await pipeline_models(ctx))[:_MOST_ASKED]
    if not models:
        raise NoChatModel()
    question, _ = question_and_history(body)
    best: rag.PipelineAnswer | None = None
    steps, tokens = list[ToolStep](), TokenUsage()
    for model in models:
        yield ToolStep("running", model.id, {"question": question})
        try:
            answer = await _whole(ctx, model.entry, question)
        except PlatformError as error:  # one without its knowledge base must not hide the others
            steps.append(ToolStep("failed", model.id, {"question": question}, str(error.detail)))
        else:
            steps.append(ToolStep("done", model.id, {"question": question}, answer.text))
            tokens.add_answer(answer)
            if best is None or _worth(answer) > _worth(best):
                best = answer
        yield steps[-1]
    if best is None:
        raise NoChatModel()
    yield best.text
    note = "generation: no model runtime is configured, the caller's pipelines were asked"
    yield _finished(best.model, best, tokens, steps=steps, degraded=[note])


def _finished(model: str, answer: rag.PipelineAnswer, tokens: TokenUsage, **more: Any) -> Finished:
    steps = more.get("steps")
    offered = None if steps is None else True
    calls_made = None if steps is None else len(steps)
    return Finished(
        model,
        answer.text,
        "stop",
        tokens,
        passages=answer.passages,
        offered=offered,
        calls_made=calls_made,
        **more,
    )


async def _whole(ctx: Context, entry: rag.PipelineEntry, question: str) -> rag.PipelineAnswer:
    events = await _ask(ctx, entry, question, ())
    async with aclosing(events):
        async for event in events:
            if isinstance(event, rag.PipelineAnswer):
                return event
    raise AssertionError("a pipeline's stream must end with the complete answer")


async def _ask(
    ctx: Context,
    entry: rag.PipelineEntry,
    question: str,
    history: Sequence[inference.ChatMessage],
) -> rag.PipelineEvents:
    events = await ctx.platform.hooks.ask(
        rag.ask_pipeline,
        caller=ctx.caller,
        pipeline_id=entry.id,
        question=question,
        history=history,
        options={},
    )
    if events is None:
        raise ModelNotFound()
    return events


def _worth(answer: rag.PipelineAnswer) -> tuple[bool, float]:
    return bool(answer.passages), answer.confidence


def question_and_history(body: ChatBody) -> tuple[str, list[inference.ChatMessage]]:
    """The last question, and the history before it. Raises Unprocessable without a question."""
    at = next((n for n in reversed(range(len(body.messages))) if body.messages[n].role == "user"), None)
    question = "" if at is None else _text(body.messages[at]).strip()
    if at is None or not question:
        raise Unprocessable.field(("body", "messages"), "needs a message of the role 'user' with a text")
    before = [message for message in body.messages[:at] if message.role in _ROLES]
    return question, [inference.ChatMessage(_ROLES[one.role], _text(one)) for one in before]


def _has_more_than_text(message: ChatMessageIn) -> bool:
    parts = message.content if message.role == "user" and isinstance(message.content, list) else ()
    return any(part["type"] != "text" for part in parts)


def _text(message: ChatMessageIn) -> str:
    if isinstance(message.content, str):
        return message.content
    texts = (part.get("text") for part in message.content or () if part.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))
