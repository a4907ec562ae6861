"""Routes of the members of an organization (spec 4.4)."""

from __future__ import annotations

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
from kernel.sdk import (
    AUTHENTICATED,
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
MANAGEMENT = "/v1/organizations/{org_id:int}/management"

VIEWER = permission(ORG_VIEW, within="org_id")
MANAGER = permission(MEMBERS_MANAGE, within="org_id", or_admin=True)
ACCOUNT_MANAGER = permission(MEMBERS_MANAGE, within="org_id")


@routes.get(
    MEMBERS, access=VIEWER, query=MemberQuery, returns=Page[MemberOut], errors=(OrganizationNotFound,)
)
async def list_all(ctx: Context, org_id: int, query: MemberQuery) -> Page[MemberOut]:
    """List the members, with hints about what the caller may do to each."""
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
    """Add an active account (201), or give a member another role (200).

    Those who are added keep control of their account: the organization manages it only once they accept.

    Giving or taking `owner`, and acting on an `admin`, needs `org.roles.manage` here, or an administrator of
    the instance; nobody can give a role with a permission that they don't hold here. A lower role
    ends the member's sessions. 409 where no other active owner would remain.
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

    Ends the membership in the organization's own teams, the roles assigned there, and the member's sessions.
    409 where no other active owner would remain.
    """
    await ctx.write(service.remove, ctx.caller, org_id, user_id)


@routes.put(
    f"{MEMBER}/suspension",
    access=MANAGER,
    returns=MemberOut,
    errors=(OrganizationNotFound, MemberNotFound, AboveYou, LastOwner),
)
async def suspend(ctx: Context, org_id: int, user_id: int) -> MemberOut:
    """Suspend a membership: it gives no rights until that is lifted, and the member's sessions end."""
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
    """Give a member a temporary password, shown only in this answer, and end its sessions.

    Only for an account that agreed to be managed by this organization or one below, and belongs to no
    organization outside; an administrator's needs `org.roles.manage`; an owner's can't be reset here. 409 for
    the own account and for one of the identity provider.
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

    For the same accounts as a password reset, owners included. 409 for the own account and for the
    last active owner of an organization.
    """
    account = await accounts.set_active(ctx.caller, org_id, user_id, body.is_active)
    return AccountStatus(user_id=account.id, is_active=account.is_active)


@routes.post(MANAGEMENT, access=AUTHENTICATED, returns=Management, errors=(NotAMember,), token_scopes=())
async def accept_management(ctx: Context, org_id: int) -> Management:
    """Let an organization manage the caller's account.

    From then on the managers of its members may reset the password of the account and deactivate it, as long
    as it belongs to no organization outside. Accounts that joined by an invite agreed already. An
    organization that is unknown, or of which the caller is not an active member, answers the same 403.
    """
    return await ctx.write(management.accept, ctx.caller, org_id)


@routes.delete(MANAGEMENT, access=AUTHENTICATED, status=204, errors=(NotAMember, OnlyWayIn), token_scopes=())
async def withdraw_management(ctx: Context, org_id: int) -> None:
    """Withdraw the consent: the membership stays, and only the caller controls the account.

    Possible for a member of another organization, and for an account with its own password or an identity
    provider; 409 for others.
    """
    await ctx.write(management.withdraw, ctx.caller, org_id)
