"""Chat completions."""

from __future__ import annotations

from aiohttp import web

from builtin_plugins.inference.api import OPENAI_ERRORS
from builtin_plugins.orchestrator.errors import ModelNotFound, NotWaiting
from builtin_plugins.orchestrator.rendering.completions import chunks, failed, whole
from builtin_plugins.orchestrator.schemas import LARGEST_BODY, ChatBody, ChatCompletion
from builtin_plugins.orchestrator.services.chat import chat
from kernel.sdk import AUTHENTICATED, BadGateway, Context, GatewayTimeout, RouteTable, Unavailable
from kernel.sdk.http import send_stream

routes = RouteTable("Chat")
aliases = RouteTable("Chat")

OPTIONS = {
    "access": AUTHENTICATED,
    "body": ChatBody,
    "returns": ChatCompletion,
    "also_media_types": ("text/event-stream",),
    "errors": (ModelNotFound, NotWaiting, Unavailable, GatewayTimeout, BadGateway),
    "max_body": LARGEST_BODY,
    "long": True,
    "error_format": OPENAI_ERRORS,
    "token_scopes": ("ask",),
}


@aliases.post("/v1/chat/completions", **OPTIONS)
@routes.post("/v1/ai/chat/completions", **OPTIONS)
async def complete(ctx: Context, body: ChatBody) -> ChatCompletion | web.StreamResponse:
    """Chat with a model or a pipeline; with `stream: true` the answer comes as OpenAI's chunks.

    With `platform_tools` the model may call what the caller may call. The steps come in the field
    `platform_step` of chunks, which other clients ignore.
    """
    events = chat(ctx, body)
    if body.stream:
        return await send_stream(ctx.request, chunks(events, body), failed)
    return await whole(events)
