"""`/v1/auth/platform-admin/claim`: an upgraded install's first Platform Admin (spec 3.6, 4.1)."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from kernel.auth.platform_admins import AlreadyPlatformAdmin
from kernel.auth.setup_codes import (
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
from kernel.errors import TooManyRequests
from kernel.http.context import Context
from kernel.http.examples import example
from kernel.http.routes import ADMIN, AUTHENTICATED, Rate, RouteTable
from kernel.rate_limits import RATE_LIMITS

routes = RouteTable("Platform Admin", token_scopes=())

_CLAIMS_PER_ACCOUNT = 10  # in a minute; wrong codes have their own, lasting count


def _shaped(value: str) -> str:
    code = plain(value)
    if not (value.isascii() and code.isalnum() and len(code) == GROUPS * GROUP):
        raise ValueError("expected the code as it was printed: XXXXXX-XXXXXX-XXXXXX")
    return code


class ClaimRequest(BaseModel):
    """The setup code (spec 2.4)."""

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
    """Whether a setup code makes the first Platform Admin here (spec 2.4)."""

    setup_code_required: bool


class ClaimResult(BaseModel):
    """The caller is a Platform Admin now; a refreshed token says so (spec 2.4)."""

    granted: bool
    refresh_required: bool


@routes.get("/v1/auth/platform-admin/claim", access=ADMIN, returns=ClaimCheck, errors=(NoSetupCode,))
async def check_claim(ctx: Context) -> ClaimCheck:
    """Whether this server waits for a setup code.

    404 where none is in use: on a fresh install, and once there has been a Platform Admin.
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
    """Become the first Platform Admin with the code that the operator was shown.

    For active instance administrators. Refusals are audited. Five wrong codes of one account use up its
    attempts at the code in force.
    """
    if ctx.principal.id is None:
        raise NotAdministrator()
    await ctx.resource(RATE_LIMITS).count(f"claim:{ctx.principal.id}", _CLAIMS_PER_ACCOUNT)
    await ctx.resource(SETUP_CODES).claim(ctx.principal.id, body.code, ctx.audit_origin())
    return ClaimResult(granted=True, refresh_required=True)
