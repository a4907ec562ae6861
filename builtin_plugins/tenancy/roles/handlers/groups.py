"""Routes of permission groups."""

from __future__ import annotations

from builtin_plugins.tenancy.errors import (
    DefinedAbove,
    GroupCycle,
    GroupsTooDeep,
    InUse,
    KeyNotHeld,
    LimitReached,
    NameTaken,
    OrganizationNotFound,
    PermissionGroupNotFound,
)
from builtin_plugins.tenancy.permissions import ORG_VIEW, ROLES_MANAGE
from builtin_plugins.tenancy.roles import definitions, groups
from builtin_plugins.tenancy.roles.groups import GROUPS
from builtin_plugins.tenancy.roles.schemas import (
    ChildGroupIdRequest,
    DeleteQuery,
    GroupCreate,
    GroupOut,
    GroupUpdate,
)
from kernel.sdk import Answer, Context, Page, PageQuery, RouteTable, permission

routes = RouteTable("Permission groups")

_GROUPS = "/v1/organizations/{org_id:int}/permission-groups"
_GROUP = _GROUPS + "/{group_id:int}"
_CHILDREN = _GROUP + "/children"
_SEE = permission(ORG_VIEW, within="org_id")
_MANAGE = permission(ROLES_MANAGE, within="org_id")
_UNKNOWN = (OrganizationNotFound, PermissionGroupNotFound)


@routes.post(
    _GROUPS,
    access=_MANAGE,
    body=GroupCreate,
    returns=GroupOut,
    status=201,
    errors=(OrganizationNotFound, KeyNotHeld, NameTaken, LimitReached),
)
async def create(ctx: Context, org_id: int, body: GroupCreate) -> GroupOut:
    """Create a permission group, for use here and in the organizations below.

    It can contain only keys that the caller has here. Names are unique in the organization; upper and lower
    case are the same.
    """
    return await ctx.write(definitions.create, ctx.caller, GROUPS, org_id, body)


@routes.get(_GROUPS, access=_SEE, query=PageQuery, returns=Page[GroupOut], errors=(OrganizationNotFound,))
async def list_all(ctx: Context, org_id: int, query: PageQuery) -> Page[GroupOut]:
    """List the permission groups that can be used here, including those from organizations above."""
    items, total = await ctx.read(definitions.list_page, GROUPS, ctx.platform.permissions, org_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.get(_GROUP, access=_SEE, returns=GroupOut, errors=_UNKNOWN)
async def get(ctx: Context, org_id: int, group_id: int) -> GroupOut:
    """Show one permission group that can be used here."""
    return await ctx.read(definitions.get, GROUPS, ctx.platform.permissions, org_id, group_id)


@routes.patch(
    _GROUP,
    access=_MANAGE,
    body=GroupUpdate,
    returns=GroupOut,
    errors=(*_UNKNOWN, KeyNotHeld, DefinedAbove, NameTaken),
)
async def update(ctx: Context, org_id: int, group_id: int, body: GroupUpdate) -> GroupOut:
    """Change a permission group of this organization. The change takes effect at once wherever the group is
    used.

    The caller must have all of its keys here, including those of nested groups, before and after the change.
    """
    return await ctx.write(definitions.update, ctx.caller, GROUPS, org_id, group_id, body)


@routes.delete(
    _GROUP,
    access=_MANAGE,
    query=DeleteQuery,
    status=204,
    errors=(*_UNKNOWN, KeyNotHeld, DefinedAbove, InUse),
)
async def remove(ctx: Context, org_id: int, group_id: int, query: DeleteQuery) -> None:
    """Delete a permission group of this organization.

    409 if a role or another group uses it; `?force=true` removes it from them first.
    """
    await ctx.write(definitions.remove, ctx.caller, GROUPS, org_id, group_id, force=query.force)


@routes.get(_CHILDREN, access=_SEE, query=PageQuery, returns=Page[GroupOut], errors=_UNKNOWN)
async def list_children(ctx: Context, org_id: int, group_id: int, query: PageQuery) -> Page[GroupOut]:
    """List the permission groups nested directly in a group."""
    items, total = await ctx.read(groups.list_children, ctx.platform.permissions, org_id, group_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.post(
    _CHILDREN,
    access=_MANAGE,
    body=ChildGroupIdRequest,
    returns=GroupOut,
    status=201,
    also_statuses=(200,),
    errors=(*_UNKNOWN, KeyNotHeld, DefinedAbove, GroupCycle, GroupsTooDeep, LimitReached),
)
async def add_child(ctx: Context, org_id: int, group_id: int, body: ChildGroupIdRequest) -> Answer:
    """Nest a permission group in another. Returns the outer group; 200 if the group was already nested there.

    Groups can be nested at most 8 levels deep, and never in a circle (409). A group can contain at most 50
    others.
    """
    group, is_new = await ctx.write(groups.add_child, ctx.caller, org_id, group_id, body.child_group_id)
    return Answer(group, status=201 if is_new else 200)


@routes.delete(
    _CHILDREN + "/{child_group_id:int}",
    access=_MANAGE,
    status=204,
    errors=(*_UNKNOWN, KeyNotHeld, DefinedAbove),
)
async def remove_child(ctx: Context, org_id: int, group_id: int, child_group_id: int) -> None:
    """Remove a nested permission group from another. Both groups are kept."""
    await ctx.write(groups.remove_child, ctx.caller, org_id, group_id, child_group_id)
