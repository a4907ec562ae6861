"""Routes of roles."""

from __future__ import annotations

from builtin_plugins.tenancy.errors import (
    BuiltinRole,
    DefinedAbove,
    InUse,
    KeyNotHeld,
    LimitReached,
    NameTaken,
    OrganizationNotFound,
    PermissionGroupNotFound,
    RoleNotFound,
)
from builtin_plugins.tenancy.permissions import ORG_VIEW, ROLES_MANAGE
from builtin_plugins.tenancy.roles import definitions
from builtin_plugins.tenancy.roles.roles import ROLES
from builtin_plugins.tenancy.roles.schemas import DeleteQuery, RoleCreate, RoleOut, RoleUpdate
from kernel.sdk import Context, Page, PageQuery, RouteTable, permission

routes = RouteTable("Roles")

_ROLES = "/v1/organizations/{org_id:int}/roles"
_ROLE = _ROLES + "/{role_id:int}"
_SEE = permission(ORG_VIEW, within="org_id")
_MANAGE = permission(ROLES_MANAGE, within="org_id")


@routes.post(
    _ROLES,
    access=_MANAGE,
    body=RoleCreate,
    returns=RoleOut,
    status=201,
    errors=(OrganizationNotFound, PermissionGroupNotFound, KeyNotHeld, NameTaken, LimitReached),
)
async def create(ctx: Context, org_id: int, body: RoleCreate) -> RoleOut:
    """Create a role, for use here and in the organizations below.

    It can contain only keys that the caller has here. Names are unique in the organization; upper and lower
    case are the same.
    """
    return await ctx.write(definitions.create, ctx.caller, ROLES, org_id, body)


@routes.get(_ROLES, access=_SEE, query=PageQuery, returns=Page[RoleOut], errors=(OrganizationNotFound,))
async def list_all(ctx: Context, org_id: int, query: PageQuery) -> Page[RoleOut]:
    """List the roles that can be used here: built-in ones, own ones, and those from organizations above."""
    items, total = await ctx.read(definitions.list_page, ROLES, ctx.platform.permissions, org_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.get(_ROLE, access=_SEE, returns=RoleOut, errors=(OrganizationNotFound, RoleNotFound))
async def get(ctx: Context, org_id: int, role_id: int) -> RoleOut:
    """Show one role that can be used here."""
    return await ctx.read(definitions.get, ROLES, ctx.platform.permissions, org_id, role_id)


@routes.patch(
    _ROLE,
    access=_MANAGE,
    body=RoleUpdate,
    returns=RoleOut,
    errors=(
        OrganizationNotFound,
        RoleNotFound,
        PermissionGroupNotFound,
        KeyNotHeld,
        DefinedAbove,
        BuiltinRole,
        NameTaken,
    ),
)
async def update(ctx: Context, org_id: int, role_id: int, body: RoleUpdate) -> RoleOut:
    """Change a role of this organization; it takes effect at once for everyone who has it.

    The caller must have all of its keys here, before and after the change.
    """
    return await ctx.write(definitions.update, ctx.caller, ROLES, org_id, role_id, body)


@routes.delete(
    _ROLE,
    access=_MANAGE,
    query=DeleteQuery,
    status=204,
    errors=(OrganizationNotFound, RoleNotFound, KeyNotHeld, DefinedAbove, BuiltinRole, InUse),
)
async def remove(ctx: Context, org_id: int, role_id: int, query: DeleteQuery) -> None:
    """Delete a role of this organization.

    409 if members have it, here or in an organization below; `?force=true` takes it away from them first.
    """
    await ctx.write(definitions.remove, ctx.caller, ROLES, org_id, role_id, force=query.force)
