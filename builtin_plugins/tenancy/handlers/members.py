"""Routes of the members of an organization (spec 4.4)."""

from __future__ import annotations

from builtin_plugins.tenancy.errors import (
    AboveYou,
    KeyNotHeld,
    LastOwner,
    MemberNotFound,
    NotAMember,
    NotManaged,
    OrganizationNotFound,
    OwnerNotReset,
    UserNotFound,
)
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ORG_VIEW
from builtin_plugins.tenancy.schemas_members import AccountStatus, MemberOut, MemberQuery, MemberUpsert
from builtin_plugins.tenancy.services import member_accounts, member_views
from builtin_plugins.tenancy.services import members as service
from kernel.sdk import (
    AccountStatusRequest,
    Answer,
    Conflict,
    Context,
    Page,
    ResetPasswordRequest,
    ResetPasswordResult,
    RouteTable,
    permission,
)

routes = RouteTable("Organization members")

MEMBERS = "/v1/organizations/{org_id:int}/members"
MEMBER = f"{MEMBERS}/{{user_id:int}}"

VIEWER = permission(ORG_VIEW, within="org_id")
MANAGER = permission(MEMBERS_MANAGE, within="org_id", or_admin=True)
ACCOUNT_MANAGER = permission(MEMBERS_MANAGE, within="org_id")


@routes.get(
    MEMBERS, access=VIEWER, query=MemberQuery, returns=Page[MemberOut], errors=(OrganizationNotFound,)
)
async def list_all(ctx: Context, org_id: int, query: MemberQuery) -> Page[MemberOut]:
    """List the members, with hints what the caller may do to each."""
    items, total = await member_views.list_page(ctx.platform, ctx.principal, org_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.post(
    MEMBERS,
    access=MANAGER,
    body=MemberUpsert,
    returns=MemberOut,
    also_statuses=(201,),
    errors=(OrganizationNotFound, UserNotFound, AboveYou, KeyNotHeld, LastOwner),
)
async def upsert(ctx: Context, org_id: int, body: MemberUpsert) -> Answer:
    """Add an active account (201), or give a member another role (200).

    Giving or taking `owner`, and acting on an `admin`, needs `org.roles.manage` here, or an administrator of
    the instance; nobody gives a role with a permission that they don't hold here themselves. A lower role
    ends the member's sessions. 409 where no other active owner would remain.
    """
    member, is_new = await service.upsert(
        ctx.platform, ctx.principal, org_id, body.user_id, body.org_role, ctx.audit_origin()
    )
    return Answer(member, status=201 if is_new else 200)


@routes.delete(
    MEMBER,
    access=permission(MEMBERS_MANAGE, within="org_id", or_admin=True, or_self="user_id"),
    status=204,
    errors=(OrganizationNotFound, MemberNotFound, NotAMember, AboveYou, LastOwner),
)
async def remove(ctx: Context, org_id: int, user_id: int) -> None:
    """Remove a member, or leave.

    Ends the membership in the organization's own teams, the roles assigned there, and the member's sessions.
    409 where no other active owner would remain.
    """
    await service.remove(ctx.platform, ctx.principal, org_id, user_id, ctx.audit_origin())


@routes.put(
    f"{MEMBER}/suspension",
    access=MANAGER,
    returns=MemberOut,
    errors=(OrganizationNotFound, MemberNotFound, AboveYou, LastOwner),
)
async def suspend(ctx: Context, org_id: int, user_id: int) -> MemberOut:
    """Suspend a membership: it counts for nothing until that is lifted, and the member's sessions end."""
    return await service.set_suspended(ctx.platform, ctx.principal, org_id, user_id, True, ctx.audit_origin())


@routes.delete(
    f"{MEMBER}/suspension",
    access=MANAGER,
    status=204,
    errors=(OrganizationNotFound, MemberNotFound, AboveYou),
)
async def lift_suspension(ctx: Context, org_id: int, user_id: int) -> None:
    """Lift a suspension."""
    await service.set_suspended(ctx.platform, ctx.principal, org_id, user_id, False, ctx.audit_origin())


@routes.post(
    f"{MEMBER}/reset-password",
    access=ACCOUNT_MANAGER,
    body=ResetPasswordRequest,
    returns=ResetPasswordResult,
    errors=(OrganizationNotFound, NotManaged, AboveYou, OwnerNotReset, Conflict),
)
async def reset_password(ctx: Context, org_id: int, user_id: int, body: ResetPasswordRequest) -> Answer:
    """Give a member a temporary password, told in this answer only, and end its sessions.

    Only for an account that belongs to this organization's tree and to no other organization; an
    administrator's needs `org.roles.manage`; an owner's can't be reset here. 409 for the own account and for
    one of the identity provider.
    """
    password = await member_accounts.reset_password(
        ctx.platform, ctx.principal, org_id, user_id, body, ctx.audit_origin()
    )
    result = ResetPasswordResult(temporary_password=password)
    return Answer(result, headers={"Cache-Control": "no-store"})


@routes.patch(
    f"{MEMBER}/account-status",
    access=ACCOUNT_MANAGER,
    body=AccountStatusRequest,
    returns=AccountStatus,
    errors=(OrganizationNotFound, NotManaged, AboveYou, Conflict),
)
async def set_status(ctx: Context, org_id: int, user_id: int, body: AccountStatusRequest) -> AccountStatus:
    """Deactivate a member's account for the whole instance, or reactivate it.

    For the same accounts as the reset of a password, owners included. 409 for the own account and for the
    last active owner of an organization.
    """
    account = await member_accounts.set_active(
        ctx.platform, ctx.principal, org_id, user_id, body.is_active, ctx.audit_origin()
    )
    return AccountStatus(user_id=account.id, is_active=account.is_active)
