"""The public side: what pages of other sites call for their visitors (decisions.md, Published chat)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from aiohttp import web

from builtin_plugins.published_chat import origins
from builtin_plugins.published_chat.errors import (
    ChatClosed,
    ChatNotFound,
    DailyLimit,
    OriginRefused,
    VisitorTokenInvalid,
    VisitorTurnNotFound,
)
from builtin_plugins.published_chat.schemas import (
    ChatAnswer,
    ChatFeedback,
    ChatMessage,
    ChatPage,
    ChatSession,
    RagConfig,
)
from builtin_plugins.published_chat.services import feedback, messages, sessions, visitor_access
from builtin_plugins.published_chat.services.visitor_access import THRESHOLD
from builtin_plugins.published_chat.tokens import VISITOR_TOKENS
from builtin_plugins.published_chat.widget import WIDGET
from kernel.sdk import PUBLIC, Context, RouteTable, TooManyRequests, Unavailable, send_events

routes = RouteTable("Published chat: visitors")

_CHAT = "/v1/chat/{slug}"
_LARGEST_BODY = 64 * 1024
_REFUSED = (ChatNotFound, OriginRefused, ChatClosed)


@routes.get(_CHAT, access=PUBLIC, returns=ChatPage, errors=_REFUSED, any_origin=True)
async def page(ctx: Context, slug: str) -> ChatPage:
    """Show what a page needs for the chat: its name and its texts."""
    async with ctx.resource(THRESHOLD):
        endpoint = await visitor_access.find_chat(ctx, slug)
        sent = ctx.request.headers.get("Origin")
        if sent is not None and not origins.allowed(endpoint.allowed_origins, sent):
            raise OriginRefused()
        await visitor_access.check_open(ctx, endpoint)
    config = RagConfig.model_validate(endpoint.rag_config)
    return ChatPage(
        slug=endpoint.slug, name=endpoint.name, greeting=config.greeting, placeholder=config.placeholder
    )


@routes.post(
    _CHAT + "/session",
    access=PUBLIC,
    returns=ChatSession,
    errors=(*_REFUSED, VisitorTokenInvalid, TooManyRequests),
    max_body=_LARGEST_BODY,
    judges_credential=True,
    any_origin=True,
)
async def session(ctx: Context, slug: str) -> ChatSession:
    """Begin a session, or continue that of the token in `Authorization`, which may have expired.

    The token works for this chat alone, on pages of the origin that asked for it.
    """
    tokens, past = ctx.resource(VISITOR_TOKENS), []
    async with ctx.resource(THRESHOLD):
        door = await visitor_access.open_door(ctx, slug)
        if door.credential is None:
            await visitor_access.count_session(ctx, door)
            visitor = tokens.new()
        else:
            visitor = tokens.verify_for_renewal(door.credential, door.endpoint.id, door.origin)
            past = await sessions.restore(door, visitor)
    token = tokens.mint(visitor, door.endpoint.id, door.origin)
    return ChatSession(token=token, expires_in=tokens.lifetime, messages=past)


@routes.post(
    _CHAT + "/messages",
    access=PUBLIC,
    body=ChatMessage,
    returns=ChatAnswer,
    also_media_types=("text/event-stream",),
    errors=(*_REFUSED, VisitorTokenInvalid, DailyLimit, Unavailable),
    max_body=_LARGEST_BODY,
    long=True,
    judges_credential=True,
    any_origin=True,
)
async def ask(ctx: Context, slug: str, body: ChatMessage) -> ChatAnswer | web.StreamResponse:
    """Ask a question. With `Accept: text/event-stream`, the answer is streamed as the events `token`… and
    `done`.
    """
    async with ctx.resource(THRESHOLD):
        door = await visitor_access.open_door(ctx, slug)
        visitor = visitor_access.visitor_of(ctx, door)
        await visitor_access.count_question(ctx, door, visitor)
        pieces = await messages.ask(door, visitor, body)
    if "text/event-stream" in ctx.request.headers.get("Accept", ""):
        return await send_events(ctx.request, _as_events(pieces))
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, ChatAnswer):
                return piece
    raise AssertionError("a pipeline's stream must end with the complete answer")


async def _as_events(pieces: messages.Pieces) -> AsyncGenerator[tuple[str, Any], None]:
    async with aclosing(pieces):
        async for piece in pieces:
            yield ("done", piece) if isinstance(piece, ChatAnswer) else ("token", {"text": piece})


@routes.post(
    _CHAT + "/feedback",
    access=PUBLIC,
    body=ChatFeedback,
    status=204,
    errors=(*_REFUSED, VisitorTokenInvalid, VisitorTurnNotFound, TooManyRequests),
    max_body=_LARGEST_BODY,
    judges_credential=True,
    any_origin=True,
)
async def rate(ctx: Context, slug: str, body: ChatFeedback) -> None:
    """Rate an answer of the session."""
    async with ctx.resource(THRESHOLD):
        door = await visitor_access.open_door(ctx, slug)
        visitor = visitor_access.visitor_of(ctx, door)
        await visitor_access.count_feedback(ctx, visitor)
        await feedback.rate(door, visitor, body)


@routes.get(
    _CHAT + "/widget.js",
    access=PUBLIC,
    returns=str,
    media_type="text/javascript",
    errors=(ChatNotFound,),
    any_origin=True,
)
async def widget(ctx: Context, slug: str) -> web.Response:
    """Get the script that shows the chat on a page."""
    await visitor_access.find_chat(ctx, slug)
    return web.Response(
        body=ctx.resource(WIDGET),
        headers={
            "Content-Type": "text/javascript; charset=utf-8",
            "Cache-Control": "public, max-age=300",
            "Cross-Origin-Resource-Policy": "cross-origin",
        },
    )
