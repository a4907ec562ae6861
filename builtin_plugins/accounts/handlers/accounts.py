"""`/v1/auth`: register, login, refresh, change-password, delete one's account, capabilities (spec 4.1)."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from builtin_plugins.accounts import hookspecs
from builtin_plugins.accounts.accounts import ACCOUNTS, Accounts
from builtin_plugins.accounts.attempts import ATTEMPTS
from builtin_plugins.accounts.deletion import delete_own
from builtin_plugins.accounts.errors import (
    AccountDisabled,
    AlreadyExists,
    BadCredentials,
    LastAdmin,
    LastPlatformAdmin,
    RegistrationClosed,
    SamePassword,
    SignInAgain,
    SsoAccount,
    StillShared,
    WrongPassword,
)
from builtin_plugins.accounts.mail import MAIL
from builtin_plugins.accounts.passwords import PASSWORDS, TooManySignIns
from builtin_plugins.accounts.schemas import (
    AccountDeletion,
    Capabilities,
    ChangePasswordRequest,
    DeleteOwnRequest,
    LoginRequest,
    LoginResult,
    RegisteredUser,
    RegisterRequest,
    RegisterResult,
    TokenResult,
    User,
)
from kernel.sdk import AUTHENTICATED, PUBLIC, Account, Context, Rate, RouteTable, Unauthorized
from kernel.sdk.accounts import TOKENS
from kernel.sdk.storage import is_database_outage

routes = RouteTable("Authentication", token_scopes=())


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
    """Create an account."""
    if ctx.platform.settings.registration_mode == "closed":
        raise RegistrationClosed()
    origin = ctx.audit_origin()
    account = await ctx.resource(ACCOUNTS).register(
        body.username, body.email, body.password, origin=origin, anonymous=True
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
    origin, attempts = ctx.audit_origin(), ctx.resource(ATTEMPTS)
    ctx.resource(PASSWORDS).refuse_when_full()
    await attempts.admit(body.username, ctx.client_ip)
    account, token = await ctx.resource(ACCOUNTS).sign_in(body.username, body.password, origin)
    await attempts.succeeded(body.username, ctx.client_ip)
    user = User(**_fields(account), must_change_password=account.must_change_password)
    return LoginResult(access_token=token, expires_in=ctx.resource(TOKENS).lifetime, user=user)


@routes.post(
    "/v1/auth/refresh",
    access=PUBLIC,
    returns=TokenResult,
    errors=(Unauthorized,),
    rate=Rate(60, per="ip"),
    judges_credential=True,
)
async def refresh(ctx: Context) -> TokenResult:
    """Exchange a token for a new one, also shortly after it has expired."""
    token = ctx.bearer
    if token is None:
        raise Unauthorized()
    claims = ctx.resource(TOKENS).verify_for_refresh(token)
    fresh = await ctx.resource(ACCOUNTS).refresh(claims)
    return TokenResult(access_token=fresh, expires_in=ctx.resource(TOKENS).lifetime)


@routes.post(
    "/v1/auth/change-password",
    access=AUTHENTICATED,
    body=ChangePasswordRequest,
    returns=TokenResult,
    errors=(WrongPassword, SamePassword, SsoAccount),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute),
)
async def change_password(ctx: Context, body: ChangePasswordRequest) -> TokenResult:
    """Change your password. All other sessions end; the response contains a token that keeps this one signed
    in.
    """
    if ctx.principal.id is None:
        raise Unauthorized("A service has no password")
    token = await ctx.resource(ACCOUNTS).change_password(
        ctx.principal.id,
        body.current_password,
        body.new_password,
        ctx.principal.claims,
        ctx.audit_origin(),
    )
    return TokenResult(access_token=token, expires_in=ctx.resource(TOKENS).lifetime)


@routes.delete(
    "/v1/auth/me",
    access=AUTHENTICATED,
    body=DeleteOwnRequest,
    status=202,
    returns=AccountDeletion,
    errors=(WrongPassword, SignInAgain, LastAdmin, LastPlatformAdmin, StillShared),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute),
)
async def delete_me(ctx: Context, body: DeleteOwnRequest) -> AccountDeletion:
    """Delete your account and everything that belongs to it, for good.

    Confirm with your password; if you sign in through an identity provider, you must have done so in the last
    ten minutes. Refused while others use something that you own, which `detail` lists: delete it or make it
    private first, or ask a Platform Admin to delete your account and name an heir.
    """
    job_id = await delete_own(ctx.caller, body.password)
    return AccountDeletion(account_id=ctx.principal.id or 0, job_id=job_id, job=f"/v1/jobs/{job_id}")


@routes.post("/v1/auth/logout", access=AUTHENTICATED, status=204)
async def logout(ctx: Context) -> None:
    """End all of the caller's sessions, on every device. Personal access tokens stay.

    An account of an identity provider signs out there by that provider's own route.
    """
    if ctx.principal.id is None:
        raise Unauthorized("A service has no session to end")
    await ctx.resource(ACCOUNTS).end_sessions(ctx.principal.id, ctx.audit_origin())


@routes.get("/v1/auth/capabilities", access=PUBLIC, returns=Capabilities)
async def capabilities(ctx: Context) -> Capabilities:
    """Show which ways to sign in and register this server offers."""
    settings, mail = ctx.platform.settings, ctx.resource(MAIL).configured
    methods = await ctx.platform.hooks.ask(hookspecs.sign_in_methods, platform=ctx.platform)
    return Capabilities(
        password_reset_email=mail,
        email_verification=False,
        registration_mode=settings.registration_mode,
        first_account_wanted=await _first_account_wanted(ctx.resource(ACCOUNTS)),
        password_reset_link_minutes=settings.password_reset_minutes if mail else None,
        sign_in_methods=[method for plugin in methods for method in plugin],
    )


async def _first_account_wanted(accounts: Accounts) -> bool:
    """Also False while the database is unavailable: nobody knows then, and none can be created."""
    try:
        return not await accounts.any()
    except (DBAPIError, ConnectionError) as error:
        if isinstance(error, ConnectionError) or is_database_outage(error):
            return False
        raise


def _fields(account: Account) -> dict[str, object]:
    names = ("id", "username", "email", "role", "created_at")
    return {name: getattr(account, name) for name in names}
