"""`/v1/auth`: register, login, refresh, change-password, capabilities (spec 4.1)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, EmailStr, Field

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
from kernel.errors import Unauthorized
from kernel.http.context import Context
from kernel.http.routes import AUTHENTICATED, PUBLIC, Rate, RouteTable

routes = RouteTable("Authentication")

_USERNAME = re.compile(r"[A-Za-z0-9_.-]{1,50}", re.ASCII)
_PASSWORD_LIMIT = 1024


def _username(value: str) -> str:
    if not _USERNAME.fullmatch(value):
        raise ValueError("use 1 to 50 letters, digits, '_', '.' or '-'")
    return value


Username = Annotated[
    str,
    AfterValidator(_username),
    Field(min_length=1, max_length=50, json_schema_extra={"pattern": "^[A-Za-z0-9_.-]+$"}),
]
NewPassword = Annotated[str, Field(min_length=8, max_length=_PASSWORD_LIMIT)]
GivenPassword = Annotated[str, Field(min_length=1, max_length=_PASSWORD_LIMIT)]


class RegisterRequest(BaseModel):
    """A new account; a `role` in the body is ignored."""

    username: Username
    email: Annotated[EmailStr, Field(max_length=254)]
    password: NewPassword


class RegisteredUser(BaseModel):
    """The account that was made."""

    id: int
    username: str
    email: str
    role: str
    created_at: datetime


class RegisterResult(BaseModel):
    """Answer of register; no token is issued."""

    message: str
    user: RegisteredUser


class LoginRequest(BaseModel):
    """Username (or email) and password."""

    username: str = Field(min_length=1, max_length=320)
    password: GivenPassword


class User(RegisteredUser):
    """User as returned by login (spec 2.1)."""

    must_change_password: bool


class TokenResult(BaseModel):
    """A token (spec 2.2)."""

    access_token: str
    token_type: str = "bearer"
    expires_in: int = Field(description="Seconds until the token expires.")


class LoginResult(TokenResult):
    """A token and whose it is."""

    user: User


class ChangePasswordRequest(BaseModel):
    """Spec 2.4."""

    current_password: GivenPassword
    new_password: NewPassword


class Capabilities(BaseModel):
    """CapabilitiesResponse of spec 2.3."""

    password_reset_email: bool
    email_verification: bool
    registration_mode: str
    password_reset_link_minutes: int | None = None
    self_serve_personal_orgs: bool = False


@routes.post(
    "/v1/auth/register",
    access=PUBLIC,
    body=RegisterRequest,
    returns=RegisterResult,
    status=201,
    errors=(AlreadyExists, RegistrationClosed),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute, per="ip"),
)
async def register(ctx: Context, body: RegisterRequest) -> RegisterResult:
    """Make an account."""
    if ctx.platform.settings.registration_mode == "closed":
        raise RegistrationClosed()
    origin = ctx.audit_origin()
    account = await ctx.platform.accounts.register(body.username, body.email, body.password, origin=origin)
    return RegisterResult(message="Account created", user=RegisteredUser(**_fields(account)))


@routes.post(
    "/v1/auth/login",
    access=PUBLIC,
    body=LoginRequest,
    returns=LoginResult,
    errors=(BadCredentials, AccountDisabled),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute, per="ip"),
)
async def login(ctx: Context, body: LoginRequest) -> LoginResult:
    """Sign in."""
    account, token = await ctx.platform.accounts.sign_in(body.username, body.password)
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
    await ctx.platform.guard.count(f"refresh:{claims['sub']}", 10)
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
    return Capabilities(
        password_reset_email=False,
        email_verification=False,
        registration_mode=ctx.platform.settings.registration_mode,
    )


def _fields(account: Account) -> dict[str, object]:
    names = ("id", "username", "email", "role", "created_at")
    return {name: getattr(account, name) for name in names}
