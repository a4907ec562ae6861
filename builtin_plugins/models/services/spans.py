"""Calls of models as spans, by OpenTelemetry's conventions for generative AI.

They record which model was called by what, and the tokens used; never any text. A model's name may be
arbitrary text of a client's until a runtime lists it or answers by it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, aclosing
from typing import Final, TypeVar

from builtin_plugins.inference import api as inference
from kernel.sdk import Span
from kernel.sdk.telemetry import Attributes, Tracing, current_span

T = TypeVar("T")

_LONGEST: Final = 200


def begin_chat(tracing: Tracing, model: str | None, provider: str) -> Span:
    """Begin a span for a turn. `model` is one that the runtime is known to have, else None; `provider` is the
    kind of runtime: ``ollama``, ``openai`` or ``local``.
    """
    return tracing.begin("chat", "client", _attributes("chat", model, provider))


def embedding_span(tracing: Tracing, model: str | None, provider: str) -> AbstractContextManager[Span]:
    """A span for embedding; `model` and `provider` as for `begin_chat`."""
    return tracing.span("embeddings", "client", _attributes("embeddings", model, provider))


def note_embedded(span: Span, model: str) -> None:
    """Record that the runtime has made vectors by that model."""
    span.set("gen_ai.request.model", model[:_LONGEST])


def note_generated(span: Span, end: inference.Completion) -> None:
    """Record what a runtime reported about a whole answer."""
    read = None
    if end.tokens_used is not None and end.output_tokens is not None:
        read = end.tokens_used - end.output_tokens
    _note(span, end.model, end.finish_reason, read, end.output_tokens)


def note_turn(span: Span, end: inference.ChatEnd) -> None:
    """Record what a runtime reported about a turn in a chat."""
    _note(span, end.model, end.finish_reason, end.prompt_tokens, end.completion_tokens)


def _attributes(operation: str, model: str | None, provider: str) -> Attributes:
    of_model = {} if model is None else {"gen_ai.request.model": model[:_LONGEST]}
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider,
        "gen_ai.system": provider,  # its name in older conventions, which many tools still read
        **of_model,
    }


def _note(span: Span, model: str, reason: str | None, read: int | None, written: int | None) -> None:
    span.set("gen_ai.request.model", model[:_LONGEST])
    span.set("gen_ai.response.model", model[:_LONGEST])
    span.set("gen_ai.response.finish_reasons", None if reason is None else [reason])
    span.set("gen_ai.usage.input_tokens", read)
    span.set("gen_ai.usage.output_tokens", written)


async def inside(span: Span, items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """The same items, made below `span`. A block inside a generator would leak it to the reader."""
    async with aclosing(items):
        while True:
            with current_span(span):
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    return
            yield item
