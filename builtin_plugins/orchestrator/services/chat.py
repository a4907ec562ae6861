"""Chooses who answers a chat: a pipeline, the model alone, the model with tools, or no model at all."""

from __future__ import annotations

from contextlib import aclosing

from builtin_plugins.inference import api as inference
from builtin_plugins.orchestrator.events import Events
from builtin_plugins.orchestrator.schemas import ChatBody
from builtin_plugins.orchestrator.services.loop import ToolChat, mode_of
from builtin_plugins.orchestrator.services.pipelines import PREFIX, chat_without_model, pipeline_chat
from builtin_plugins.orchestrator.services.plain import plain_chat
from builtin_plugins.tools.api import TOOLS, Tool
from kernel.sdk import Context


async def chat(ctx: Context, body: ChatBody) -> Events:
    """The chat's events, the last of them `Finished`. Closing the generator stops model and tools."""
    async with aclosing(await _way(ctx, body)) as events:
        async for event in events:
            yield event


async def _way(ctx: Context, body: ChatBody) -> Events:
    if (body.model or "").startswith(PREFIX):
        return pipeline_chat(ctx, body)
    if body.platform_tools is False:
        return plain_chat(ctx, body)
    mode = mode_of(ctx, body)
    if mode == "none":
        return plain_chat(ctx, body, offered=False)
    if not _has_runtime(ctx, body.model):
        return chat_without_model(ctx, body)
    tools = [tool for tool in await ctx.resource(TOOLS).usable(ctx) if _fits(tool, mode)]
    return ToolChat(ctx, body, tools).run() if tools else plain_chat(ctx, body, offered=False)


def _fits(tool: Tool, mode: str) -> bool:
    return mode == "all" or tool.read_only


def _has_runtime(ctx: Context, model: str | None) -> bool:
    """Whether any plugin has the model, without sending anything."""
    request = inference.ChatRequest((), model)
    events = ctx.platform.hooks.ask_now(inference.chat_with_model, platform=ctx.platform, request=request)
    return events is not None
