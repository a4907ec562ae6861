"""Sign-out here and at the provider, and the provider's back-channel."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs

from builtin_plugins.oidc.errors import BadLogoutToken, NotOffered
from builtin_plugins.oidc.schemas import SignedOut
from builtin_plugins.oidc.service import sso_of
from kernel.sdk import (
    AUTHENTICATED,
    PUBLIC,
    Answer,
    Context,
    Forbidden,
    Message,
    PlatformError,
    RawBody,
    RouteTable,
    read_body,
)

routes = RouteTable("Authentication")

_LARGEST: Final = 65_536
_SILENCE: Final = 10.0
_NO_STORE: Final = {"Cache-Control": "no-store"}
_LOGOUT_TOKEN: Final = {
    "type": "string",
    "description": "A JWT that the provider signed, with the claims `iss`, `aud`, `iat`, `exp`, `jti`, "
    "`events`, and `sub` or `sid`.",
}
# The claims are complete; the signature is only a text, since no one but a provider can sign.
_LOGOUT_EXAMPLE: Final = (
    "eyJhbGciOiJSUzI1NiIsInR5cCI6ImxvZ291dCtqd3QifQ."
    "eyJpc3MiOiJodHRwczovL3Nzby5leGFtcGxlLm9yZyIsImF1ZCI6InBsYXRmb3JtIiwiaWF0IjoxNzY3MjI1NjAwLCJleHAi"
    "OjE3NjcyMjU3MjAsImp0aSI6ImI0MWMiLCJzdWIiOiIyNDQwMDMyMCIsImV2ZW50cyI6eyJodHRwOi8vc2NoZW1hcy5vcGVu"
    "aWQubmV0L2V2ZW50L2JhY2tjaGFubmVsLWxvZ291dCI6e319fQ"
    ".dGhlIHByb3ZpZGVyJ3Mgc2lnbmF0dXJl"
)
_LOGOUT_FORM: Final = RawBody(
    ("application/x-www-form-urlencoded",),
    {"type": "object", "required": ["logout_token"], "properties": {"logout_token": _LOGOUT_TOKEN}},
    example={"logout_token": _LOGOUT_EXAMPLE},
)


@routes.post(
    "/v1/auth/oidc/logout",
    access=AUTHENTICATED,
    returns=SignedOut,
    errors=(NotOffered, Forbidden),
    token_scopes=(),
)
async def oidc_logout(ctx: Context) -> Answer:
    """End all of the caller's sessions and return where to sign out at the identity provider.

    `logout_url` is null for a local account, and if the provider has no such page.
    """
    sso = sso_of(ctx)
    if ctx.principal.id is None:
        raise Forbidden("A service has no session to end")
    url = await sso.sign_out.here(ctx.principal.id, ctx.audit_origin())
    return Answer(SignedOut(message="Signed out", logout_url=url), headers=_NO_STORE)


@routes.post(
    "/v1/auth/oidc/backchannel-logout",
    access=PUBLIC,
    body=_LOGOUT_FORM,
    returns=Message,
    errors=(NotOffered, BadLogoutToken),
    open_to_writes=True,
)
async def oidc_backchannel_logout(ctx: Context) -> Answer:
    """Receive a sign-out from the identity provider (OpenID Connect Back-Channel Logout 1.0)."""
    sso = sso_of(ctx)
    try:
        form = parse_qs((await read_body(ctx.request, _LARGEST, _SILENCE)).decode("ascii", "replace"))
        tokens = form.get("logout_token", [])
        if len(tokens) != 1:
            raise BadLogoutToken("Send one logout_token as a form")
        await sso.sign_out.by_provider(tokens[0], ctx.audit_origin())
    except PlatformError as error:
        error.headers.update(_NO_STORE)
        raise
    return Answer(Message(message="Signed out"), headers=_NO_STORE)
