"""Access for visitors: which chat, from which page, in which session, how often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import hdrs
from sqlalchemy import bindparam, select

from builtin_plugins.published_chat import origins
from builtin_plugins.published_chat.errors import (
    ChatClosed,
    ChatNotFound,
    OriginRefused,
    VisitorTokenInvalid,
)
from builtin_plugins.published_chat.models import ChatEndpoint
from builtin_plugins.published_chat.services.owners import state_of
from builtin_plugins.published_chat.settings import PublishedChatSettings
from builtin_plugins.published_chat.tokens import VISITOR_TOKENS, Credential, Visitor
from kernel.sdk import RATE_LIMITS, Caller, Context, Platform, Prepared, ResourceKey

_LONGEST_ORIGIN = 255
_ENDPOINT: Any = ChatEndpoint.__table__
_FIND = Prepared(select(*_ENDPOINT.c).where(_ENDPOINT.c.slug_key == bindparam("slug_key")))

THRESHOLD: ResourceKey[asyncio.Lock] = ResourceKey("published_chat.threshold")
"""Visitors are admitted one at a time, first come, first served. Otherwise fifty at once would all have work
in every turn of the event loop and in every thread, and other routes would wait for all of them.
"""


@dataclass(frozen=True)
class Door:
    """An open chat that a page of this origin may use, and its owner."""

    endpoint: ChatEndpoint
    origin: str
    owner: Caller
    credential: Credential | None


def credential_of(ctx: Context) -> Credential | None:
    """The visitor's token in `Authorization`; anything else there is refused (spec 5.1 rule 5).

    Raises VisitorTokenInvalid.
    """
    if hdrs.AUTHORIZATION not in ctx.request.headers:
        return None
    if ctx.bearer is None:
        raise VisitorTokenInvalid()
    return ctx.resource(VISITOR_TOKENS).read(ctx.bearer)


async def find_chat(ctx: Context, slug: str) -> ChatEndpoint:
    """The endpoint of this slug. Raises ChatNotFound."""
    row = await ctx.read(_FIND.first, {"slug_key": slug.casefold()})
    if row is None:
        raise ChatNotFound()
    return ChatEndpoint(**row)


def origin_of(ctx: Context, endpoint: ChatEndpoint) -> str:
    """The page's origin. Raises OriginRefused if it is missing or not allowed."""
    origin = ctx.request.headers.get(hdrs.ORIGIN)
    if origin is None:
        raise OriginRefused("The chat is only available on allowed sites: the header Origin is missing")
    if len(origin) > _LONGEST_ORIGIN:
        raise OriginRefused("The chat is only available on allowed sites: the header Origin is too long")
    if not origins.allowed(endpoint.allowed_origins, origin):
        raise OriginRefused()
    return origin.lower()


async def open_door(ctx: Context, slug: str) -> Door:
    """Make all checks. Raises VisitorTokenInvalid, ChatNotFound, OriginRefused, ChatClosed."""
    credential = credential_of(ctx)
    endpoint = await find_chat(ctx, slug)
    origin = origin_of(ctx, endpoint)
    return Door(endpoint, origin, await check_open(ctx, endpoint), credential)


async def check_open(ctx: Context, endpoint: ChatEndpoint) -> Caller:
    """The owner of a chat, if it answers now. Raises ChatClosed."""
    _, owner = await state_of(ctx.platform, endpoint)
    if owner is None:
        raise ChatClosed()
    return owner


def visitor_of(ctx: Context, door: Door) -> Visitor:
    """The session of the token that was sent. Raises VisitorTokenInvalid."""
    if door.credential is None:
        raise VisitorTokenInvalid()
    return ctx.resource(VISITOR_TOKENS).verify(door.credential, door.endpoint.id, door.origin)


async def count_session(ctx: Context, door: Door) -> None:
    """Count a new session. Raises TooManyRequests."""
    limit = ctx.settings_of(PublishedChatSettings).address_rate
    await ctx.resource(RATE_LIMITS).count(f"chat:new:{door.endpoint.id}:{_network(ctx)}", limit)


async def count_question(ctx: Context, door: Door, visitor: Visitor) -> None:
    """Count a question: for the session, the address and the endpoint. Raises TooManyRequests.

    The widest limit comes last, so that one visitor can't use up others' share.
    """
    counters, settings = ctx.resource(RATE_LIMITS), ctx.settings_of(PublishedChatSettings)
    endpoint = door.endpoint
    await counters.count(f"chat:session:{visitor.session_id}", settings.session_rate)
    await counters.count(f"chat:address:{endpoint.id}:{_network(ctx)}", settings.address_rate)
    await counters.count(f"chat:endpoint:{endpoint.id}", endpoint.rate_limit_per_minute)


async def count_feedback(ctx: Context, visitor: Visitor) -> None:
    """Count a rating of the session. Raises TooManyRequests."""
    await ctx.resource(RATE_LIMITS).count(f"chat:feedback:{visitor.session_id}", 30)


def _network(ctx: Context) -> str:
    return ctx.resource(VISITOR_TOKENS).blind(ctx.network)


@asynccontextmanager
async def open_threshold(platform: Platform) -> AsyncIterator[asyncio.Lock]:
    """The threshold of this process."""
    yield asyncio.Lock()
