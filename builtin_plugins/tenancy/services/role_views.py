"""Roles and permission groups as clients see them from an organization."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.models import (
    GroupChild,
    GroupPermission,
    PermissionGroup,
    Role,
    RoleGroup,
    RolePermission,
)
from builtin_plugins.tenancy.schemas_roles import GroupOut, GroupRef, RoleOut
from builtin_plugins.tenancy.services.authority import keys_of_builtin
from kernel.sdk import Permission


async def render_roles(
    session: AsyncSession,
    permissions: Mapping[str, Permission],
    organization_id: int,
    roles: Sequence[Role],
) -> list[RoleOut]:
    """Roles as clients see them from an organization."""
    ids = [role.id for role in roles]
    keys: dict[int, list[str]] = defaultdict(list)
    held = select(RolePermission.role_id, RolePermission.permission_key).where(
        RolePermission.role_id.in_(ids)
    )
    for role_id, key in await session.execute(held.order_by(RolePermission.permission_key)):
        keys[role_id].append(key)
    groups: dict[int, list[GroupRef]] = defaultdict(list)
    attached = (
        select(RoleGroup.role_id, PermissionGroup.id, PermissionGroup.name)
        .join(PermissionGroup, PermissionGroup.id == RoleGroup.group_id)
        .where(RoleGroup.role_id.in_(ids))
        .order_by(PermissionGroup.id)
    )
    for role_id, group_id, name in await session.execute(attached):
        groups[role_id].append(GroupRef(id=group_id, name=name))
    for role in roles:
        if role.is_builtin:
            keys[role.id] = sorted(keys_of_builtin(permissions, role.name))
    return [_role(role, organization_id, keys[role.id], groups[role.id]) for role in roles]


def _role(role: Role, organization_id: int, keys: list[str], groups: list[GroupRef]) -> RoleOut:
    return RoleOut(
        id=role.id,
        organization_id=role.organization_id,
        name=role.name,
        description=role.description,
        is_builtin=role.is_builtin,
        permissions=keys,
        permission_groups=groups,
        inherited_from=role.organization_id if role.organization_id != organization_id else None,
        created_at=role.created_at,
    )


async def render_groups(
    session: AsyncSession, organization_id: int, groups: Sequence[PermissionGroup]
) -> list[GroupOut]:
    """Groups as clients see them from an organization."""
    ids = [group.id for group in groups]
    keys: dict[int, list[str]] = defaultdict(list)
    held = select(GroupPermission.group_id, GroupPermission.permission_key).where(
        GroupPermission.group_id.in_(ids)
    )
    for group_id, key in await session.execute(held.order_by(GroupPermission.permission_key)):
        keys[group_id].append(key)
    children: dict[int, list[GroupRef]] = defaultdict(list)
    nested = (
        select(GroupChild.group_id, PermissionGroup.id, PermissionGroup.name)
        .join(PermissionGroup, PermissionGroup.id == GroupChild.child_group_id)
        .where(GroupChild.group_id.in_(ids))
        .order_by(PermissionGroup.id)
    )
    for group_id, child_id, name in await session.execute(nested):
        children[group_id].append(GroupRef(id=child_id, name=name))
    return [_group(group, organization_id, keys[group.id], children[group.id]) for group in groups]


def _group(
    group: PermissionGroup, organization_id: int, keys: list[str], children: list[GroupRef]
) -> GroupOut:
    return GroupOut(
        id=group.id,
        organization_id=group.organization_id,
        name=group.name,
        description=group.description,
        permissions=keys,
        children=children,
        inherited_from=group.organization_id if group.organization_id != organization_id else None,
        created_at=group.created_at,
    )
