"""Roles: custom ones of organizations, and the three built-in ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.standing import keys_of_builtin, unexpired
from builtin_plugins.tenancy.errors import RoleNotFound
from builtin_plugins.tenancy.models import Role, RoleAssignment, RoleGroup, RolePermission
from builtin_plugins.tenancy.roles.definitions import Kind, RoleContents, fields_of
from builtin_plugins.tenancy.roles.schemas import RoleOut
from kernel.sdk import Permission


def _usable(lineage: Collection[int]) -> ColumnElement[bool]:
    return or_(Role.is_builtin, Role.organization_id.in_(lineage))


def _show(
    role: Role, organization_id: int, permissions: Mapping[str, Permission], listed: RoleContents
) -> RoleOut:
    keys = sorted(keys_of_builtin(permissions, role.name)) if role.is_builtin else listed.permissions[role.id]
    return RoleOut(
        is_builtin=role.is_builtin,
        permission_groups=listed.groups[role.id],
        **fields_of(role, organization_id, keys),
    )


def _uses(session: Session, role_id: int) -> tuple[dict[str, Any], str | None]:
    """The accounts that have the role now, here and below."""
    in_use = (RoleAssignment.role_id == role_id) & unexpired(session)
    query = select(RoleAssignment.user_id).where(in_use).distinct()
    holders = list(session.scalars(query.order_by(RoleAssignment.user_id)))
    way_out = "take it from them, or delete it with ?force=true"
    return {
        "assigned_to": holders
    }, f"{len(holders)} member(s) have this role; {way_out}" if holders else None


ROLES: Kind[RoleOut] = Kind(
    noun="role",
    target_type="role",
    row=Role,
    order=(Role.is_builtin.desc(), Role.id),
    keys=RolePermission,
    keys_of=RolePermission.role_id,
    groups=RoleGroup,
    groups_of=RoleGroup.role_id,
    group_id=RoleGroup.group_id,
    not_found=RoleNotFound,
    usable=_usable,
    show=_show,
    uses=_uses,
    audited=frozenset({"name", "description", "permissions", "permission_groups"}),
)
