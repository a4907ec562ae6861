"""`/v1/auth/tokens`: the caller's own tokens; Platform Admins see and revoke those of any account."""

from __future__ import annotations

import asyncio

from builtin_plugins.access_tokens import service
from builtin_plugins.access_tokens.errors import TokenKeyUsed, TokenNotFound, TooManyTokens
from builtin_plugins.access_tokens.live import KEYS, LIVE_TOKENS
from builtin_plugins.access_tokens.schemas import AccessTokenCreate, AccessTokenCreated, AccessTokenOut
from builtin_plugins.access_tokens.secret_text import MakeToken, derived_tokens, new_token
from kernel.sdk import (
    ACCOUNT_STATES,
    AUTHENTICATED,
    PLATFORM_ADMIN,
    Answer,
    Context,
    Forbidden,
    NotFound,
    Page,
    PageQuery,
    Rate,
    RouteTable,
)

# A token can't create, list or revoke tokens: otherwise its holder could keep access for good.
routes = RouteTable("Access tokens", token_scopes=())


@routes.post(
    "/v1/auth/tokens",
    access=AUTHENTICATED,
    body=AccessTokenCreate,
    returns=AccessTokenCreated,
    status=201,
    errors=(TooManyTokens, TokenKeyUsed, Forbidden),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute),
)
async def create_access_token(ctx: Context, body: AccessTokenCreate) -> Answer:
    """Create a personal access token for a program. Its value is in this response only.

    With an `idempotency_key`, a request can be repeated if its response was lost.

    Sent as a bearer token, it allows what the account may do at the time of each request, within its scopes.
    """
    account_id = _account(ctx)
    epoch = int(ctx.principal.claims.get("epoch", 0))
    make_token = await _tokens_for(ctx, account_id, body.idempotency_key)
    token = await ctx.write(
        service.create, account_id, body, epoch=epoch, origin=ctx.audit_origin(), make_token=make_token
    )
    return Answer(token, headers={"Cache-Control": "no-store"})


@routes.get("/v1/auth/tokens", access=AUTHENTICATED, query=PageQuery, returns=Page[AccessTokenOut])
async def list_access_tokens(ctx: Context, query: PageQuery) -> Page[AccessTokenOut]:
    """List the caller's personal access tokens, newest first, without their values."""
    return await _page(ctx, _account(ctx), query)


@routes.delete(
    "/v1/auth/tokens/{token_id:int}", access=AUTHENTICATED, status=204, errors=(TokenNotFound, Forbidden)
)
async def revoke_access_token(ctx: Context, token_id: int) -> None:
    """Revoke one of the caller's personal access tokens, at once and for good."""
    await ctx.write(service.revoke, token_id, _account(ctx), ctx.audit_origin())


@routes.get(
    "/v1/auth/users/{user_id:int}/tokens",
    access=PLATFORM_ADMIN,
    query=PageQuery,
    returns=Page[AccessTokenOut],
    errors=(NotFound,),
)
async def list_access_tokens_of(ctx: Context, user_id: int, query: PageQuery) -> Page[AccessTokenOut]:
    """List the personal access tokens of an account, newest first, without their values."""
    if await ctx.resource(ACCOUNT_STATES).get(user_id) is None:
        raise NotFound("User not found")
    return await _page(ctx, user_id, query)


@routes.delete(
    "/v1/auth/users/{user_id:int}/tokens/{token_id:int}",
    access=PLATFORM_ADMIN,
    status=204,
    errors=(TokenNotFound,),
)
async def revoke_access_token_of(ctx: Context, user_id: int, token_id: int) -> None:
    """Revoke a personal access token of an account, at once and for good."""
    await ctx.write(service.revoke, token_id, user_id, ctx.audit_origin())


async def _tokens_for(ctx: Context, account_id: int, key: str | None) -> MakeToken:
    if key is None:
        return new_token
    secret = await asyncio.to_thread(ctx.platform.secrets.ensure, KEYS)
    return derived_tokens(secret, account_id, key)


async def _page(ctx: Context, account_id: int, query: PageQuery) -> Page[AccessTokenOut]:
    await ctx.resource(LIVE_TOKENS).flush()
    items, total = await ctx.read(service.list_page, account_id, query.limit, query.offset)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


def _account(ctx: Context) -> int:
    if ctx.principal.id is None:
        raise Forbidden("A service has no personal access tokens; it has a service token")
    return ctx.principal.id
