"""A chat that is passed on to the model runtime unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from builtin_plugins.inference import api as inference
from builtin_plugins.orchestrator.errors import ModelNotFound, NoChatModel
from builtin_plugins.orchestrator.events import Events, Finished, TokenUsage
from builtin_plugins.orchestrator.schemas import ChatBody
from builtin_plugins.orchestrator.services.turns import ChatTurn
from kernel.sdk import Context


def ask_model(
    ctx: Context,
    body: ChatBody,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    own_options: Mapping[str, Any] | None = None,
) -> inference.ChatEvents:
    """A model's next turn; nothing is sent before it is followed. Raises NoModel."""
    options = body.options if own_options is None else own_options
    request = inference.ChatRequest(messages, body.model, tools, options, bool(body.stream))
    events = ctx.platform.hooks.ask_now(inference.chat_with_model, platform=ctx.platform, request=request)
    if events is None:
        raise NoChatModel()
    return events


async def plain_chat(
    ctx: Context, body: ChatBody, *, offered: bool | None = None, degraded: Sequence[str] = ()
) -> Events:
    """The model's turn and its end. Raises NoModel, ModelNotFound, and what the runtime raises."""
    turn, tokens = ChatTurn(pass_calls=True), TokenUsage()
    try:
        events = ask_model(ctx, body, body.given_messages, body.tools or ())
    except NoChatModel:
        if body.model and any(
            await ctx.platform.hooks.ask(inference.list_chat_models, platform=ctx.platform)
        ):
            raise ModelNotFound(f"There is no model '{body.model}'") from None
        raise
    async with aclosing(turn.follow(events)) as followed:
        async for event in followed:
            yield event
    end = turn.ended()
    tokens.add(end)
    yield Finished(
        end.model,
        turn.text,
        end.finish_reason,
        tokens,
        thought=turn.thought,
        calls=turn.calls,
        offered=offered,
        logprobs=end.logprobs,
        degraded=degraded,
    )
