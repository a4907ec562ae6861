"""`/v1/auth/password-reset`: regain access to an account by e-mail (spec 4.1)."""

from __future__ import annotations

from builtin_plugins.accounts.errors import BadResetToken, MailOff
from builtin_plugins.accounts.mail import MAIL
from builtin_plugins.accounts.password_resets import PASSWORD_RESETS
from builtin_plugins.accounts.passwords import TooManySignIns
from builtin_plugins.accounts.schemas import ForgottenPasswordConfirm, ForgottenPasswordRequest
from kernel.sdk import PUBLIC, Context, Message, Rate, RouteTable

routes = RouteTable("Authentication", token_scopes=())

_SENT = "If there is an account with this address and a password, an e-mail was sent to it"


@routes.post(
    "/v1/auth/password-reset/request",
    access=PUBLIC,
    body=ForgottenPasswordRequest,
    returns=Message,
    status=202,
    errors=(MailOff,),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute, per="ip"),
)
async def request_reset(ctx: Context, body: ForgottenPasswordRequest) -> Message:
    """Request a link for a new password by e-mail. The response never reveals whether an account exists."""
    if not ctx.resource(MAIL).configured:
        raise MailOff()
    await ctx.resource(PASSWORD_RESETS).request(body.email)
    return Message(message=_SENT)


@routes.post(
    "/v1/auth/password-reset/confirm",
    access=PUBLIC,
    body=ForgottenPasswordConfirm,
    status=204,
    errors=(MailOff, BadResetToken, TooManySignIns),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute, per="ip"),
)
async def confirm_reset(ctx: Context, body: ForgottenPasswordConfirm) -> None:
    """Set a new password with the token from the e-mail. All sessions end."""
    if not ctx.resource(MAIL).configured:
        raise MailOff()
    await ctx.resource(PASSWORD_RESETS).confirm(body.token, body.new_password, ctx.audit_origin())
