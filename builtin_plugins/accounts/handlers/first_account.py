"""`/v1/auth/first-account`: whoever started the platform makes its first administrator in the browser."""

from __future__ import annotations

import asyncio
import hmac

from builtin_plugins.accounts.accounts import ACCOUNTS
from builtin_plugins.accounts.errors import AlreadyExists, FirstAccountExists, WrongFirstCode
from builtin_plugins.accounts.passwords import TooManySignIns
from builtin_plugins.accounts.schemas import FirstAccountRequest, LoginResult, User
from kernel.sdk import PUBLIC, Context, Rate, RouteTable
from kernel.sdk.accounts import TOKENS

FIRST_ACCOUNT = "first-account"
"""The secret whose value is the code; `platformctl serve` prints it while nobody is an administrator."""

routes = RouteTable("Authentication", token_scopes=())


@routes.post(
    "/v1/auth/first-account",
    access=PUBLIC,
    body=FirstAccountRequest,
    returns=LoginResult,
    status=201,
    errors=(FirstAccountExists, WrongFirstCode, AlreadyExists, TooManySignIns),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute, per="ip"),
)
async def make_first_account(ctx: Context, body: FirstAccountRequest) -> LoginResult:
    """Create the first account, an administrator, and sign in.

    It needs the code that the platform printed when it started, and works only while nobody is an
    administrator: an account that somebody registered earlier does not get in the way.
    """
    secrets, accounts, origin = ctx.platform.secrets, ctx.resource(ACCOUNTS), ctx.audit_origin()
    if await accounts.is_administered():
        raise FirstAccountExists()
    code = await asyncio.to_thread(secrets.get, FIRST_ACCOUNT)
    if code is None or not hmac.compare_digest(code.encode(), body.code.encode()):
        raise WrongFirstCode()
    email = body.email or f"{body.username}@localhost.localdomain"
    await accounts.register_first(body.username, email, body.password, origin)
    await asyncio.to_thread(secrets.remove, FIRST_ACCOUNT)
    account, token = await accounts.sign_in(body.username, body.password, origin)
    names = ("id", "username", "email", "role", "created_at", "must_change_password")
    user = User(**{name: getattr(account, name) for name in names})
    return LoginResult(access_token=token, expires_in=ctx.resource(TOKENS).lifetime, user=user)
