"""`/v1/auth/users`: Platform Admins manage all accounts (spec 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from kernel import hookspecs
from kernel.auth.administration import ADMINISTRATION
from kernel.auth.errors import LastAdmin, LastPlatformAdmin, OwnAccount, SsoAccount
from kernel.auth.guards import is_sso
from kernel.auth.listing import find_accounts
from kernel.auth.models import Account
from kernel.auth.schemas import (
    AccountStatusRequest,
    ResetPasswordRequest,
    ResetPasswordResult,
    RoleRequest,
    UserRecord,
    UsersQuery,
)
from kernel.errors import NotFound
from kernel.http.context import Context
from kernel.http.responses import Answer, Page
from kernel.http.routes import PLATFORM_ADMIN, RouteTable

routes = RouteTable("Users", token_scopes=())


@routes.get(
    "/v1/auth/users",
    access=PLATFORM_ADMIN,
    query=UsersQuery,
    returns=Page[UserRecord],
    token_scopes=("manage",),
)
async def list_users(ctx: Context, query: UsersQuery) -> Page[UserRecord]:
    """List the accounts of all organizations, oldest first."""
    accounts, total = await find_accounts(ctx.platform, query)
    items = await _records(ctx, accounts)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.patch(
    "/v1/auth/users/{user_id:int}/role",
    access=PLATFORM_ADMIN,
    body=RoleRequest,
    returns=UserRecord,
    errors=(NotFound, SsoAccount, LastAdmin),
)
async def change_role(ctx: Context, user_id: int, body: RoleRequest) -> UserRecord:
    """Promote or demote an account. A demotion ends the account's sessions; a promotion takes effect at the
    next refresh.
    """
    account = await ctx.resource(ADMINISTRATION).set_role(ctx.caller, user_id, body.role)
    return (await _records(ctx, [account]))[0]


@routes.patch(
    "/v1/auth/users/{user_id:int}/status",
    access=PLATFORM_ADMIN,
    body=AccountStatusRequest,
    returns=UserRecord,
    errors=(NotFound, OwnAccount, LastAdmin, LastPlatformAdmin),
)
async def change_status(ctx: Context, user_id: int, body: AccountStatusRequest) -> UserRecord:
    """Deactivate an account, which ends its sessions and keeps its data, or reactivate it."""
    account = await ctx.resource(ADMINISTRATION).set_active(ctx.caller, user_id, body.is_active)
    return (await _records(ctx, [account]))[0]


@routes.post(
    "/v1/auth/users/{user_id:int}/reset-password",
    access=PLATFORM_ADMIN,
    body=ResetPasswordRequest,
    returns=ResetPasswordResult,
    errors=(NotFound, OwnAccount, SsoAccount),
)
async def reset_password(ctx: Context, user_id: int, body: ResetPasswordRequest) -> Answer:
    """Give an account a temporary password, shown only in this response, and end its sessions."""
    password = await ctx.resource(ADMINISTRATION).reset_password(
        ctx.caller, user_id, body.mode, body.new_password
    )
    result = ResetPasswordResult(temporary_password=password)
    return Answer(result, headers={"Cache-Control": "no-store"})


async def _records(ctx: Context, accounts: Sequence[Account]) -> list[UserRecord]:
    ids = [account.id for account in accounts]
    hooks, spec = ctx.platform.hooks, hookspecs.find_memberships
    found = await hooks.ask(spec, platform=ctx.platform, account_ids=ids) if ids else None
    memberships = found or {}
    names = [name for name in UserRecord.model_fields if name not in ("sso", "organizations")]
    return [
        UserRecord(
            **{name: getattr(account, name) for name in names},
            sso=is_sso(account),
            organizations=list(memberships.get(account.id, ())),
        )
        for account in accounts
    ]
