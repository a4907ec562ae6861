"""`/v1/auth/oidc/login` and `/callback`: the browser's way to the provider and back (spec 5.5)."""

from __future__ import annotations

from aiohttp import web
from sqlalchemy.exc import SQLAlchemyError

from builtin_plugins.oidc.answers import NONCE, STATE
from builtin_plugins.oidc.errors import BadCallback, BadIdToken, NotOffered, ProviderFault
from builtin_plugins.oidc.schemas import CallbackQuery
from builtin_plugins.oidc.service import sso_of
from builtin_plugins.oidc.settings import CALLBACK, LOGIN
from kernel.sdk import PUBLIC, Context, Forbidden, PlatformError, Rate, RouteTable

routes = RouteTable("Authentication")

_RATE = Rate(60, per="ip")  # nothing can be guessed here, and a whole office may share one address


@routes.get(LOGIN, access=PUBLIC, status=302, errors=(NotOffered, ProviderFault), rate=_RATE)
async def oidc_login(ctx: Context) -> web.Response:
    """Send the browser to the identity provider.

    Sets the cookies `oidc_state` and `oidc_nonce`, valid for five minutes. On failure, a browser is sent to
    the client's `/auth/callback#error=…&error_description=…`; a caller that doesn't accept HTML gets the
    error itself.
    """
    sso = sso_of(ctx)
    try:
        url, flow, sealed = await sso.sign_in.begin()
    except PlatformError as error:
        return sso.answers.failed(ctx, error)
    return sso.answers.to_provider(url, flow, sealed)


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
    cookies = ctx.request.cookies
    if not query.state or cookies.get(STATE) != query.state:
        return sso.answers.failed(ctx, BadCallback(), forget=False)  # the owner's sign-in continues
    try:
        sealed = cookies.get(sso.answers.flow_cookie)
        token = await sso.sign_in.finish(query, sealed, cookies.get(NONCE), ctx.audit_origin())
    except (PlatformError, SQLAlchemyError, OSError) as error:
        return sso.answers.failed(ctx, error)
    return sso.answers.signed_in(token)
