"""`/v1/auth`: register, login, refresh, change-password, capabilities (spec 4.1)."""

from __future__ import annotations

from kernel.auth.errors import (
    AccountDisabled,
    AlreadyExists,
    BadCredentials,
    RegistrationClosed,
    SamePassword,
    SsoAccount,
    WrongPassword,
)
from kernel.auth.models import Account
from kernel.auth.passwords import TooManySignIns
from kernel.auth.schemas import (
    Capabilities,
    ChangePasswordRequest,
    LoginRequest,
    LoginResult,
    RegisteredUser,
    RegisterRequest,
    RegisterResult,
    TokenResult,
    User,
)
from kernel.errors import Unauthorized
from kernel.http.context import Context
from kernel.http.routes import AUTHENTICATED, PUBLIC, Rate, RouteTable

routes = RouteTable("Authentication")


@routes.post(
    "/v1/auth/register",
    access=PUBLIC,
    body=RegisterRequest,
    returns=RegisterResult,
    status=201,
    errors=(AlreadyExists, RegistrationClosed, TooManySignIns),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute, per="ip"),
)
async def register(ctx: Context, body: RegisterRequest) -> RegisterResult:
    """Make an account."""
    if ctx.platform.settings.registration_mode == "closed":
        raise RegistrationClosed()
    origin = ctx.audit_origin()
    account = await ctx.platform.accounts.register(
        body.username, body.email, body.password, origin=origin, stranger=True
    )
    return RegisterResult(message="Account created", user=RegisteredUser(**_fields(account)))


@routes.post(
    "/v1/auth/login",
    access=PUBLIC,
    body=LoginRequest,
    returns=LoginResult,
    errors=(BadCredentials, AccountDisabled, TooManySignIns),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute, per="ip"),
)
async def login(ctx: Context, body: LoginRequest) -> LoginResult:
    """Sign in."""
    origin, attempts = ctx.audit_origin(), ctx.platform.attempts
    ctx.platform.passwords.refuse_when_full()
    await attempts.admit(body.username, ctx.client_ip)
    account, token = await ctx.platform.accounts.sign_in(body.username, body.password, origin)
    await attempts.succeeded(body.username, ctx.client_ip)
    user = User(**_fields(account), must_change_password=account.must_change_password)
    return LoginResult(access_token=token, expires_in=ctx.platform.tokens.lifetime, user=user)


@routes.post(
    "/v1/auth/refresh",
    access=PUBLIC,
    returns=TokenResult,
    errors=(Unauthorized,),
    rate=Rate(60, per="ip"),
    judges_credential=True,
)
async def refresh(ctx: Context) -> TokenResult:
    """Trade a token, valid or expired within the grace, for a fresh one."""
    token = ctx.bearer
    if token is None:
        raise Unauthorized()
    claims = ctx.platform.tokens.verify_for_refresh(token)
    fresh = await ctx.platform.accounts.refresh(claims)
    return TokenResult(access_token=fresh, expires_in=ctx.platform.tokens.lifetime)


@routes.post(
    "/v1/auth/change-password",
    access=AUTHENTICATED,
    body=ChangePasswordRequest,
    returns=TokenResult,
    errors=(WrongPassword, SamePassword, SsoAccount),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute),
)
async def change_password(ctx: Context, body: ChangePasswordRequest) -> TokenResult:
    """Change the own password; every other session ends, the answer keeps this one signed in."""
    if ctx.principal.id is None:
        raise Unauthorized("A service has no password")
    token = await ctx.platform.accounts.change_password(
        ctx.principal.id,
        body.current_password,
        body.new_password,
        ctx.principal.claims,
        ctx.audit_origin(),
    )
    return TokenResult(access_token=token, expires_in=ctx.platform.tokens.lifetime)


@routes.get("/v1/auth/capabilities", access=PUBLIC, returns=Capabilities)
async def capabilities(ctx: Context) -> Capabilities:
    """What a sign-in page may offer."""
    settings, mail = ctx.platform.settings, ctx.platform.mail.configured
    methods = await ctx.platform.hooks.ask_each("sign_in_methods", None)
    return Capabilities(
        password_reset_email=mail,
        email_verification=False,
        registration_mode=settings.registration_mode,
        password_reset_link_minutes=settings.password_reset_minutes if mail else None,
        sign_in_methods=[method for plugin in methods for method in plugin],
    )


def _fields(account: Account) -> dict[str, object]:
    names = ("id", "username", "email", "role", "created_at")
    return {name: getattr(account, name) for name in names}
