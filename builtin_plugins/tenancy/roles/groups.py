"""Permission groups: keys under one name, for use in roles and other groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.tree import require_lineage
from builtin_plugins.tenancy.errors import LimitReached, PermissionGroupNotFound
from builtin_plugins.tenancy.models import GroupChild, GroupPermission, PermissionGroup, RoleGroup
from builtin_plugins.tenancy.roles.definitions import (
    Contents,
    Kind,
    RoleContents,
    change_roles,
    check_groups,
    contents_of,
    fields_of,
    find_own,
    keys_within,
    page_of,
    record,
    show_one,
)
from builtin_plugins.tenancy.roles.nesting import MAX_CHILDREN, check_nesting
from builtin_plugins.tenancy.roles.schemas import GroupOut
from kernel.sdk import Caller, PageQuery, Permission, Unit


def _usable(lineage: Collection[int]) -> ColumnElement[bool]:
    return PermissionGroup.organization_id.in_(lineage)


def _show(
    group: PermissionGroup, organization_id: int, permissions: Mapping[str, Permission], listed: RoleContents
) -> GroupOut:
    fields = fields_of(group, organization_id, listed.permissions[group.id])
    return GroupOut(children=listed.groups[group.id], **fields)


def _uses(session: Session, group_id: int) -> tuple[dict[str, Any], str | None]:
    """The roles and groups that contain a group directly, here and below."""
    roles = select(RoleGroup.role_id).where(RoleGroup.group_id == group_id).order_by(RoleGroup.role_id)
    groups = select(GroupChild.group_id).where(GroupChild.child_group_id == group_id)
    users = {
        "roles": list(session.scalars(roles)),
        "permission_groups": list(session.scalars(groups.order_by(GroupChild.group_id))),
    }
    in_use = (
        f"{len(users['roles'])} role(s) and {len(users['permission_groups'])} permission group(s) "
        "use it; remove it from them, or delete it with ?force=true"
    )
    return {"used_by": users}, in_use if any(users.values()) else None


GROUPS: Kind[GroupOut] = Kind(
    noun="permission group",
    target_type="permission_group",
    row=PermissionGroup,
    order=(PermissionGroup.id,),
    keys=GroupPermission,
    keys_of=GroupPermission.group_id,
    groups=GroupChild,
    groups_of=GroupChild.group_id,
    group_id=GroupChild.child_group_id,
    not_found=PermissionGroupNotFound,
    usable=_usable,
    show=_show,
    uses=_uses,
    audited=frozenset({"name", "description", "permissions", "children"}),
)


def list_children(
    session: Session,
    permissions: Mapping[str, Permission],
    organization_id: int,
    group_id: int,
    query: PageQuery,
) -> tuple[list[GroupOut], int]:
    """The groups nested directly in one, and how many there are."""
    check_groups(session, require_lineage(session, organization_id), [group_id])
    nested = select(GroupChild.child_group_id).where(GroupChild.group_id == group_id)
    condition = PermissionGroup.id.in_(nested)
    return page_of(session, GROUPS, permissions, organization_id, query, condition)


def add_child(
    unit: Unit, caller: Caller, organization_id: int, group_id: int, child_id: int
) -> tuple[GroupOut, bool]:
    """Nest a group in another; returns whether that is new. Raises GroupCycle, GroupsTooDeep, …"""
    change = change_roles(unit, caller, organization_id)
    group = find_own(change, GROUPS, group_id)
    check_groups(change.session, change.authority.lineage, [child_id])
    own, added = contents_of(change, GROUPS, group_id), Contents(groups=frozenset([child_id]))
    change.authority.require_to_grant(keys_within(change, own) | keys_within(change, added))
    old = show_one(change, GROUPS, group)
    if child_id in own.groups:
        return old, False
    if len(own.groups) >= MAX_CHILDREN:
        raise LimitReached(f"A permission group holds at most {MAX_CHILDREN} others")
    check_nesting(change.session, group_id, child_id)
    change.session.add(GroupChild(group_id=group_id, child_group_id=child_id))
    change.session.flush()
    new = show_one(change, GROUPS, group)
    record(change, GROUPS, "child_added", old, new)
    return new, True


def remove_child(unit: Unit, caller: Caller, organization_id: int, group_id: int, child_id: int) -> None:
    """Take a nested group out of another. Raises PermissionGroupNotFound when it is not in it."""
    change = change_roles(unit, caller, organization_id)
    group = find_own(change, GROUPS, group_id)
    own = contents_of(change, GROUPS, group_id)
    change.authority.require_to_grant(keys_within(change, own))
    if child_id not in own.groups:
        raise PermissionGroupNotFound(f"Permission group {child_id} is not nested in this one")
    old = show_one(change, GROUPS, group)
    nested = (GroupChild.group_id == group_id, GroupChild.child_group_id == child_id)
    change.session.execute(delete(GroupChild).where(*nested))
    record(change, GROUPS, "child_removed", old, show_one(change, GROUPS, group))
