"""OpenAI's Responses API."""

from __future__ import annotations

from aiohttp import web
from pydantic import ValidationError

from builtin_plugins.inference.api import OPENAI_ERRORS
from builtin_plugins.orchestrator.errors import ModelNotFound, NotWaiting
from builtin_plugins.orchestrator.rendering.responses import Stream, whole
from builtin_plugins.orchestrator.schemas import LARGEST_BODY, ChatBody
from builtin_plugins.orchestrator.schemas_responses import ResponseOut, ResponsesBody
from builtin_plugins.orchestrator.services.chat import chat
from builtin_plugins.orchestrator.services.file_search import file_search_chat
from kernel.sdk import (
    AUTHENTICATED,
    BadGateway,
    Context,
    GatewayTimeout,
    NotFound,
    RouteTable,
    Unavailable,
    Unprocessable,
)
from kernel.sdk.http import send_stream

routes = RouteTable("Chat")
aliases = RouteTable("Chat")

OPTIONS = {
    "access": AUTHENTICATED,
    "body": ResponsesBody,
    "returns": ResponseOut,
    "also_media_types": ("text/event-stream",),
    "errors": (ModelNotFound, NotFound, NotWaiting, Unavailable, GatewayTimeout, BadGateway),
    "max_body": LARGEST_BODY,
    "long": True,
    "error_format": OPENAI_ERRORS,
    "token_scopes": ("ask",),
}


@aliases.post("/v1/responses", **OPTIONS)
@routes.post("/v1/ai/responses", **OPTIONS)
async def respond(ctx: Context, body: ResponsesBody) -> ResponseOut | web.StreamResponse:
    """The same as a chat completion, in the shape of OpenAI's Responses API; nothing is stored.

    With the tool `file_search`, the answer is from the files in vector stores and cites them.
    """
    search = body.file_search()
    chat_body = _as_chat(body)
    events = chat(ctx, chat_body) if search is None else file_search_chat(ctx, chat_body, search)
    if body.stream:
        stream = Stream(body)
        return await send_stream(ctx.request, stream.frames(events), stream.failed)
    return await whole(events, body)


def _as_chat(body: ResponsesBody) -> ChatBody:
    try:
        return body.as_chat()
    except ValidationError as error:
        first = error.errors()[0]
        field = next((name for name in ("tools", "tool_choice") if name in first["loc"]), "input")
        raise Unprocessable.field(("body", field), first["msg"]) from None
