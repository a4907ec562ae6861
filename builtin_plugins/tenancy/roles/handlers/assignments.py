"""Routes of the roles that members have, and of their effective permissions."""

from __future__ import annotations

from builtin_plugins.tenancy.errors import (
    AssignmentNotFound,
    KeyNotHeld,
    MemberNotFound,
    MemberSuspended,
    OrganizationNotFound,
    RoleNotFound,
)
from builtin_plugins.tenancy.permissions import ORG_VIEW, ROLES_MANAGE
from builtin_plugins.tenancy.roles import assignments as service
from builtin_plugins.tenancy.roles.effective import effective_permissions
from builtin_plugins.tenancy.roles.schemas import (
    AssignmentOut,
    AssignRequest,
    BulkRoleAssignRequest,
    BulkRoleAssignResponse,
    EffectivePermissionsResponse,
    EffectiveQuery,
)
from kernel.sdk import Answer, Context, Forbidden, Page, PageQuery, RouteTable, permission

routes = RouteTable("Role assignments")

_MEMBERS = "/v1/organizations/{org_id:int}/members"
_ROLES = _MEMBERS + "/{user_id:int}/roles"
_SEE = permission(ORG_VIEW, within="org_id")
_MANAGE = permission(ROLES_MANAGE, within="org_id")


@routes.post(
    _MEMBERS + "/bulk-roles",
    access=_MANAGE,
    body=BulkRoleAssignRequest,
    returns=BulkRoleAssignResponse,
    errors=(OrganizationNotFound, RoleNotFound, KeyNotHeld),
)
async def assign_many(ctx: Context, org_id: int, body: BulkRoleAssignRequest) -> BulkRoleAssignResponse:
    """Assign one role to up to 500 members in one transaction, with a result for each.

    Accounts that are not active members here are `failed`, with the reason in `error`; the others get the
    role.
    """
    return await ctx.write(service.assign_many, ctx.caller, org_id, body)


@routes.post(
    _ROLES,
    access=_MANAGE,
    body=AssignRequest,
    returns=AssignmentOut,
    status=201,
    also_statuses=(200,),
    errors=(OrganizationNotFound, MemberNotFound, RoleNotFound, KeyNotHeld, MemberSuspended),
)
async def assign(ctx: Context, org_id: int, user_id: int, body: AssignRequest) -> Answer:
    """Assign a role to an active member, or change when the assignment expires (200).

    The caller must have all of the role's keys here. Built-in roles come with the membership instead.
    """
    assignment, is_new = await ctx.write(service.assign, ctx.caller, org_id, user_id, body)
    return Answer(assignment, status=201 if is_new else 200)


@routes.get(
    _ROLES,
    access=_SEE,
    query=PageQuery,
    returns=Page[AssignmentOut],
    errors=(OrganizationNotFound, MemberNotFound, Forbidden),
)
async def list_all(ctx: Context, org_id: int, user_id: int, query: PageQuery) -> Page[AssignmentOut]:
    """List the roles assigned to a member here, including expired ones.

    For the member, and for those who have `org.members.manage` or `org.roles.manage` here.
    """
    items, total = await ctx.platform.database.snapshot(service.list_page, ctx.caller, org_id, user_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.delete(
    _ROLES + "/{role_id:int}",
    access=_MANAGE,
    status=204,
    errors=(OrganizationNotFound, AssignmentNotFound, KeyNotHeld),
)
async def remove(ctx: Context, org_id: int, user_id: int, role_id: int) -> None:
    """Take a role away from a member, at once."""
    await ctx.write(service.remove, ctx.caller, org_id, user_id, role_id)


@routes.get(
    _MEMBERS + "/{user_id:int}/effective-permissions",
    access=_SEE,
    query=EffectiveQuery,
    returns=EffectivePermissionsResponse,
    errors=(OrganizationNotFound, MemberNotFound, Forbidden),
)
async def effective(
    ctx: Context, org_id: int, user_id: int, query: EffectiveQuery
) -> EffectivePermissionsResponse:
    """List every permission that a member has here, with the role, group and organization it comes from.

    For the member, and for those who have `org.members.manage` or `org.roles.manage` here. With `?key=`, only
    that key is shown and explained: whether the member has it, why not, and which roles would grant it.
    """
    return await ctx.platform.database.snapshot(effective_permissions, ctx.caller, org_id, user_id, query.key)
