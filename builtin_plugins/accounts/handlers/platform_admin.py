"""`/v1/auth/platform-admin/claim`: an upgraded install's first Platform Admin (spec 3.6, 4.1)."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from builtin_plugins.accounts.platform_admins import AlreadyPlatformAdmin
from builtin_plugins.accounts.setup_codes import (
    GROUP,
    GROUPS,
    SETUP_CODES,
    ExpiredCode,
    NoActiveCode,
    NoSetupCode,
    NotAdministrator,
    TooManyWrongCodes,
    WrongCode,
    plain,
)
from kernel.sdk import (
    ADMIN,
    AUTHENTICATED,
    RATE_LIMITS,
    Body,
    Context,
    Rate,
    RouteTable,
    TooManyRequests,
    example,
)

routes = RouteTable("Platform Admin", token_scopes=())

_CLAIMS_PER_ACCOUNT = 10  # per minute; wrong codes are counted separately, and for good


def _shaped(value: str) -> str:
    code = plain(value)
    if not (value.isascii() and code.isalnum() and len(code) == GROUPS * GROUP):
        raise ValueError("expected the code as it was printed: XXXXXX-XXXXXX-XXXXXX")
    return code


class ClaimRequest(Body):
    """The setup code."""

    model_config = example(code="A1B2C3-D4E5F6-A7B8C9")

    code: Annotated[
        str,
        AfterValidator(_shaped),
        Field(
            max_length=100,
            description="XXXXXX-XXXXXX-XXXXXX. Upper and lower case are the same; dashes and "
            "spaces are ignored.",
        ),
    ]


class ClaimCheck(BaseModel):
    """Whether a setup code can be used to become the first Platform Admin."""

    setup_code_required: bool


class ClaimResult(BaseModel):
    """The caller is now a Platform Admin. The token shows it after the next refresh."""

    granted: bool
    refresh_required: bool


@routes.get("/v1/auth/platform-admin/claim", access=ADMIN, returns=ClaimCheck, errors=(NoSetupCode,))
async def check_claim(ctx: Context) -> ClaimCheck:
    """Show whether this server is waiting for a setup code.

    404 if it is not: on a new installation, and once there has been a Platform Admin.
    """
    if not await ctx.resource(SETUP_CODES).is_in_use():
        raise NoSetupCode()
    return ClaimCheck(setup_code_required=True)


@routes.post(
    "/v1/auth/platform-admin/claim",
    access=AUTHENTICATED,
    body=ClaimRequest,
    returns=ClaimResult,
    errors=(
        NotAdministrator,
        AlreadyPlatformAdmin,
        NoSetupCode,
        NoActiveCode,
        ExpiredCode,
        TooManyWrongCodes,
        WrongCode,
        TooManyRequests,
    ),
    rate=Rate(lambda settings: settings.auth_rate_limit_per_minute, per="ip"),
)
async def claim(ctx: Context, body: ClaimRequest) -> ClaimResult:
    """Become the first Platform Admin with the setup code that was shown to the operator.

    For active instance administrators. Refusals are audited. After five wrong codes, an account can't try the
    current code again.
    """
    if ctx.principal.id is None:
        raise NotAdministrator()
    await ctx.resource(RATE_LIMITS).count(f"claim:{ctx.principal.id}", _CLAIMS_PER_ACCOUNT)
    await ctx.resource(SETUP_CODES).claim(ctx.principal.id, body.code, ctx.audit_origin())
    return ClaimResult(granted=True, refresh_required=True)
