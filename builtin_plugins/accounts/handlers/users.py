"""`/v1/auth/users`: Platform Admins manage all accounts (spec 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.accounts import hookspecs
from builtin_plugins.accounts.administration import ADMINISTRATION
from builtin_plugins.accounts.deletion import delete_account
from builtin_plugins.accounts.errors import LastAdmin, LastPlatformAdmin, OwnAccount, SsoAccount, StillShared
from builtin_plugins.accounts.guards import is_sso
from builtin_plugins.accounts.listing import find_accounts
from builtin_plugins.accounts.schemas import (
    AccountDeletion,
    AccountStatusRequest,
    HeirQuery,
    ResetPasswordRequest,
    ResetPasswordResult,
    RoleRequest,
    UserRecord,
    UsersQuery,
)
from kernel.sdk import PLATFORM_ADMIN, Account, Answer, Context, NotFound, Page, RouteTable

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


@routes.delete(
    "/v1/auth/users/{user_id:int}",
    access=PLATFORM_ADMIN,
    query=HeirQuery,
    status=202,
    returns=AccountDeletion,
    errors=(NotFound, OwnAccount, LastAdmin, LastPlatformAdmin, StillShared),
)
async def delete_user(ctx: Context, user_id: int, query: HeirQuery) -> AccountDeletion:
    """Delete an account and everything that belongs to it, for good.

    It can no longer sign in, and its name and e-mail address are free again. A job then removes what was its
    own. What it shares with others goes to the account `heir_id`;
    without one, the deletion is refused, and `detail` lists what is shared. Orders and audit log
    entries are kept under the account's id.
    """
    job_id = await delete_account(ctx.caller, user_id, query.heir_id)
    return AccountDeletion(account_id=user_id, job_id=job_id, job=f"/v1/jobs/{job_id}")


async def _records(ctx: Context, accounts: Sequence[Account]) -> list[UserRecord]:
    ids = [account.id for account in accounts]
    hooks, spec = ctx.platform.hooks, hookspecs.find_memberships
    answer = await hooks.ask(spec, platform=ctx.platform, account_ids=ids) if ids else None
    memberships = answer or {}
    names = [name for name in UserRecord.model_fields if name not in ("sso", "organizations")]
    return [
        UserRecord(
            **{name: getattr(account, name) for name in names},
            sso=is_sso(account),
            organizations=list(memberships.get(account.id, ())),
        )
        for account in accounts
    ]
