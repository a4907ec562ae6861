"""Routes of the members of an organization (spec 4.4)."""

from __future__ import annotations

from builtin_plugins.accounts.api import AccountStatusRequest, ResetPasswordRequest, ResetPasswordResult
from builtin_plugins.tenancy.errors import (
    AboveYou,
    KeyNotHeld,
    LastOwner,
    MemberNotFound,
    NotAMember,
    NotManaged,
    OnlyWayIn,
    OrganizationNotFound,
    OwnerNotReset,
    UserNotFound,
)
from builtin_plugins.tenancy.members import accounts, listing, management, service
from builtin_plugins.tenancy.members.schemas import (
    AccountStatus,
    Management,
    MemberOut,
    MemberQuery,
    MemberUpsert,
)
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, ORG_VIEW
from kernel.sdk import AUTHENTICATED, Answer, Conflict, Context, Page, RouteTable, permission

routes = RouteTable("Organization members")

MEMBERS = "/v1/organizations/{org_id:int}/members"
MEMBER = f"{MEMBERS}/{{user_id:int}}"
MANAGEMENT = "/v1/organizations/{org_id:int}/management"

VIEWER = permission(ORG_VIEW, within="org_id")
MANAGER = permission(MEMBERS_MANAGE, within="org_id", or_admin=True)
ACCOUNT_MANAGER = permission(MEMBERS_MANAGE, within="org_id")


@routes.get(
    MEMBERS, access=VIEWER, query=MemberQuery, returns=Page[MemberOut], errors=(OrganizationNotFound,)
)
async def list_all(ctx: Context, org_id: int, query: MemberQuery) -> Page[MemberOut]:
    """List the members, with hints about what the caller can do to each of them."""
    items, total = await listing.list_page(ctx.caller, org_id, query)
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
    """Add an active account (201), or change a member's role (200).

    The added person keeps control of their account: the organization manages it only once they accept.

    Giving or taking `owner`, and acting on an `admin`, requires `org.roles.manage` here or being an instance
    administrator. Nobody can give a role with a permission that they don't have here. Lowering a role ends
    the member's sessions. 409 if no other active owner would remain.
    """
    member, is_new = await ctx.write(service.upsert, ctx.caller, org_id, body)
    return Answer(member, status=201 if is_new else 200)


@routes.delete(
    MEMBER,
    access=permission(MEMBERS_MANAGE, within="org_id", or_admin=True, or_self="user_id"),
    status=204,
    errors=(OrganizationNotFound, MemberNotFound, NotAMember, AboveYou, LastOwner),
)
async def remove(ctx: Context, org_id: int, user_id: int) -> None:
    """Remove a member, or leave.

    Also ends the memberships in the organization's own teams, the roles assigned there, and the member's
    sessions. 409 if no other active owner would remain.
    """
    await ctx.write(service.remove, ctx.caller, org_id, user_id)


@routes.put(
    f"{MEMBER}/suspension",
    access=MANAGER,
    returns=MemberOut,
    errors=(OrganizationNotFound, MemberNotFound, AboveYou, LastOwner),
)
async def suspend(ctx: Context, org_id: int, user_id: int) -> MemberOut:
    """Suspend a membership: it grants nothing until this is lifted, and the member's sessions end."""
    return await ctx.write(service.set_suspended, ctx.caller, org_id, user_id, True)


@routes.delete(
    f"{MEMBER}/suspension",
    access=MANAGER,
    status=204,
    errors=(OrganizationNotFound, MemberNotFound, AboveYou),
)
async def lift_suspension(ctx: Context, org_id: int, user_id: int) -> None:
    """Lift a suspension."""
    await ctx.write(service.set_suspended, ctx.caller, org_id, user_id, False)


@routes.post(
    f"{MEMBER}/reset-password",
    access=ACCOUNT_MANAGER,
    body=ResetPasswordRequest,
    returns=ResetPasswordResult,
    errors=(OrganizationNotFound, NotManaged, AboveYou, OwnerNotReset, Conflict),
    token_scopes=(),
)
async def reset_password(ctx: Context, org_id: int, user_id: int, body: ResetPasswordRequest) -> Answer:
    """Give a member a temporary password, shown only in this response, and end the member's sessions.

    Only for accounts that agreed to be managed by this organization or one below it, and that belong to no
    organization outside. For an administrator it requires `org.roles.manage`; an owner's password can't be
    reset here. 409 for your own account and for an account of the identity provider.
    """
    password = await accounts.reset_password(ctx.caller, org_id, user_id, body)
    result = ResetPasswordResult(temporary_password=password)
    return Answer(result, headers={"Cache-Control": "no-store"})


@routes.patch(
    f"{MEMBER}/account-status",
    access=ACCOUNT_MANAGER,
    body=AccountStatusRequest,
    returns=AccountStatus,
    errors=(OrganizationNotFound, NotManaged, AboveYou, Conflict),
    token_scopes=(),
)
async def set_status(ctx: Context, org_id: int, user_id: int, body: AccountStatusRequest) -> AccountStatus:
    """Deactivate a member's account for the whole instance, or reactivate it.

    For the same accounts as a password reset, and also for owners. 409 for your own account and for the last
    active owner of an organization.
    """
    account = await accounts.set_active(ctx.caller, org_id, user_id, body.is_active)
    return AccountStatus(user_id=account.id, is_active=account.is_active)


@routes.post(MANAGEMENT, access=AUTHENTICATED, returns=Management, errors=(NotAMember,), token_scopes=())
async def accept_management(ctx: Context, org_id: int) -> Management:
    """Allow an organization to manage the caller's account.

    Those who manage its members can then reset the account's password and deactivate it, as long as the
    account belongs to no organization outside. 403 if the organization is unknown or the caller is not an
    active member of it.
    """
    return await ctx.write(management.accept, ctx.caller, org_id)


@routes.delete(MANAGEMENT, access=AUTHENTICATED, status=204, errors=(NotAMember, OnlyWayIn), token_scopes=())
async def withdraw_management(ctx: Context, org_id: int) -> None:
    """Withdraw the permission to manage the caller's account. The membership stays.

    Possible for a member of another organization, and for an account with its own password or an identity
    provider; otherwise 409.
    """
    await ctx.write(management.withdraw, ctx.caller, org_id)
