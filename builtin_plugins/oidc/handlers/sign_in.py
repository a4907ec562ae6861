"""`/v1/auth/oidc/login` and `/callback`: the browser's way to the provider and back (spec 5.5)."""

from __future__ import annotations

from aiohttp import web
from sqlalchemy.exc import SQLAlchemyError

from builtin_plugins.oidc.errors import BadCallback, BadIdToken, NotOffered, ProviderFault
from builtin_plugins.oidc.schemas import CallbackQuery
from builtin_plugins.oidc.service import sso_of
from builtin_plugins.oidc.settings import CALLBACK, LOGIN
from kernel.sdk import PUBLIC, Context, Forbidden, PlatformError, Rate, RouteTable

routes = RouteTable("Authentication")

_RATE = Rate(60, per="ip")  # nothing can be guessed here, and a whole office may share an address


@routes.get(LOGIN, access=PUBLIC, status=302, errors=(NotOffered, ProviderFault), rate=_RATE)
async def oidc_login(ctx: Context) -> web.Response:
    """Send the browser to the identity provider.

    Sets the cookies `oidc_state` and `oidc_nonce`, and a sealed one of this sign-in, valid for five minutes;
    several sign-ins can be under way in one browser. On failure, a browser is sent to
    the client's `/auth/callback#error=…&error_description=…`; a caller that doesn't accept HTML gets the
    error itself.
    """
    sso = sso_of(ctx)
    try:
        url, flow, sealed = await sso.sign_in.begin()
    except PlatformError as error:
        return sso.answers.failed(ctx, error)
    return sso.answers.to_provider(ctx, url, flow, sealed)


@routes.get(
    CALLBACK,
    access=PUBLIC,
    query=CallbackQuery,
    status=302,
    errors=(NotOffered, BadCallback, BadIdToken, Forbidden, ProviderFault),
    rate=_RATE,
)
async def oidc_callback(ctx: Context, query: CallbackQuery) -> web.Response:
    """Receive the browser from the identity provider and send it to the client with a token.

    The token is in the fragment: `/auth/callback#token=<ACCESS_TOKEN>`. On failure, a browser is sent to
    `/auth/callback#error=…&error_description=…`; a caller that doesn't accept HTML gets the error as JSON.
    """
    sso = sso_of(ctx)
    state = query.state or ""
    sealed = ctx.request.cookies.get(sso.answers.flow_cookie(state))
    if not sealed:
        return sso.answers.failed(ctx, BadCallback())  # the owner's own sign-ins continue
    try:
        token = await sso.sign_in.finish(query, state, sealed, ctx.audit_origin())
    except (PlatformError, SQLAlchemyError, OSError) as error:
        return sso.answers.failed(ctx, error, state=state)
    return sso.answers.signed_in(token, state)
